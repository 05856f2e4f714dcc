//! Runs: the exclusive use of a planned arena.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use arenas::plan::MemoryPlan;
use arenas::{Error, Refused, Run};

use crate::border::{Answer, Refusal, cross, handle_out, needed, tell};
use crate::deferred::{DeferredObject, device_arena_deferred_t};
use crate::exclusive::Exclusive;
use crate::executor::{ExecutorObject, device_arena_executor_t, executor_or_none};
use crate::library::Library;
use crate::plan::slot_of;
use crate::planned::{PlannedObject, device_arena_planned_t};
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, use_up};
use crate::view::{ViewObject, device_arena_view_t};

/// The exclusive use of a planned arena, from its begin to its end. It is used by one thread at a time.
pub type device_arena_run_t = u64;

pub(crate) struct RunObject {
    pub(crate) run: Exclusive<Run>,
    executor: Option<Arc<ExecutorObject>>,
    library: Arc<Library>,
}
object!(RunObject, Run);

/// Some elements of a slot: where they begin in it, and as many as it holds, both in bytes.
pub(crate) struct Held {
    pub(crate) first: usize,
    pub(crate) bytes: usize,
}

/// Elements of so many bytes each, which C gives the size of where Rust has a type.
#[derive(Clone, Copy)]
pub(crate) struct Elements(u64);

impl Elements {
    pub(crate) fn of(element_bytes: u32) -> Answer<Self> {
        match element_bytes {
            0 => Err(Refusal::invalid("element_bytes is 0")),
            bytes => Ok(Self(bytes.into())),
        }
    }

    /// As many of `count` elements from element `first` of a slot on as it holds.
    pub(crate) fn held(
        self,
        plan: &MemoryPlan,
        operation: &'static str,
        (node, first): (u64, u64),
        count: u64,
    ) -> Answer<Held> {
        let slot = slot_of(plan, operation, node)?;
        let (start, held) = (first.saturating_mul(self.0), slot.size / self.0);
        let Some(left) = held.checked_sub(first) else {
            let (offset, size) = (slot.offset, slot.size);
            return Err(Error::OutOfSlot { operation, node, offset, size, start }.into());
        };
        // Both are within the plan's total, which an arena has as one block.
        Ok(Held { first: start as usize, bytes: (left.min(count) * self.0) as usize })
    }

    pub(crate) fn count(self, bytes: usize) -> u64 {
        bytes as u64 / self.0
    }
}

fn begin(
    run: Option<&mut MaybeUninit<device_arena_run_t>>,
    planned: device_arena_planned_t,
    timeout: Option<Duration>,
) -> Answer {
    let out = handle_out("run", run)?;
    let object = get::<PlannedObject>(planned)?;
    let run = match timeout {
        None => object.arena.begin()?,
        Some(timeout) => object.arena.begin_timeout(timeout)?,
    };
    let (executor, library) = (object.executor.clone(), Arc::clone(&object.library));
    out.write(insert(RunObject { run: Exclusive::new("run", run), executor, library })?);
    Ok(())
}

/// Begins a run: earlier views are stale, and the bytes are as the last run left them. CONTENDED while a run, deferred work or
/// a reader holds the arena.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_begin(
    run: Option<&mut MaybeUninit<device_arena_run_t>>,
    planned: device_arena_planned_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || begin(run, planned, None))
}

/// Begins a run, and waits for the arena to be free for so many nanoseconds at most.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_begin_timeout(
    run: Option<&mut MaybeUninit<device_arena_run_t>>,
    planned: device_arena_planned_t,
    nanoseconds: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || begin(run, planned, Some(Duration::from_nanos(nanoseconds))))
}

/// Writes `count` elements of `element_bytes` bytes each from element `first` of a slot on. As many as the slot holds are
/// written, and `moved_out`, which may be null, is told how many. INVALID_ARGUMENT for a start beyond the slot.
///
/// # Safety
///
/// `data` is to as many elements, or null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_run_write(
    run: device_arena_run_t,
    node: u64,
    first: u64,
    element_bytes: u32,
    data: *const c_void,
    count: u64,
    moved_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let elements = Elements::of(element_bytes)?;
        // SAFETY: the caller's promise is the same, until this returns.
        let values = unsafe { raw::bytes("data", data, count.saturating_mul(elements.0)) }?;
        get::<RunObject>(run)?.run.with(|run| {
            let held = elements.held(run.plan(), "write", (node, first), count)?;
            run.write_from(node, held.first, values.get(..held.bytes).unwrap_or_default())?;
            tell(moved_out, elements.count(held.bytes));
            Ok(())
        })
    })
}

