//! Plans that are refused, by the names of their nodes.

use device_arena::Error as Arena;
use device_arena::plan::{Hazard, NodeOrPlan, PlanFault, Step};
use device_arena_rlx::{Error, plan, steps};
use rlx_compile::memory::{
    ArenaWidthPolicy, BufferSlot, MemoryPlan, MemoryPlanOptions, SharedWeightLayout, plan_memory,
    plan_memory_aligned, plan_memory_backward, plan_memory_native_in_order, plan_memory_with_options,
    plan_memory_with_policy,
};
use rlx_compile::plan_check::check_plan;
use rlx_ir::{DType, Dim, Graph, NodeId, Op, Shape};

use crate::{graphs, oracle};

fn fault(refused: Result<device_arena::plan::MemoryPlan, Error>) -> PlanFault {
    match refused {
        Err(Error::Rule(Arena::Plan(fault))) => *fault,
        other => panic!("{other:?}"),
    }
}

/// Every slot on every other's place: refused where both are live at once, and taken where they are not.
#[test]
fn slots_on_each_other_are_refused_exactly_where_both_are_live() {
    let (mut refused, mut taken) = (0, 0);
    for graph in [graphs::chain(5), graphs::mixed(3), graphs::mixed(11)] {
        let theirs = plan_memory_with_options(
            &graph,
            64,
            MemoryPlanOptions { arena_no_reuse: true, ..MemoryPlanOptions::inference() },
        );
        let buffers = oracle::buffers(&graph, &theirs, 64);
        let views: Vec<u64> = buffers.iter().filter_map(|buffer| buffer.alias_of).collect();
        // What has views would leave them behind.
        let alone: Vec<_> =
            buffers.iter().filter(|one| one.alias_of.is_none() && !views.contains(&one.id)).collect();
        for moved in &alone {
            for onto in alone.iter().filter(|onto| onto.id != moved.id && onto.size >= moved.size) {
                let node = |id: u64| NodeId(id as u32);
                let mut broken = theirs.clone();
                let offset = broken.assignments[&node(onto.id)].offset;
                broken.assignments.get_mut(&node(moved.id)).expect("a slot").offset = offset;
                let meets = moved.pinned
                    || onto.pinned
                    || moved.lifetime.start < onto.lifetime.end && onto.lifetime.start < moved.lifetime.end;
                if meets {
                    let PlanFault::Overlap { first, second } = fault(plan(&graph, &broken, 64)) else {
                        panic!("{moved:?} on {onto:?}")
                    };
                    let (low, high) = (moved.id.min(onto.id), moved.id.max(onto.id));
                    assert_eq!((first.node, second.node), (low, high));
                    refused += 1;
                } else {
                    let ours = plan(&graph, &broken, 64).expect("the two take turns");
                    ours.verify_schedule(&steps(&graph, &broken).expect("steps")).expect("no hazard");
                    assert!(check_plan(&graph, &broken).is_clean(), "{moved:?} on {onto:?}");
                    taken += 1;
                }
            }
        }
    }
    println!("{refused} refused, {taken} taken");
    assert!(refused > 100 && taken > 20, "{refused} refused, {taken} taken");
}

