use device_arena::Arena;

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let mut call = arena.begin()?;
    let escaped: &mut [u32] = call.scratch(|scope| scope.take::<u32>(4))?;
    escaped.fill(1);
    call.finish()
}
