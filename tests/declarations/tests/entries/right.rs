device_arena_declarations::entry!("hipMalloc"(*mut u64, usize));
device_arena_declarations::entry!("cuStreamQuery" "hipStreamQuery"(*mut std::ffi::c_void));
device_arena_declarations::lacks!(hipMallocElsewhere);

fn main() {}
