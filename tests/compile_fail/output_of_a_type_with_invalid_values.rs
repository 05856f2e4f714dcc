use device_arena::Arena;

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let call = arena.begin()?;
    call.output::<bool>(4)?;
    call.output::<&str>(4)?;
    call.finish()
}