#[test]
fn rules_of_a_slot_alone_are_held() {
    let graph = graphs::chain(3);
    let theirs = plan_memory(&graph);
    let node = graph.outputs[0];
    let with = |change: &dyn Fn(&mut BufferSlot)| {
        let mut broken = theirs.clone();
        change(broken.assignments.get_mut(&node).expect("a slot"));
        fault(plan(&graph, &broken, 64))
    };
    let is_it = |slot: &device_arena::plan::Slot| slot.node == u64::from(node.0);
    assert!(
        matches!(with(&|slot| slot.offset += 4), PlanFault::Misaligned { slot, alignment: 64 } if is_it(&slot))
    );
    assert!(
        matches!(with(&|slot| slot.offset = 1 << 40), PlanFault::OutOfBounds { slot, .. } if is_it(&slot))
    );
    assert!(
        matches!(with(&|slot| slot.offset = usize::MAX - 63), PlanFault::Overflow { slot } if is_it(&slot))
    );
    assert!(matches!(with(&|slot| slot.size -= 4), PlanFault::TooSmall { slot, .. } if is_it(&slot)));

    let mut small = theirs.clone();
    small.arena_size = 64;
    assert!(matches!(fault(plan(&graph, &small, 64)), PlanFault::OutOfBounds { total: 64, .. }));
    for alignment in [0, 48] {
        let refused = fault(plan(&graph, &theirs, alignment));
        assert_eq!(refused, PlanFault::Alignment { node: NodeOrPlan::Plan, alignment });
    }
    // More than the planner was given.
    let loose = plan_memory_aligned(&graphs::decode(1), 4);
    assert!(matches!(fault(plan(&graphs::decode(1), &loose, 4096)), PlanFault::Misaligned { .. }));
}

#[test]
fn schedules_that_do_not_compute_the_graph_are_refused() {
    let graph = graphs::chain(3);
    let theirs = plan_memory(&graph);
    let last = graph.outputs[0];
    let before = graph.node(last).inputs[0];
    let with = |change: &dyn Fn(&mut MemoryPlan)| {
        let mut broken = theirs.clone();
        change(&mut broken);
        let by_steps = steps(&graph, &broken).unwrap_err();
        let by_plan = plan(&graph, &broken, 64).unwrap_err();
        assert_eq!(by_steps.to_string(), by_plan.to_string());
        by_plan
    };
    let count = theirs.schedule.len();
    assert!(matches!(
        with(&|plan| plan.schedule.swap(count - 1, count - 2)),
        Error::OutOfOrder { node, step, input } if node == last && step == count - 2 && input == before
    ));
    assert!(matches!(
        with(&|plan| plan.schedule.push(before)),
        Error::ScheduledTwice { node, first, second } if node == before && first == count - 2 && second == count
    ));
    assert!(matches!(
        with(&|plan| plan.schedule.truncate(count - 1)),
        Error::Unscheduled { node } if node == last
    ));
    assert!(matches!(
        with(&|plan| plan.assignments.retain(|node, _| *node != before)),
        Error::Unplaced { node } if node == before
    ));
    let slot = BufferSlot { offset: 0, size: 4 };
    for extra in [NodeId(count as u32), NodeId(u32::MAX)] {
        assert!(matches!(
            with(&|plan| plan.assignments.extend([(extra, slot.clone())])),
            Error::UnknownNode { node } if node == extra
        ));
        assert!(
            matches!(with(&|plan| plan.schedule.push(extra)), Error::UnknownNode { node } if node == extra)
        );
    }
}

/// Which of two is named does not depend on the order of a map.
#[test]
fn of_unknown_nodes_the_least_is_named() {
    let graph = graphs::chain(1);
    for _ in 0..32 {
        let mut theirs = plan_memory(&graph);
        let extra = (100..108).map(|node| (NodeId(node), BufferSlot { offset: 0, size: 4 }));
        theirs.assignments.extend(extra);
        assert!(matches!(plan(&graph, &theirs, 64), Err(Error::UnknownNode { node: NodeId(100) })));
    }
}

/// What a backend may do to a schedule after it was planned.
#[test]
fn a_step_that_moves_behind_the_reuse_of_its_room_is_found() {
    let graph = graphs::chain(6);
    let theirs = plan_memory_native_in_order(&graph, 64);
    let ours = plan(&graph, &theirs, 64).expect("a plan");
    let mut steps = steps(&graph, &theirs).expect("steps");
    // The first product, and who has its room next.
    let first = ours.get(2).expect("a slot");
    let next =
        ours.iter().find(|slot| slot.node > 2 && slot.overlaps(first)).expect("its room is used again");
    steps.insert(next.node as usize + 1, Step::new([first.node], []));
    let Err(Arena::Schedule(hazard)) = ours.verify_schedule(&steps) else { panic!("a hazard") };
    assert!(
        matches!(&*hazard, Hazard::Clobbered { slot, by, .. } if slot == first && by == next),
        "{hazard}"
    );
}

