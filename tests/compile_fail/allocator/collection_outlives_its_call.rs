use allocator_api2::vec::Vec;
use device_arena::Arena;

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let call = arena.begin()?;
    let mut values = Vec::new_in(call.host()?);
    values.push(1u8);
    call.finish()?;
    values.push(2);
    Ok(())
}