/// Reads `count` elements of `element_bytes` bytes each from element `first` of a slot on, as `device_arena_run_write` writes
/// them.
///
/// # Safety
///
/// `data` is to room for as many elements that nobody else uses meanwhile, or null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_run_read(
    run: device_arena_run_t,
    node: u64,
    first: u64,
    element_bytes: u32,
    data: *mut c_void,
    count: u64,
    moved_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let elements = Elements::of(element_bytes)?;
        // SAFETY: the caller's promise is the same, until this returns.
        let places = unsafe { raw::bytes_mut("data", data, count.saturating_mul(elements.0)) }?;
        get::<RunObject>(run)?.run.with(|run| {
            let held = elements.held(run.plan(), "read", (node, first), count)?;
            run.read_from(node, held.first, places.get_mut(..held.bytes).unwrap_or_default())?;
            tell(moved_out, elements.count(held.bytes));
            Ok(())
        })
    })
}

/// Reads `count` elements of `element_bytes` bytes each from element `first` of the *arena* on, across slots. As many as there
/// are are read, and `moved_out`, which may be null, is told how many.
///
/// # Safety
///
/// As `device_arena_run_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_run_read_at(
    run: device_arena_run_t,
    first: u64,
    element_bytes: u32,
    data: *mut c_void,
    count: u64,
    moved_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let elements = Elements::of(element_bytes)?;
        // SAFETY: the caller's promise is the same, until this returns.
        let places = unsafe { raw::bytes_mut("data", data, count.saturating_mul(elements.0)) }?;
        get::<RunObject>(run)?.run.with(|run| {
            let (total, start) = (run.plan().total(), first.saturating_mul(elements.0));
            let left = total.saturating_sub(start) / elements.0;
            let bytes = (left.min(count) * elements.0) as usize;
            // A start beyond the arena is refused there.
            run.read_at(start, places.get_mut(..bytes).unwrap_or_default())?;
            tell(moved_out, elements.count(bytes));
            Ok(())
        })
    })
}

/// A slot's address for a device's kernels, which use it in the order of the executor's stream. INVALID_ARGUMENT for host pages.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_device_pointer(
    run: device_arena_run_t,
    node: u64,
    pointer_out: Option<&mut MaybeUninit<*mut c_void>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("pointer_out", pointer_out)?;
        get::<RunObject>(run)?.run.with(|run| {
            out.write(run.device_ptr(node)?.cast());
            Ok(())
        })
    })
}

/// The arena's first address on the host, which offsets of the plan count from, and its size, which `bytes_out` takes and may
/// be null; it holds until the run ends.
/// DEVICE for a device's memory; PENDING while a device may use it.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_data(
    run: device_arena_run_t,
    data_out: Option<&mut MaybeUninit<*mut c_void>>,
    bytes_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("data_out", data_out)?;
        get::<RunObject>(run)?.run.with(|run| {
            let room = run.bytes_mut()?;
            out.write(raw::address_of(room));
            tell(bytes_out, room.len() as u64);
            Ok(())
        })
    })
}

fn take(handle: device_arena_run_t) -> Answer<(Run, Arc<RunObject>)> {
    use_up::<RunObject, _>(handle, |object| object.run.take())
}

/// Ends a run, and answers a view of all bytes as it has left them, which slices look at slot by slot. The handle is dead
/// from then on. It waits for nothing.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_finish(
    view: Option<&mut MaybeUninit<device_arena_view_t>>,
    run: device_arena_run_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("view", view)?;
        let (run, object) = take(run)?;
        let view = run.finish()?.bytes().clone();
        out.write(insert(ViewObject::new(view, object.executor.as_ref(), &object.library))?);
        Ok(())
    })
}

/// Leaves a run to the work that is queued on the executor now: the arena is held until that has passed. `executor` is 0 for
/// the one that the arena was made for. The handle is dead from then on; after a failure the run is as it was.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_defer(
    deferred: Option<&mut MaybeUninit<device_arena_deferred_t>>,
    view: Option<&mut MaybeUninit<device_arena_view_t>>,
    run: device_arena_run_t,
    executor: device_arena_executor_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let (deferred_out, view_out) = (handle_out("deferred", deferred)?, handle_out("view", view)?);
        let ((view, deferred, executor), object) = use_up::<RunObject, _>(run, |object| {
            let none = || Refusal::invalid("executor is 0, and the arena was made for none");
            let executor =
                executor_or_none(executor)?.or_else(|| object.executor.clone()).ok_or_else(none)?;
            let (view, deferred) = object.run.use_up(|run| {
                let refused = |refused: Refused<Run>| Box::new((refused.value, refused.error.into()));
                run.defer(&executor.executor).map_err(refused)
            })?;
            Ok((view, deferred, executor))
        })?;
        let view = ViewObject::new(view.bytes().clone(), object.executor.as_ref(), &object.library);
        deferred_out.write(insert(DeferredObject::new(deferred, executor))?);
        view_out.write(insert(view)?);
        Ok(())
    })
}

/// Ends a run without a result: the bytes are as it left them, and views of it are stale. The handle is dead from then on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_run_abandon(
    run: device_arena_run_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || take(run).map(drop))
}