#[test]
fn a_view_that_lies_elsewhere_is_refused() {
    let graph = graphs::decode(1);
    let theirs = plan_memory(&graph);
    let (view, root) = graph
        .nodes()
        .iter()
        .filter(|node| matches!(node.op, Op::Narrow { axis: 1, .. }))
        .map(|node| (node.id, node.inputs[0]))
        .nth(1)
        .expect("a view");
    let mut moved = theirs.clone();
    moved.assignments.get_mut(&view).expect("a slot").offset += 4;
    let within = graphs::COLUMNS * 4;
    let refused = plan(&graph, &moved, 64).unwrap_err();
    assert!(
        matches!(refused, Error::ViewElsewhere { node, root: of, within: at, .. } if node == view && of == root && at == within)
    );
    let text = refused.to_string();
    assert!(text.contains(&view.to_string()) && text.contains(&root.to_string()), "{text}");

    let mut lost = theirs.clone();
    lost.assignments.remove(&view);
    assert!(matches!(plan(&graph, &lost, 64).unwrap_err(), Error::Unplaced { node } if node == view));
    let mut large = theirs;
    large.assignments.get_mut(&view).expect("a slot").size = 288;
    assert!(matches!(
        fault(plan(&graph, &large, 64)),
        PlanFault::AliasOutside { alias, target }
            if (alias.node, target.node) == (u64::from(view.0), u64::from(root.0))
    ));
}

/// A fault of the planner's own: it sizes the view wider than what it is a view of.
#[test]
fn a_reshaped_parameter_of_16_bits_is_refused_where_its_view_is_widened() {
    let mut graph = Graph::new("tied weights");
    let weight = graph.param("weight", Shape::new(&[8, 16], DType::BF16));
    let flat = graph.reshape(weight, vec![128], Shape::new(&[128], DType::BF16));
    let out = graph.add_node(Op::Cast { to: DType::F32 }, vec![flat], Shape::new(&[128], DType::F32));
    graph.input("neighbour", Shape::new(&[60], DType::F32)); // whose bytes the view reaches into
    graph.set_outputs(vec![out]);
    let theirs = plan_memory_with_policy(&graph, 64, ArenaWidthPolicy::F32Uniform);
    assert!(matches!(
        fault(plan(&graph, &theirs, 64)),
        PlanFault::AliasOutside { alias, target } if (alias.node, target.node) == (1, 0)
    ));
    plan(&graph, &plan_memory_with_policy(&graph, 64, ArenaWidthPolicy::Native), 64).expect("not widened");
}

/// Its parameters are where another arena has them.
#[test]
fn a_backward_plan_is_taken_without_its_parameters() {
    let graph = graphs::chain_of(2, 3);
    let weights = SharedWeightLayout::from_forward(&graph, &plan_memory(&graph));
    let mut theirs = plan_memory_backward(&graph, 64, &weights);
    let weight = graph.param_id("weight").expect("a parameter");
    let PlanFault::Overlap { first, second } = fault(plan(&graph, &theirs, 64)) else { panic!("an overlap") };
    assert!([first.node, second.node].contains(&u64::from(weight.0)));

    theirs.assignments.remove(&weight);
    let ours = plan(&graph, &theirs, 64).expect("a plan");
    assert!(!ours.has(u64::from(weight.0)));
    ours.verify_schedule(&steps(&graph, &theirs).expect("steps")).expect("no hazard");
}

#[test]
fn a_tensor_of_unknown_size_is_refused() {
    let mut graph = Graph::new("dynamic");
    let shape = Shape::from_dims(&[Dim::Dynamic(0), Dim::Static(8)], DType::F32);
    let x = graph.input("x", shape.clone());
    let y = graph.activation(rlx_ir::op::Activation::Relu, x, shape);
    graph.set_outputs(vec![y]);
    assert!(matches!(plan(&graph, &plan_memory(&graph), 64), Err(Error::Unplaced { node }) if node == y));
}
