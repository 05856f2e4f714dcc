use device_arena::Arena;

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let mut call = arena.begin()?;
    call.scratch(|outer| {
        outer.scratch(|_inner| outer.take::<u32>(4).map(drop))
    })
}
