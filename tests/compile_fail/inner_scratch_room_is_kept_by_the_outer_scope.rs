use device_arena::Arena;

fn main() -> device_arena::Result<()> {
    let arena = Arena::host();
    let mut call = arena.begin()?;
    call.scratch(|outer| {
        let kept = outer.scratch(|inner| inner.take::<u32>(4));
        kept.map(|room| room.fill(1))
    })
}
