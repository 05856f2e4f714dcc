//! Plans as JSON, checked as they come in.

use device_arena::plan::{MemoryPlan, Planner, Slot};
use proptest::{prop_assert_eq, proptest};

use crate::buffers::{all_kinds, config};

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_plan_comes_back_as_it_was(buffers in all_kinds(12)) {
        let plan = Planner::new().steps(50).alignment(4).plan(&buffers).unwrap().into_plan();
        let text = serde_json::to_string(&plan).unwrap();
        let again: MemoryPlan = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(again.fingerprint(), plan.fingerprint());
        prop_assert_eq!(again, plan);
    }
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let slots = [Slot::new(1, 0, 8).live(0..2), Slot::new(2, 8, 8).live(1..3)];
    let plan = MemoryPlan::builder().alignment_of_start(64).total(100).slots(slots).build().unwrap();
    let text = serde_json::to_string(&plan).unwrap();
    let again: MemoryPlan = serde_json::from_str(&text).unwrap();
    assert_eq!((again.total(), again.alignment()), (100, 64));
    for (from, to, word) in
        [("\"offset\":8", "\"offset\":7", "share bytes"), ("100", "15", "beyond the plan's 15 bytes")]
    {
        let refused = serde_json::from_str::<MemoryPlan>(&text.replace(from, to)).unwrap_err().to_string();
        assert!(refused.contains(word), "{refused}");
    }
}

#[test]
fn hostile_values_are_held_against_the_rules() {
    let slot = |node: u64, offset: u64, more: &str| {
        format!("{{\"node\":{node},\"offset\":{offset},\"size\":8,\"alignment\":1{more}}}")
    };
    let of = |alignment: u64, slots: &[String]| {
        let text = format!("{{\"total\":64,\"alignment\":{alignment},\"slots\":[{}]}}", slots.join(","));
        serde_json::from_str::<MemoryPlan>(&text)
    };
    assert_eq!(of(16, &[slot(1, 0, ""), slot(0, 8, "")]).unwrap().alignment(), 16);
    let alias = |node: u64| format!(",\"alias_of\":{node}");
    let cases = [
        (of(0, &[]), "not a power of two"),
        (of(48, &[]), "not a power of two"),
        (of(1, &[slot(1, u64::MAX, "")]), "beyond the address space"),
        (of(1, &[slot(1, 57, "")]), "beyond the plan's 64 bytes"),
        (of(1, &[slot(1, 0, ""), slot(1, 8, "")]), "comes twice"),
        (of(1, &[slot(1, 0, ""), slot(2, 7, "")]), "share bytes"),
        (of(1, &[slot(1, 0, &alias(2)), slot(2, 0, &alias(1))]), "alias of itself"),
        (of(1, &[slot(1, 0, &alias(2)), slot(2, 8, "")]), "is not within"),
        (of(1, &[slot(1, 0, &alias(3))]), "does not exist"),
        (of(1, &[slot(1, 0, ",\"lifetime\":{\"start\":3,\"end\":3}")]), "has no step"),
        (of(1, &[slot(1, 0, ",\"lifetime\":{\"start\":-3,\"end\":3}")]), "-3"),
    ];
    for (refused, words) in cases {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}
