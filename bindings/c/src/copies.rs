//! Copies between the slots of a run.

use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::plan::MemoryPlan;

use crate::border::{Answer, Refusal, cross, tell};
use crate::raw;
use crate::run::{Elements, RunObject, device_arena_run_t};
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::get;

/// Copies the first `count` elements of one slot to the start of another. As many as both hold are copied, and `moved_out`,
/// which may be null, is told how many. Slots that start together are left as they are.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_copy_prefix(
    run: device_arena_run_t,
    to: u64,
    from: u64,
    element_bytes: u32,
    count: u64,
    moved_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        copy(
            run,
            device_arena_copy_t { to, to_first: 0, from, from_first: 0, count },
            element_bytes,
            moved_out,
        )
    })
}

/// Copies `count` elements from element `from_first` of one slot to element `to_first` of another: as
/// `device_arena_run_copy_prefix`. Where they overlap, it is as if by way of a buffer.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_copy_range(
    run: device_arena_run_t,
    to: u64,
    to_first: u64,
    from: u64,
    from_first: u64,
    element_bytes: u32,
    count: u64,
    moved_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        copy(run, device_arena_copy_t { to, to_first, from, from_first, count }, element_bytes, moved_out)
    })
}

/// A copy between two slots, in elements.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_copy_t {
    /// The node that is written.
    pub to: u64,
    /// The first element of its slot that is.
    pub to_first: u64,
    /// The node that is read.
    pub from: u64,
    /// The first element of its slot that is.
    pub from_first: u64,
    /// How many elements, at most.
    pub count: u64,
}

impl device_arena_copy_t {
    /// The places of both ends within their slots, and the bytes that both hold.
    fn held(&self, plan: &MemoryPlan, elements: Elements) -> Answer<(usize, usize, usize)> {
        let to = elements.held(plan, "copy", (self.to, self.to_first), self.count)?;
        let from = elements.held(plan, "copy", (self.from, self.from_first), self.count)?;
        Ok((to.first, from.first, to.bytes.min(from.bytes)))
    }
}

fn copy(
    run: device_arena_run_t,
    copy: device_arena_copy_t,
    element_bytes: u32,
    moved_out: Option<&mut MaybeUninit<u64>>,
) -> Answer {
    let elements = Elements::of(element_bytes)?;
    get::<RunObject>(run)?.run.with(|run| {
        let (to, from, bytes) = copy.held(run.plan(), elements)?;
        run.copy_range::<u8>(copy.to, to, copy.from, from, bytes)?;
        tell(moved_out, elements.count(bytes));
        Ok(())
    })
}

/// Makes many copies as one launch. They have no order among themselves: INVALID_ARGUMENT, and nothing is copied, where one
/// writes what another reads or writes. `moved_out`, which may be null, is told how many elements were copied in all.
///
/// # Safety
///
/// `copies` is to `copy_count` copies, or null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_run_copies(
    run: device_arena_run_t,
    copies: *const device_arena_copy_t,
    copy_count: u64,
    element_bytes: u32,
    moved_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let elements = Elements::of(element_bytes)?;
        // SAFETY: the caller's promise is the same, until this returns.
        let copies = unsafe { raw::values("copies", copies, copy_count) }?;
        get::<RunObject>(run)?.run.with(|run| {
            let mut places = Vec::new();
            for copy in copies {
                places.push((copy, copy.held(run.plan(), elements)?));
            }
            let (mut batch, mut moved) = (run.copies(), 0);
            for (copy, (to, from, bytes)) in places {
                batch.copy::<u8>((copy.to, to), (copy.from, from), bytes)?;
                moved += elements.count(bytes);
            }
            batch.launch()?;
            tell(moved_out, moved);
            Ok(())
        })
    })
}

/// Copies all bytes into the run of another arena of an equal plan. INVALID_ARGUMENT for another plan, and for the run itself.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_copy_into(
    run: device_arena_run_t,
    twin: device_arena_run_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let (run, twin) = (get::<RunObject>(run)?, get::<RunObject>(twin)?);
        // It would be in use by itself, and whoever tries again later waits for ever.
        if Arc::ptr_eq(&run, &twin) {
            return Err(Refusal::invalid("a run is no twin of itself"));
        }
        run.run.with(|run| twin.run.with(|twin| Ok(run.copy_into(twin).map(drop)?)))
    })
}

/// Fills a slot with zeros.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_clear(
    run: device_arena_run_t,
    node: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || get::<RunObject>(run)?.run.with(|run| Ok(run.clear(node)?)))
}
