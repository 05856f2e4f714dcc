//! Plans of memory, built by hand.

use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::plan::{MemoryPlan, Slot};

use crate::border::{Answer, cross, handle_out, needed};
use crate::library::{Library, device_arena_library_t, library_of};
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, remove};

/// Offsets that are fixed ahead of time for named nodes.
pub type device_arena_plan_t = u64;

pub(crate) struct PlanObject {
    pub(crate) plan: Arc<MemoryPlan>,
    _library: Arc<Library>,
}
object!(PlanObject, Plan);

/// One node's place in a planned arena. Offsets, sizes and alignments are bytes; the offset counts from the arena's start.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_slot_t {
    /// The node, by any number of the caller's.
    pub node: u64,
    /// Its first byte.
    pub offset: u64,
    /// Its size.
    pub size: u64,
    /// What its offset is a multiple of: a power of two, or 0 for 1.
    pub alignment: u64,
    /// The first step in which its bytes are its own, where `has_lifetime` is not 0.
    pub live_start: u64,
    /// The step after the last.
    pub live_end: u64,
    /// The node whose bytes it shares on purpose, where `is_alias` is not 0.
    pub alias_of: u64,
    /// 1 for bytes that are its own in the steps from `live_start` to before `live_end`; 0 for always.
    pub has_lifetime: u32,
    /// 1 for a node that shares bytes of `alias_of`; 0 for none.
    pub is_alias: u32,
}

impl device_arena_slot_t {
    fn to_slot(self) -> Slot {
        let mut slot = Slot::new(self.node, self.offset, self.size);
        if self.alignment != 0 {
            slot = slot.aligned(self.alignment);
        }
        if self.has_lifetime != 0 {
            slot = slot.live(self.live_start..self.live_end);
        }
        if self.is_alias != 0 {
            slot = slot.alias_of(self.alias_of);
        }
        slot
    }

    pub(crate) fn of(slot: &Slot) -> Self {
        let live = slot.lifetime.clone().unwrap_or(0..0);
        Self {
            node: slot.node,
            offset: slot.offset,
            size: slot.size,
            alignment: slot.alignment,
            live_start: live.start,
            live_end: live.end,
            alias_of: slot.alias_of.unwrap_or(0),
            has_lifetime: slot.lifetime.is_some().into(),
            is_alias: slot.alias_of.is_some().into(),
        }
    }
}

/// Builds a plan of so many slots, in any order. `alignment` is what every slot and the arena are aligned to at least, 0 for 1;
/// `total` is the arena's size, 0 for the end of the last slot. INVALID_ARGUMENT, and a message that names the slots, for a
/// node that comes twice, a slot that is not aligned or ends beyond the total, nodes that share bytes while both are live
/// and are no aliases, and the like.
///
/// # Safety
///
/// `slots` is to `count` slots, or null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_plan_init(
    plan: Option<&mut MaybeUninit<device_arena_plan_t>>,
    library: device_arena_library_t,
    slots: *const device_arena_slot_t,
    count: u64,
    alignment: u64,
    total: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("plan", plan)?;
        let library = library_of(library)?;
        // SAFETY: the caller's promise is the same, until this returns.
        let slots = unsafe { raw::values("slots", slots, count) }?;
        let mut builder = MemoryPlan::builder().slots(slots.iter().map(|slot| slot.to_slot()));
        if alignment != 0 {
            builder = builder.alignment(alignment);
        }
        if total != 0 {
            builder = builder.total(total);
        }
        out.write(insert(PlanObject { plan: Arc::new(builder.build()?), _library: library })?);
        Ok(())
    })
}

/// What a plan says of itself.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_plan_description_t {
    /// How many nodes there are.
    pub nodes: u64,
    /// The bytes that an arena of this plan needs.
    pub total: u64,
    /// What the arena's start is aligned to, in bytes.
    pub alignment: u64,
    /// The number of the whole layout, its lower and its upper 64 bits: plans that are equal have equal ones, and plans that
    /// differ in a node, an offset, a size, an alignment, a lifetime or an alias have others.
    pub fingerprint: [u64; 2],
}

/// Describes a plan.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_plan_describe(
    plan: device_arena_plan_t,
    description_out: Option<&mut MaybeUninit<device_arena_plan_description_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("description_out", description_out)?;
        let plan = &get::<PlanObject>(plan)?.plan;
        let fingerprint = plan.fingerprint();
        out.write(device_arena_plan_description_t {
            nodes: plan.len() as u64,
            total: plan.total(),
            alignment: plan.alignment(),
            fingerprint: [fingerprint as u64, (fingerprint >> 64) as u64],
        });
        Ok(())
    })
}

/// A node's slot. INVALID_ARGUMENT for a node that the plan has not.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_plan_slot(
    plan: device_arena_plan_t,
    node: u64,
    slot_out: Option<&mut MaybeUninit<device_arena_slot_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("slot_out", slot_out)?;
        out.write(device_arena_slot_t::of(slot_of(&get::<PlanObject>(plan)?.plan, "slot", node)?));
        Ok(())
    })
}

pub(crate) fn slot_of<'p>(plan: &'p MemoryPlan, operation: &'static str, node: u64) -> Answer<&'p Slot> {
    plan.get(node).ok_or_else(|| arenas::Error::UnknownNode { operation, node }.into())
}

/// Lets a plan go. Arenas of it go on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_plan_free(
    plan: device_arena_plan_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<PlanObject>(plan).map(drop))
}
