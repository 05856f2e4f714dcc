device_arena_declarations::entry!("hipMalloc"(*mut u64, usize, u32));

fn main() {}
