device_arena_declarations::entry!("cuMemAlloc_v2" "hipMalloc"(*mut u64, u32));

fn main() {}
