device_arena_declarations::entry!("hipMallocElsewhere"(*mut u64, usize));

fn main() {}
