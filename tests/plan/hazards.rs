//! Schedules against bytes that know whose they are.

use device_arena::plan::{Hazard, MemoryPlan, Planner, Slot, Step};
use device_arena::{Error, Status};
use device_arena_model::check_schedule;
use proptest::prelude::Strategy;
use proptest::{prop_assert, prop_assert_eq, proptest};

use crate::buffers::{all_kinds, config, schedule, slots};

fn hazard(plan: &MemoryPlan, steps: &[Step]) -> Option<Hazard> {
    match plan.verify_schedule(steps) {
        Ok(()) => None,
        Err(error) => {
            assert_eq!(error.status(), Status::InvalidArgument);
            let Error::Schedule(hazard) = error else { panic!("an error of another kind: {error}") };
            Some(*hazard)
        }
    }
}

proptest! {
    #![proptest_config(config(6000))]

    #[test]
    fn a_hazard_is_where_the_bytes_say(
        (slots, steps) in slots(8).prop_flat_map(|slots| {
            let steps = schedule(slots.len() as u64);
            (proptest::prelude::Just(slots), steps)
        })
    ) {
        let Ok(plan) = MemoryPlan::builder().slots(slots).build() else { return Ok(()) };
        prop_assert_eq!(check_schedule(&plan, &steps), Ok(()));
    }
}

proptest! {
    #![proptest_config(config(500))]

    /// What the planner plans, a schedule that keeps the lifetimes runs on.
    #[test]
    fn a_schedule_within_the_lifetimes_has_no_hazard(buffers in all_kinds(16)) {
        let plan = Planner::new().steps(200).plan(&buffers).unwrap().into_plan();
        let end = buffers.iter().map(|buffer| buffer.lifetime.end).max().unwrap_or(0);
        // Written in the first step of its life and read in all others.
        let steps: Vec<Step> = (0..end)
            .map(|step| {
                let live = buffers.iter().filter(|buffer| buffer.lifetime.contains(&step));
                let (writes, reads): (Vec<_>, Vec<_>) = live.partition(|buffer| buffer.lifetime.start == step);
                // One storage is written by one of those that share it.
                let writes = writes.iter().filter(|buffer| buffer.alias_of.is_none());
                Step::new(reads.iter().map(|buffer| buffer.id), writes.map(|buffer| buffer.id))
            })
            .collect();
        // An alias may be read before its storage is written, by another's word: then it is what was there.
        let found = hazard(&plan, &steps);
        let is_early = matches!(found, None | Some(Hazard::Clobbered { written: None, .. }));
        prop_assert!(is_early, "{found:?}");
        prop_assert_eq!(check_schedule(&plan, &steps), Ok(()));
    }
}

fn two_halves() -> MemoryPlan {
    let slot = |node, offset, steps| Slot::new(node, offset, 64).live(steps);
    let slots = [slot(1, 0, 0..2), slot(2, 64, 1..3), slot(3, 0, 2..4), slot(4, 0, 3..5).alias_of(3)];
    MemoryPlan::builder().slots(slots).build().unwrap()
}

#[test]
fn a_read_after_the_bytes_became_anothers() {
    let steps = [Step::new([], [1]), Step::new([], [3]), Step::new([1], [2])];
    let found = hazard(&two_halves(), &steps).unwrap();
    assert_eq!(
        found.to_string(),
        "step 2 reads node 1 (64 bytes at 0, live in 0..2), written by step 0, which step 1 overwrote with \
         node 3 (64 bytes at 0, live in 2..4)"
    );
}

#[test]
fn what_was_there_from_the_beginning_can_be_overwritten_as_well() {
    assert_eq!(hazard(&two_halves(), &[Step::new([1], [2]), Step::new([2], [3])]), None);
    let found = hazard(&two_halves(), &[Step::new([], [3]), Step::new([1], [2])]).unwrap();
    assert!(matches!(found, Hazard::Clobbered { step: 1, written: None, overwritten: 0, .. }), "{found}");
}

