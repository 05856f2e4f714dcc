//! Buffers that can't be planned.

use device_arena::Error;
use device_arena::plan::{Buffer, PlanFault, Planner, lower_bound};

fn refused(buffers: &[Buffer]) -> PlanFault {
    let Err(Error::Plan(fault)) = Planner::new().plan(buffers) else { panic!("{buffers:?} are planned") };
    assert_eq!(lower_bound(buffers), Err(Error::Plan(fault.clone())));
    *fault
}

#[test]
fn each_rule_names_the_buffer_that_breaks_it() {
    let one = || Buffer::new(1, 0..2, 64);
    assert_eq!(refused(&[one(), one()]), PlanFault::Duplicate { node: 1 });
    assert!(matches!(refused(&[one().aligned(0)]), PlanFault::Alignment { alignment: 0, .. }));
    assert!(matches!(refused(&[one().aligned(24)]), PlanFault::Alignment { alignment: 24, .. }));
    assert_eq!(refused(&[Buffer::new(1, 5..5, 1)]), PlanFault::Lifetime { node: 1, lifetime: 5..5 });
    assert_eq!(refused(&[one().alias_of(2)]), PlanFault::UnknownAlias { node: 1, alias_of: 2 });
    assert_eq!(refused(&[one().alias_of(1)]), PlanFault::AliasCycle { node: 1 });
    let larger = refused(&[one(), Buffer::new(2, 0..2, 65).alias_of(1)]);
    assert_eq!(larger.to_string(), "node 2 of 65 bytes is an alias of node 1, which has 64 bytes");
    let apart = refused(&[one().at(0), Buffer::new(2, 0..2, 64).at(64).alias_of(1)]);
    assert_eq!(apart.to_string(), "node 2 is fixed at 64, but node 1, whose bytes it shares, at 0");
    let misaligned = refused(&[one().at(8), Buffer::new(2, 0..2, 64).aligned(16).alias_of(1)]);
    assert!(matches!(misaligned, PlanFault::Misaligned { alignment: 16, .. }));
    let clash = refused(&[one().at(0), Buffer::new(2, 1..2, 64).at(63)]);
    assert!(matches!(clash, PlanFault::Overlap { .. }));
    // What is pinned is there all the time.
    assert!(matches!(
        refused(&[one().at(0).pinned(), Buffer::new(2, 8..9, 64).at(63)]),
        PlanFault::Overlap { .. }
    ));
    assert!(Planner::new().alignment(3).plan(&[one()]).is_err());
}

#[test]
fn sizes_that_leave_sixty_three_bits_are_refused_by_the_node() {
    let half = 1 << 62;
    assert_eq!(
        refused(&[Buffer::new(1, 0..1, half), Buffer::new(2, 1..2, half)]),
        PlanFault::TooLarge { node: 2 }
    );
    assert_eq!(refused(&[Buffer::new(1, 0..1, u64::MAX)]), PlanFault::TooLarge { node: 1 });
    assert_eq!(refused(&[Buffer::new(1, 0..1, 1).at(u64::MAX)]), PlanFault::TooLarge { node: 1 });
    assert_eq!(refused(&[Buffer::new(1, 0..1, 1).aligned(1 << 63)]), PlanFault::TooLarge { node: 1 });
    let most = [Buffer::new(1, 0..u64::MAX, half - 8), Buffer::new(2, 0..u64::MAX, half - 8)];
    assert_eq!(Planner::new().plan(&most).unwrap().peak(), 2 * half - 16);
}
