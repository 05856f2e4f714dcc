device_arena_declarations::entry!("hipMalloc"(*mut u64));

fn main() {}
