use device_arena::{Arena, View};

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let call = arena.begin()?;
    let view: View<u8> = call.output::<u8>(4)?.publish();
    call.finish()?;
    let guard = view.read()?;
    drop(view);
    assert_eq!(guard[0], 0);
    Ok(())
}
