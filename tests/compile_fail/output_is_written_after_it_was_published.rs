use device_arena::Arena;

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let call = arena.begin()?;
    let mut output = call.output::<u8>(4)?;
    let values = output.as_mut_slice()?;
    let _view = output.publish();
    values[0] = 1;
    call.finish()
}
