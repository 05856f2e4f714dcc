device_arena_declarations::entry!("hipGetErrorName"(u32));

fn main() {}
