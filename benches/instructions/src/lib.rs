//! The work whose instructions `benches/host.rs` counts: each function is one step of a steady call on the host.

use device_arena::plan::{MemoryPlan, Slot};
use device_arena::{Arena, Call, Output, PlannedArena, Result, Rows, TapeView, View};

/// An arena whose block holds whatever the steps below take.
///
/// # Errors
///
/// As [`Arena::reserve`].
pub fn warm() -> Result<Arena> {
    let arena = Arena::host();
    arena.reserve(1 << 16)?;
    arena.begin()?.finish()?;
    Ok(arena)
}

/// A begin and a finish.
///
/// # Errors
///
/// As [`Arena::begin`].
pub fn begin_and_finish(arena: &Arena) -> Result<()> {
    arena.begin()?.finish()
}

/// An output of 256 values, not written.
///
/// # Errors
///
/// As [`Call::output`].
pub fn output(call: &Call) -> Result<Output<f32>> {
    call.output(256)
}

/// A publication, and the drop of its view.
pub fn publish(output: Output<f32>) {
    drop(output.publish());
}

/// A guard, taken and dropped.
///
/// # Errors
///
/// As [`View::read`].
pub fn read(view: &View<f32>) -> Result<f32> {
    Ok(view.read()?.first().copied().unwrap_or(0.0))
}

/// A writer of 1000 values, pushed one by one.
///
/// # Errors
///
/// As [`Call::writer`].
pub fn writer(call: &Call) -> Result<View<u32>> {
    let mut writer = call.writer()?;
    for value in 0..1000 {
        writer.push(value)?;
    }
    Ok(writer.publish())
}

/// A whole call of three outputs.
///
/// # Errors
///
/// As [`Arena::begin`] and [`Call::output`].
pub fn steady_call(arena: &Arena) -> Result<[View<f32>; 3]> {
    let call = arena.begin()?;
    let views = [call.output(256)?.publish(), call.output(4096)?.publish(), call.output(64)?.publish()];
    call.finish()?;
    Ok(views)
}

/// The offsets of 1000 items, checked.
///
/// # Errors
///
/// As [`TapeView::of`].
pub fn tape(bytes: &[u8], offsets: &[u64]) -> Result<usize> {
    Ok(TapeView::of(bytes, offsets)?.len())
}

/// An arena of a plan: eight slots of 64 rows, and one with a new row for each. All have been written.
///
/// # Errors
///
/// As [`PlannedArena::host`].
pub fn planned() -> Result<PlannedArena> {
    const ROWS: u64 = 64 * 1024;
    let slots = (0..8).map(|node| Slot::new(node, node * ROWS, ROWS));
    let plan = MemoryPlan::builder().slots(slots).slot(Slot::new(8, 8 * ROWS, 8 * 1024)).build()?;
    let arena = PlannedArena::host(plan)?;
    arena.begin()?.finish()?;
    Ok(arena)
}

/// A run that moves one row into each of the eight slots.
///
/// # Errors
///
/// As [`PlannedArena::begin`].
pub fn planned_step(arena: &PlannedArena) -> Result<()> {
    let mut run = arena.begin()?;
    let mut copies = run.copies();
    copies.rows::<u8>(&Rows::new(8, 1024).from(8, 0, 1024).to(0, 3 * 1024, 64 * 1024))?;
    copies.launch()?;
    run.finish()?;
    Ok(())
}
