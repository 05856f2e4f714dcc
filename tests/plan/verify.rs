//! `MemoryPlan::verify` finds every planted fault, and nothing else.

use std::time::{Duration, Instant};

use device_arena::Error;
use device_arena::plan::{Buffer, MemoryPlan, PlanFault, Planner, Slot, lower_bound};
use device_arena_model::fault_of;
use proptest::prelude::any;
use proptest::{prop_assert, prop_assert_eq, proptest};

use crate::buffers::{all_kinds, config};

fn fault(plan: &MemoryPlan, buffers: &[Buffer]) -> Option<PlanFault> {
    match plan.verify(buffers) {
        Ok(()) => None,
        Err(Error::Plan(fault)) => Some(*fault),
        Err(other) => panic!("an error of another kind: {other}"),
    }
}

proptest! {
    #![proptest_config(config(2000))]

    /// One buffer is not what the plan was made for. Whether that is a fault, every pair says.
    #[test]
    fn a_planted_fault_is_found(
        buffers in all_kinds(12),
        index in any::<usize>(),
        kind in 0..9u8,
        by in 1..40u64,
    ) {
        let plan = Planner::new().steps(100).plan(&buffers).unwrap().into_plan();
        prop_assert_eq!(fault(&plan, &buffers), None);
        let mut changed = buffers.clone();
        if changed.is_empty() {
            return Ok(());
        }
        let index = index % changed.len();
        let buffer = &mut changed[index];
        match kind {
            0 => buffer.size += by,
            1 => buffer.lifetime.end += by,
            2 => buffer.lifetime.start = buffer.lifetime.start.saturating_sub(by),
            3 => buffer.alignment = 64,
            4 => buffer.offset = Some(by),
            5 => buffer.alias_of = buffer.alias_of.xor(Some(buffers[0].id)),
            6 => buffer.pinned ^= true,
            7 => drop(changed.remove(index)),
            _ => changed.push(Buffer::new(1 << 40, 0..1, by)),
        }
        let expected = fault_of(&plan, &changed);
        let found = fault(&plan, &changed);
        prop_assert_eq!(found.is_some(), expected.is_some(), "{:?}, {:?}", found, expected);
    }

    /// The same from the other side: a slot that is not where the planner put it.
    #[test]
    fn a_moved_slot_is_found(buffers in all_kinds(10), index in any::<usize>(), to in 0..200u64) {
        let plan = Planner::new().steps(100).plan(&buffers).unwrap().into_plan();
        let mut slots: Vec<Slot> = plan.iter().cloned().collect();
        if slots.is_empty() {
            return Ok(());
        }
        let index = index % slots.len();
        slots[index].offset = to;
        // Without lifetimes of its own a plan is one of buffers that it can't tell apart in time.
        match MemoryPlan::builder().slots(slots).build() {
            Ok(moved) => prop_assert_eq!(fault(&moved, &buffers).is_some(), fault_of(&moved, &buffers).is_some()),
            Err(Error::Plan(_)) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn each_fault_is_named_with_what_the_buffer_needs() {
    let slots = [
        Slot::new(1, 0, 64).live(0..4),
        Slot::new(2, 64, 64).live(2..6),
        Slot::new(3, 64, 32).live(4..5).alias_of(2),
    ];
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    let one = Buffer::new(1, 0..4, 64);
    let two = Buffer::new(2, 2..6, 64);
    let three = Buffer::new(3, 4..5, 32).alias_of(2);
    let of = |buffers: [&Buffer; 3]| fault(&plan, &buffers.map(Clone::clone)).map(|fault| fault.to_string());
    let (slot, other) = ("node 1 (64 bytes at 0, live in 0..4)", "node 2 (64 bytes at 64, live in 2..6)");
    assert_eq!(of([&one, &two, &three]), None);
    let cases = [
        (of([&one.clone().at(64), &two, &three]), format!("{slot} has to be at 64")),
        (
            of([&Buffer::new(1, 0..4, 65), &two, &three]),
            format!("{slot} is smaller than its buffer of 65 bytes"),
        ),
        (
            of([&Buffer::new(1, 0..5, 64), &two, &three]),
            format!("{slot} is not live in all of its buffer's steps, 0..5"),
        ),
        (
            of([&one.clone().pinned(), &two, &three]),
            format!("{slot} is not live in all of its buffer's steps, which are all"),
        ),
        (of([&one, &two.clone().aligned(128), &three]), format!("{other} is not aligned to 128 bytes")),
        (of([&one, &one, &three]), "node 1 comes twice".to_owned()),
        (of([&one, &Buffer::new(9, 0..1, 1), &three]), "node 9 has no slot".to_owned()),
    ];
    for (found, expected) in cases {
        assert_eq!(found, Some(expected));
    }
    assert!(
        matches!(fault(&plan, &[one.clone(), two.clone()]), Some(PlanFault::Unasked { slot }) if slot.node == 3)
    );
    let no_alias = Buffer::new(3, 4..5, 32);
    assert!(matches!(
        fault(&plan, &[one, two, no_alias]),
        Some(PlanFault::OtherAlias { alias_of: None, .. })
    ));
}

#[test]
fn a_stranger_between_a_node_and_its_late_alias_is_found() {
    // What shares bytes is one buffer, and is live from its first step to its last; else the bound would be none.
    let slots = [
        Slot::new(1, 0, 100).live(0..2),
        Slot::new(2, 0, 100).live(8..10).alias_of(1),
        Slot::new(3, 0, 100).live(3..5),
    ];
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    let buffers =
        [Buffer::new(1, 0..2, 100), Buffer::new(2, 8..10, 100).alias_of(1), Buffer::new(3, 3..5, 100)];
    assert!(
        matches!(fault(&plan, &buffers), Some(PlanFault::Overlap { first, second }) if (first.node, second.node) == (1, 3))
    );
    assert_eq!(lower_bound(&buffers), Ok(200));
}

proptest! {
    #![proptest_config(config(6000))]

    /// Slots at random that turn out to be a plan of the buffers need no less than the bound says, nor do the planner's.
    #[test]
    fn no_plan_that_is_verified_is_below_the_bound(
        buffers in all_kinds(5),
        offsets in proptest::collection::vec(0..24u64, 5),
    ) {
        let Ok(bound) = lower_bound(&buffers) else { return Ok(()) };
        let alias_of = |id: u64| buffers.iter().find(|buffer| buffer.id == id).and_then(|buffer| buffer.alias_of);
        let offset = |buffer: &Buffer| {
            let mut root = buffer.id;
            while let Some(target) = alias_of(root) {
                root = target;
            }
            let index = buffers.iter().position(|buffer| buffer.id == root).unwrap_or(0);
            buffers[index].offset.unwrap_or(offsets[index] * buffers[index].alignment)
        };
        let slots = buffers.iter().map(|buffer| {
            let mut slot = Slot::new(buffer.id, offset(buffer), buffer.size);
            slot.lifetime = (!buffer.pinned).then(|| buffer.lifetime.clone());
            slot.alias_of = buffer.alias_of;
            slot
        });
        let Ok(plan) = MemoryPlan::builder().slots(slots).build() else { return Ok(()) };
        let found = fault(&plan, &buffers);
        prop_assert_eq!(found.is_some(), fault_of(&plan, &buffers).is_some(), "{:?}", found);
        prop_assert!(found.is_some() || plan.total() >= bound, "{} of {bound}", plan.total());
    }
}

#[test]
fn a_hundred_thousand_buffers_are_verified_in_a_second() {
    let count = 100_000;
    // Each lives with some forty others, above one another as they come.
    let lives: Vec<(u64, u64)> = (0..count).map(|id| (id / 4, 1 + id * 7919 % 20)).collect();
    let buffers: Vec<_> = lives
        .iter()
        .zip(0..)
        .map(|((start, steps), id)| Buffer::new(id, *start..start + steps, 1 + id % 512))
        .collect();
    let slots = buffers
        .iter()
        .map(|buffer| Slot::new(buffer.id, buffer.id % 128 * 512, buffer.size).live(buffer.lifetime.clone()));
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    let time = (0..3)
        .map(|_| {
            let started = Instant::now();
            plan.verify(&buffers).unwrap();
            started.elapsed()
        })
        .min()
        .unwrap();
    println!("verified {count} buffers in {time:?}");
    // A build that is not optimised, on a machine that does other things as well, gets more.
    let most = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 1 });
    assert!(time < most, "{time:?}");
}
