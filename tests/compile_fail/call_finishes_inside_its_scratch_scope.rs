use device_arena::Arena;

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let mut call = arena.begin()?;
    call.scratch(|scope| {
        scope.take::<u32>(4)?;
        call.finish()
    })
}
