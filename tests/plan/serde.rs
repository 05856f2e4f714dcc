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
