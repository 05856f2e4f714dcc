//! Planned arenas: memory whose places a plan fixes.

use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::{Error, PlannedArena};

use crate::arena::{device_arena_source_t, of_library, placement_of, source_of};
use crate::border::{Answer, Refusal, cross, handle_out, needed};
use crate::description::{device_arena_description_t, device_arena_stats_t};
use crate::executor::ExecutorObject;
use crate::library::Library;
use crate::plan::{PlanObject, device_arena_plan_t, device_arena_slot_t, slot_of};
use crate::status::device_arena_status_t::DEVICE_ARENA_STATUS_PENDING;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, remove};
use crate::view::{ViewObject, device_arena_view_t};

/// An arena whose places are fixed by a plan: every node has its slot, in every run, and the bytes stay from run to run.
pub type device_arena_planned_t = u64;

pub(crate) struct PlannedObject {
    pub(crate) arena: PlannedArena,
    pub(crate) executor: Option<Arc<ExecutorObject>>,
    pub(crate) library: Arc<Library>,
}
object!(PlannedObject, Planned);

/// Makes an arena of a plan: for a library in host pages, for an executor where it computes or in the placement that is asked
/// for, a `device_arena_placement_t`. Nothing is allocated before the first run, and all bytes are zero then.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_init(
    planned: Option<&mut MaybeUninit<device_arena_planned_t>>,
    source: device_arena_source_t,
    plan: device_arena_plan_t,
    placement: i32,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("planned", planned)?;
        let (executor, library) = source_of(source)?;
        let plan = Arc::clone(&get::<PlanObject>(plan)?.plan);
        let arena = match (&executor, placement_of(placement)?) {
            (None, placement) => {
                of_library(placement)?;
                PlannedArena::host(plan)?
            }
            (Some(object), None) => PlannedArena::new(&object.executor, plan)?,
            (Some(object), Some(placement)) => PlannedArena::placed(&object.executor, placement, plan)?,
        };
        out.write(insert(PlannedObject { arena, executor, library })?);
        Ok(())
    })
}

/// Frees a planned arena: views of its runs are stale from then on. A run or a guard that is alive then goes on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_free(
    planned: device_arena_planned_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<PlannedObject>(planned).map(drop))
}

/// Where the bytes are.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_describe(
    planned: device_arena_planned_t,
    description_out: Option<&mut MaybeUninit<device_arena_description_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("description_out", description_out)?;
        out.write(get::<PlannedObject>(planned)?.arena.describe().into());
        Ok(())
    })
}

/// What the planned arena has done so far.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_stats(
    planned: device_arena_planned_t,
    stats_out: Option<&mut MaybeUninit<device_arena_stats_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("stats_out", stats_out)?;
        let object = get::<PlannedObject>(planned)?;
        out.write(device_arena_stats_t::new(&object.arena.stats(), object.arena.generation()));
        Ok(())
    })
}

/// Whether the plan has the node: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_has(
    planned: device_arena_planned_t,
    node: u64,
    has_out: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("has_out", has_out)?;
        out.write(get::<PlannedObject>(planned)?.arena.has(node).into());
        Ok(())
    })
}

/// A node's slot: where it begins and how large it is. INVALID_ARGUMENT for a node that the plan has not.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_slot(
    planned: device_arena_planned_t,
    node: u64,
    slot_out: Option<&mut MaybeUninit<device_arena_slot_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("slot_out", slot_out)?;
        let object = get::<PlannedObject>(planned)?;
        out.write(device_arena_slot_t::of(slot_of(object.arena.plan(), "slot", node)?));
        Ok(())
    })
}

/// Where a node begins, in bytes from the arena's start.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_byte_offset(
    planned: device_arena_planned_t,
    node: u64,
    offset_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("offset_out", offset_out)?;
        out.write(get::<PlannedObject>(planned)?.arena.byte_offset(node)?);
        Ok(())
    })
}

fn element_offset(object: &PlannedObject, node: u64, element_bytes: u32) -> Answer<u64> {
    let offset = object.arena.byte_offset(node)?;
    match offset.checked_rem(u64::from(element_bytes)) {
        Some(0) => Ok(offset / u64::from(element_bytes)),
        _ => Err(not_so_many(node, offset, element_bytes)),
    }
}

fn not_so_many(node: u64, offset: u64, element_bytes: u32) -> Refusal {
    Error::ElementOffset { node, offset, element: element_bytes as usize }.into()
}

/// Where a node begins, in elements of so many bytes from the arena's start, in the 32 bits of a push constant.
/// INVALID_ARGUMENT where it begins between two elements, or does not fit.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_elem_offset(
    planned: device_arena_planned_t,
    node: u64,
    element_bytes: u32,
    offset_out: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("offset_out", offset_out)?;
        let object = get::<PlannedObject>(planned)?;
        let elements = element_offset(&object, node, element_bytes)?;
        let bytes = elements.saturating_mul(u64::from(element_bytes));
        out.write(u32::try_from(elements).map_err(|_| not_so_many(node, bytes, element_bytes))?);
        Ok(())
    })
}

/// As `device_arena_planned_elem_offset`, in 64 bits.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_elem_offset_64(
    planned: device_arena_planned_t,
    node: u64,
    element_bytes: u32,
    offset_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("offset_out", offset_out)?;
        let object = get::<PlannedObject>(planned)?;
        out.write(element_offset(&object, node, element_bytes)?);
        Ok(())
    })
}

/// A view of all bytes, as the last finished run has left them. PENDING before the first has finished.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_planned_last(
    view: Option<&mut MaybeUninit<device_arena_view_t>>,
    planned: device_arena_planned_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("view", view)?;
        let object = get::<PlannedObject>(planned)?;
        let none = || Refusal::Here(DEVICE_ARENA_STATUS_PENDING, "no run has finished yet".into());
        let last = object.arena.last().ok_or_else(none)?;
        let view = ViewObject::new(last.bytes().clone(), object.executor.as_ref(), &object.library);
        out.write(insert(view)?);
        Ok(())
    })
}
