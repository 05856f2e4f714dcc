//! What building checks, and what a plan says of itself.

use device_arena::plan::{Busiest, MemoryPlan, PlanFault, Slot};
use device_arena::{Error, Status};
use device_arena_model::clashing;
use proptest::prelude::any;
use proptest::{prop_assert, prop_assert_eq, proptest};

use crate::buffers::{config, slots};

#[expect(clippy::result_large_err, reason = "what was refused is looked at")]
fn build(slots: impl IntoIterator<Item = Slot>) -> Result<MemoryPlan, PlanFault> {
    MemoryPlan::builder().slots(slots).build().map_err(|error| {
        assert_eq!(error.status(), Status::InvalidArgument);
        let Error::Plan(fault) = error else { panic!("{error}") };
        *fault
    })
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn slots_clash_where_a_pair_of_them_does(slots in slots(12)) {
        let clashes = clashing(&slots);
        match build(slots.clone()) {
            Ok(plan) => {
                prop_assert!(clashes.is_empty(), "{clashes:?}");
                prop_assert_eq!(plan.len(), slots.len());
            }
            Err(PlanFault::Overlap { first, second }) => {
                let pair = (first.node, second.node);
                prop_assert!(clashes.contains(&pair), "{pair:?} of {clashes:?}");
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_fingerprint_tells_every_change(
        slots in slots(8),
        index in any::<usize>(),
        change in 0..9u8,
        by in 1..5u64,
    ) {
        // Laid out one above another, so that every change is a plan.
        let mut changed = slots;
        for (index, slot) in changed.iter_mut().enumerate() {
            slot.offset += 1000 * index as u64;
            slot.alias_of = None;
        }
        let plan = MemoryPlan::builder().total(100_000).slots(changed.clone()).build().unwrap();
        let shuffled: Vec<_> = changed.iter().rev().cloned().collect();
        let again = MemoryPlan::builder().total(100_000).slots(shuffled).build().unwrap();
        prop_assert_eq!(&again, &plan);
        prop_assert_eq!(again.fingerprint(), plan.fingerprint());

        let mut builder = MemoryPlan::builder().total(100_000);
        if changed.is_empty() || change == 0 {
            builder = builder.total(100_000 + by);
        } else if change == 1 {
            builder = builder.alignment_of_start(1 << by);
        } else {
            let index = index % changed.len();
            let last = changed.len() as u64;
            let slot = &mut changed[index];
            match change {
                2 => slot.offset += by,
                3 => slot.size += by,
                4 => slot.node += 1000 * by,
                5 => {
                    slot.alignment = 1 << by;
                    slot.offset = slot.offset.next_multiple_of(1 << by);
                }
                6 => slot.lifetime = slot.lifetime.clone().map_or(Some(0..by), |steps| Some(steps.start..steps.end + by)),
                7 => slot.lifetime = slot.lifetime.take().xor(Some(3..4)),
                _ => {
                    let mut alias = slot.clone().alias_of(slot.node);
                    alias.node = last;
                    changed.push(alias);
                }
            }
        }
        let other = builder.slots(changed).build().unwrap();
        prop_assert!(other == plan || other.fingerprint() != plan.fingerprint());
        prop_assert!(other != plan || other.fingerprint() == plan.fingerprint());
        prop_assert!(other != plan, "the change was none");
    }
}

/// Computed by another program from what the documentation says, so that no release changes it unseen.
#[test]
fn fingerprints_are_what_they_were() {
    let empty = build([]).unwrap();
    let slots = [
        Slot::new(7, 0, 512).aligned(256).live(0..4),
        Slot::new(u64::MAX, 512, 64),
        Slot::new(8, 0, 100).live(3..9).alias_of(7).named("view"),
    ];
    let plan = MemoryPlan::builder().total(1 << 40).slots(slots).build().unwrap();
    assert_eq!(format!("{:032x}", empty.fingerprint()), "698d944fd6df282f31389b6af7f5f29a");
    assert_eq!(format!("{:032x}", plan.fingerprint()), "83c131730062e84a7e1bb506a571fd84");
}

#[test]
fn names_are_for_reports_alone() {
    let named = |name: &str| build([Slot::new(1, 0, 8).named(name)]).unwrap().fingerprint();
    assert_eq!(named("one"), named("other"));
}

#[test]
fn each_rule_names_what_breaks_it() {
    let slot = |node| Slot::new(node, 0, 64);
    let alignment = build([slot(1).aligned(3)]).unwrap_err();
    assert_eq!(alignment.to_string(), "node 1: an alignment of 3 bytes is not a power of two");
    assert!(build([slot(1).aligned(0)]).is_err());
    let misaligned = build([Slot::new(1, 8, 64).aligned(16)]).unwrap_err();
    assert_eq!(misaligned.to_string(), "node 1 (64 bytes at 8, live always) is not aligned to 16 bytes");
    let overflow = build([Slot::new(1, u64::MAX, 1)]).unwrap_err();
    assert!(matches!(overflow, PlanFault::Overflow { .. }));
    let duplicate = build([slot(1).live(0..1), slot(1).live(1..2)]).unwrap_err();
    assert_eq!(duplicate, PlanFault::Duplicate { node: 1 });
    #[expect(clippy::reversed_empty_ranges, reason = "it is what is refused")]
    for empty in [3..3, 4..3] {
        assert_eq!(
            build([slot(1).live(empty.clone())]),
            Err(PlanFault::Lifetime { node: 1, lifetime: empty })
        );
    }
    let overlap = build([slot(1).live(0..5), Slot::new(2, 63, 2).live(4..6).named("late")]).unwrap_err();
    assert_eq!(
        overlap.to_string(),
        "node 1 (64 bytes at 0, live in 0..5) and node 2 `late` (2 bytes at 63, live in 4..6) share bytes"
    );
    assert_eq!(build([slot(1).alias_of(2)]), Err(PlanFault::UnknownAlias { node: 1, alias_of: 2 }));
    assert_eq!(build([slot(1).alias_of(1)]), Err(PlanFault::AliasCycle { node: 1 }));
    let cycle = build([slot(0).alias_of(1), slot(1).alias_of(2), slot(2).alias_of(3), slot(3).alias_of(1)]);
    assert!(matches!(cycle, Err(PlanFault::AliasCycle { .. })));
    let outside = build([slot(1), Slot::new(2, 60, 5).alias_of(1)]).unwrap_err();
    assert!(matches!(outside, PlanFault::AliasOutside { .. }));

    let total = MemoryPlan::builder().total(63).slot(slot(1)).build().unwrap_err();
    assert_eq!(
        total.to_string(),
        "the plan is refused: node 1 (64 bytes at 0, live always) ends beyond the plan's 63 bytes"
    );
    assert!(MemoryPlan::builder().alignment(12).build().is_err());
    assert!(MemoryPlan::builder().alignment_of_start(12).build().is_err());
    assert!(MemoryPlan::builder().alignment(128).slots([slot(1), Slot::new(2, 64, 1)]).build().is_err());
}

#[test]
fn siblings_of_one_node_may_share_its_bytes_and_strangers_may_not() {
    let family = [
        Slot::new(1, 0, 100).live(0..3),
        Slot::new(2, 0, 50).live(2..9).alias_of(1),
        Slot::new(3, 10, 20).live(2..9).alias_of(2),
        Slot::new(4, 20, 50).live(4..5).alias_of(1),
    ];
    build(family.clone()).unwrap();
    // Node 2 is live long after node 1 is.
    let mut stranger = Slot::new(9, 49, 10).live(8..9);
    let refused = build(family.iter().cloned().chain([stranger.clone()])).unwrap_err();
    assert!(
        matches!(&refused, PlanFault::Overlap { first, second } if (first.node, second.node) == (2, 9)),
        "{refused}"
    );
    // Behind its bytes node 1 has made room.
    stranger.offset = 50;
    build(family.into_iter().chain([stranger])).unwrap();
}

#[test]
fn a_chain_of_aliases_a_hundred_thousand_long_is_followed() {
    let count = 100_000;
    let chain =
        (0..count).map(|node| Slot::new(node, 0, 8).alias_of(node + 1)).chain([Slot::new(count, 0, 8)]);
    let plan = build(chain).unwrap();
    assert_eq!(plan.root(0).map(|slot| slot.node), Some(count));
    let ring = (0..count).map(|node| Slot::new(node, 0, 8).alias_of((node + 1) % count));
    assert!(matches!(build(ring), Err(PlanFault::AliasCycle { .. })));
}

#[test]
fn lookups_and_order_are_by_node() {
    let plan = build([9, u64::MAX, 4, 0].map(|node| Slot::new(node, node % 7 * 64, 64))).unwrap();
    assert_eq!(plan.iter().map(|slot| slot.node).collect::<Vec<_>>(), [0, 4, 9, u64::MAX]);
    assert!(plan.has(4) && !plan.has(5) && plan.get(5).is_none() && plan.root(5).is_none());
    assert_eq!((&plan).into_iter().len(), plan.len());
}

#[test]
fn the_busiest_steps_count_what_shares_bytes_once() {
    let plan = build([
        Slot::new(1, 0, 100).live(0..4),
        Slot::new(2, 100, 50).live(2..6),
        Slot::new(3, 100, 50).live(5..8).alias_of(2),
        Slot::new(4, 150, 7),
        Slot::new(5, 0, 100).live(4..7),
    ])
    .unwrap();
    let Some(Busiest { steps, bytes, .. }) = plan.busiest() else { panic!("there are lifetimes") };
    assert_eq!((steps, bytes), (2..7, 157), "node 5 takes the room of node 1");
    assert_eq!(build([Slot::new(1, 0, 8)]).unwrap().busiest(), None);
}

/// The most bytes that any live slot covers, byte by byte.
fn most_covered(slots: &[Slot]) -> Option<u64> {
    let steps = slots.iter().filter_map(|slot| slot.lifetime.clone()).flatten();
    let at = |step: u64| {
        let live =
            slots.iter().filter(|slot| slot.lifetime.as_ref().is_none_or(|steps| steps.contains(&step)));
        live.flat_map(|slot| slot.offset..slot.offset + slot.size)
            .collect::<std::collections::HashSet<_>>()
            .len()
    };
    steps.map(|step| at(step) as u64).max()
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn no_more_bytes_are_live_than_there_are(slots in slots(10)) {
        let Ok(plan) = build(slots.clone()) else { return Ok(()) };
        let busiest = plan.busiest();
        prop_assert_eq!(busiest.as_ref().map(|busiest| busiest.bytes), most_covered(&slots));
        let is_within = |busiest: &Busiest| busiest.bytes <= plan.total() && !busiest.steps.is_empty();
        prop_assert!(busiest.as_ref().is_none_or(is_within), "{busiest:?}");
    }
}

#[test]
fn an_alias_that_outlives_its_node_is_counted_without_the_steps_between() {
    let plan = build([
        Slot::new(1, 0, 100).live(0..2),
        Slot::new(2, 0, 60).live(8..10).alias_of(1),
        Slot::new(3, 0, 90).live(3..5),
        Slot::new(4, 60, 45).live(8..9),
    ])
    .unwrap();
    let Some(Busiest { steps, bytes, .. }) = plan.busiest() else { panic!("there are lifetimes") };
    assert_eq!((steps, bytes), (8..9, 105));
    let report = plan.report(9);
    assert!(report.contains("105 bytes, 100.0% of the peak, in 2 nodes"), "{report}");
    assert!(report.contains("2, live in 8..10") && !report.contains("1, live in 0..2"), "{report}");
}

#[test]
fn a_plan_goes_between_threads() {
    fn assert_shared<T: Send + Sync + 'static>() {}
    assert_shared::<MemoryPlan>();
    assert_shared::<device_arena::plan::Planner>();
    assert_shared::<device_arena::plan::Planned>();
}
