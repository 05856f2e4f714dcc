use device_arena::{Arena, Executor};

fn main() -> device_arena::Result<()> {
    let executor = Executor::host()?;
    let arena = Arena::new(&executor);
    let text = String::from("local");
    let soon = executor.defer(&arena, |call| Ok(call.output_from_slice(text.as_bytes())?.publish()))?;
    soon.wait().map(drop)
}
