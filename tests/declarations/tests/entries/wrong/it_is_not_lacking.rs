device_arena_declarations::lacks!(hipMalloc);

fn main() {}
