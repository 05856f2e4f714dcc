use device_arena::Arena;

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let call = arena.begin()?;
    std::thread::scope(|threads| {
        threads.spawn(|| call.output::<u8>(4).map(drop));
    });
    call.finish()
}
