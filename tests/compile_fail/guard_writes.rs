use device_arena::{Arena, View};

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let call = arena.begin()?;
    let view: View<u8> = call.output::<u8>(4)?.publish();
    call.finish()?;
    view.read()?[0] = 1;
    Ok(())
}