#[test]
fn a_step_computes_in_place_only_where_that_is_declared() {
    let found = hazard(&two_halves(), &[Step::new([1], [3])]).unwrap();
    assert!(
        matches!(&found, Hazard::InPlace { step: 0, read, written } if (read.node, written.node) == (1, 3))
    );
    assert_eq!(hazard(&two_halves(), &[Step::new([3], [4]), Step::new([3], [3]), Step::new([4], [2])]), None);
}

#[test]
fn no_step_writes_bytes_twice_whoever_shares_them() {
    for writes in [[1, 3], [3, 4]] {
        let found = hazard(&two_halves(), &[Step::new([], writes)]).unwrap();
        assert!(matches!(found, Hazard::WrittenTwice { step: 0, .. }), "{found}");
    }
    assert_eq!(hazard(&two_halves(), &[Step::new([], [1, 1, 2])]), None);
}

#[test]
fn a_node_that_the_plan_does_not_have() {
    for step in [Step::new([9], []), Step::new([], [9])] {
        let found = hazard(&two_halves(), &[Step::default(), step]);
        assert_eq!(found, Some(Hazard::Unknown { step: 1, node: 9 }));
    }
}

#[test]
fn a_step_that_is_rewritten_in_part_is_clobbered_in_the_rest() {
    let slots = [
        Slot::new(1, 0, 100).live(0..1),
        Slot::new(2, 0, 40).live(1..2),
        Slot::new(3, 0, 20).live(0..1).alias_of(1),
        Slot::new(4, 20, 20).live(0..1).alias_of(1),
    ];
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    let start = [Step::new([], [1]), Step::new([], [2]), Step::new([], [3])];
    let then = |steps: &[Step]| hazard(&plan, &[&start[..], steps].concat()).is_some();
    assert!(then(&[Step::new([1], [])]) && then(&[Step::new([4], [])]) && !then(&[Step::new([3], [])]));
    assert!(!then(&[Step::new([], [4]), Step::new([1], [])]));
}

#[test]
fn a_decode_loop_of_a_hundred_thousand_steps_is_checked() {
    // Resident state, two buffers that take turns.
    let slots = [Slot::new(0, 0, 1 << 40), Slot::new(1, 1 << 40, 4096), Slot::new(2, (1 << 40) + 4096, 4096)];
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    let steps: Vec<_> = (0..100_000).map(|step| Step::new([0, 1 + step % 2], [2 - step % 2])).collect();
    assert_eq!(hazard(&plan, &steps), None);
}

#[test]
fn a_clobbered_node_that_was_written_by_another_name_was_not_there_from_the_beginning() {
    let slots = [
        Slot::new(1, 0, 64).live(0..2),
        Slot::new(2, 0, 64).live(0..2).alias_of(1),
        Slot::new(3, 0, 64).live(2..4),
    ];
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    let found = hazard(&plan, &[Step::default(), Step::new([], [2]), Step::new([], [3]), Step::new([1], [])]);
    let found = found.unwrap();
    assert!(matches!(&found, Hazard::Clobbered { step: 3, written: Some(1), overwritten: 2, .. }), "{found}");
}

#[test]
fn a_step_that_reads_and_writes_a_hundred_thousand_nodes_is_checked() {
    let count = 100_000;
    let parts = (1..=count).map(|node| Slot::new(node, node * 8 - 8, 8).alias_of(0));
    let plan = MemoryPlan::builder().slot(Slot::new(0, 0, count * 8)).slots(parts).build().unwrap();
    let started = std::time::Instant::now();
    assert_eq!(hazard(&plan, &[Step::new(0..=count, 1..=count)]), None);
    // Each read meets the first write, which holds all others: that was a look at every write.
    let found = hazard(&plan, &[Step::new(1..=count, 0..=count)]).unwrap();
    assert!(matches!(found, Hazard::WrittenTwice { step: 0, .. }), "{found}");
    let most = std::time::Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 15 });
    assert!(started.elapsed() < most, "{:?}", started.elapsed());
}
