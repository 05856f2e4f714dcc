//! Plans that are taken as they are.

use std::collections::HashMap;

use device_arena::plan::{MemoryPlan, Planner, Step};
use device_arena_rlx::{plan, steps};
use rlx_compile::memory::{MemoryPlan as RlxPlan, collect_view_aliases};
use rlx_compile::plan_check::check_plan;
use rlx_compile::{CompilePipeline, FusionTarget};
use rlx_ir::hir::HirModule;
use rlx_ir::op::Activation;
use rlx_ir::{DType, Graph, Op, Shape};

use crate::{graphs, oracle};

fn hold(name: &str, graph: &Graph, theirs: &RlxPlan, alignment: u64) -> MemoryPlan {
    let case = format!("{name}, {}", graph.name);
    let ours = plan(graph, theirs, alignment).unwrap_or_else(|error| panic!("{case}: {error}"));

    // Nothing is lost.
    assert_eq!(ours.total(), theirs.arena_size as u64, "{case}");
    assert_eq!(ours.alignment(), alignment.max(1), "{case}");
    assert_eq!(ours.len(), theirs.assignments.len(), "{case}");
    let views = collect_view_aliases(graph);
    for (node, placed) in &theirs.assignments {
        let slot = ours.get(u64::from(node.0)).unwrap_or_else(|| panic!("{case}: {node} is lost"));
        assert_eq!((slot.offset, slot.size), (placed.offset as u64, placed.size as u64), "{case}: {node}");
        let (root, within) = views.get(node).copied().unwrap_or((*node, 0));
        assert_eq!(slot.alias_of, (root != *node).then_some(u64::from(root.0)), "{case}: {node}");
        let root = ours.get(u64::from(root.0)).unwrap_or_else(|| panic!("{case}: {root} is lost"));
        assert_eq!(slot.offset, root.offset + within as u64, "{case}: {node}");
    }

    // The verifier, with lifetimes and sizes that the crate had no hand in. It asks aliases to begin where their target
    // does, so views that begin further in, which building has held within their target, stay outside.
    let buffers = oracle::buffers(graph, theirs, alignment);
    for buffer in &buffers {
        let slot = ours.get(buffer.id).expect("a slot");
        let lifetime = (!buffer.pinned).then(|| buffer.lifetime.clone());
        assert_eq!(slot.lifetime, lifetime, "{case}: {slot}");
    }
    let begins_with_root =
        |id: u64| ours.get(id).map(|slot| slot.offset) == ours.root(id).map(|root| root.offset);
    let whole: Vec<_> = buffers.into_iter().filter(|buffer| begins_with_root(buffer.id)).collect();
    let slots = ours.iter().filter(|slot| begins_with_root(slot.node)).cloned();
    let held = MemoryPlan::builder().total(ours.total()).slots(slots).build().expect("a part of a plan");
    held.verify(&whole).unwrap_or_else(|error| panic!("{case}: {error}"));

    let steps = steps(graph, theirs).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(steps.len(), theirs.schedule.len() + 1, "{case}");
    ours.verify_schedule(&steps).unwrap_or_else(|error| panic!("{case}: {error}"));

    // And rlx's own check is of the same mind.
    let report = check_plan(graph, theirs);
    assert!(report.is_clean(), "{case}: {}", report.render());
    ours
}

#[test]
fn what_rlx_plans_passes_the_verifier_under_every_option() {
    let (mut plans, mut views, mut reused) = (0, 0, 0);
    for graph in graphs::all() {
        for (name, alignment, planner) in graphs::planners() {
            let theirs = planner(&graph);
            let ours = hold(&name, &graph, &theirs, alignment);
            plans += 1;
            views += ours.iter().filter(|slot| slot.alias_of.is_some()).count();
            let sizes: u64 = ours.iter().filter(|slot| slot.alias_of.is_none()).map(|slot| slot.size).sum();
            reused += usize::from(sizes > ours.total());
        }
    }
    println!("{plans} plans, {views} views, {reused} plans that reuse room");
    // What this test is of has to be there.
    assert!(plans > 900 && views > 1000 && reused > 100, "{plans} plans, {views} views, {reused} that reuse");
}

#[test]
fn what_an_absorbed_transpose_would_have_read_lives_until_the_product() {
    let square = Shape::new(&[graphs::COLUMNS, graphs::COLUMNS], DType::F32);
    let mut graph = Graph::new("turned");
    let weight = graph.param("weight", square.clone());
    let x = graph.input("x", square.clone());
    let source = graph.matmul(x, weight, square.clone());
    let turned = graph.add_node(Op::Transpose { perm: vec![1, 0] }, vec![source], square.clone());
    let mut other = x;
    for _ in 0..4 {
        other = graph.activation(Activation::Gelu, other, square.clone()); // these would like its room
    }
    let product = graph.matmul(other, turned, square);
    graph.set_outputs(vec![product]);
    for (name, alignment, planner) in graphs::planners() {
        let theirs = planner(&graph);
        let ours = hold(&name, &graph, &theirs, alignment);
        let is_absorbed = !ours.has(u64::from(turned.0));
        assert_eq!(
            is_absorbed,
            ["transposes absorbed", "native in order"].contains(&name.as_str()),
            "{name}"
        );
        let last = if is_absorbed { product } else { turned };
        let source = ours.get(u64::from(source.0)).expect("a slot");
        assert_eq!(source.lifetime, Some(2..u64::from(last.0) + 1), "{name}");
    }
}

#[test]
fn steps_are_what_the_schedule_does() {
    let shape = graphs::f32s(4);
    let mut graph = Graph::new("steps");
    let cache = graph.input("cache", shape.clone());
    let row = graph.input("row", graphs::f32s(1));
    let busy = graph.activation(Activation::Gelu, row, graphs::f32s(1));
    let appended = graph.add_node(Op::KvAppend { axis: 0, pos: 3 }, vec![cache, busy], shape.clone());
    let flat = graph.reshape(appended, vec![96], Shape::new(&[96], DType::F32));
    let out = graph.activation(Activation::Gelu, flat, Shape::new(&[96], DType::F32));
    graph.set_outputs(vec![out]);
    let theirs = graphs::planners()[0].2(&graph);
    let expected = [
        Step::default(), // inputs are there before the first step
        Step::default(),
        Step::new([1], [2]),
        Step::new([0, 2], [3]), // in place
        Step::new([3], []),     // a view
        Step::new([4], [5]),
        Step::new([0, 1, 5], []), // what is left
    ];
    assert_eq!(steps(&graph, &theirs).expect("steps"), expected);
    assert_eq!((busy.0, appended.0, flat.0, out.0), (2, 3, 4, 5));

    // Where the cache is in another arena, the row is read all the same, and nothing is written here.
    let mut elsewhere = theirs.clone();
    elsewhere.assignments.retain(|node, _| ![cache, appended, flat].contains(node));
    let steps = steps(&graph, &elsewhere).expect("steps");
    assert_eq!(
        (&steps[3], &steps[4], &steps[5]),
        (&Step::new([2], []), &Step::default(), &Step::new([], [5]))
    );
    assert_eq!(plan(&graph, &elsewhere, 64).expect("a plan").get(2).expect("a slot").lifetime, Some(2..4));
}

#[test]
fn a_compiled_module_is_taken_with_its_own_alignment() {
    let shape = |rows, columns| Shape::new(&[rows, columns], DType::F32);
    let mut hir = HirModule::new("two layers");
    let mut hidden = hir.input("x", shape(2, 128));
    for layer in ["first", "second"] {
        let weight = hir.param(layer, shape(128, 128));
        hidden = hir.linear(hidden, weight, None, None, shape(2, 128));
    }
    hir.outputs = vec![hidden];
    for target in [FusionTarget::Cpu, FusionTarget::Cuda, FusionTarget::Rocm, FusionTarget::Wgpu] {
        let lir = CompilePipeline::new(target).compile_hir(hir.clone()).expect("compiled").lir;
        let ours =
            hold("compiled", lir.as_graph(), &RlxPlan::from(&lir.buffers), lir.buffers.alignment as u64);
        let names: Vec<_> = ours.iter().filter_map(|slot| slot.name.as_deref()).collect();
        assert!(["x", "first", "second"].iter().all(|name| names.contains(name)), "{names:?}");
    }
}

#[test]
fn the_order_of_their_map_does_not_count() {
    let graph = graphs::mixed(7);
    let theirs = graphs::planners()[0].2(&graph);
    let first = plan(&graph, &theirs, 64).expect("a plan");
    for _ in 0..8 {
        // A new map has another order.
        let assignments: HashMap<_, _> =
            theirs.assignments.iter().map(|(id, slot)| (*id, slot.clone())).collect();
        let again = plan(&graph, &RlxPlan { assignments, ..theirs.clone() }, 64).expect("a plan");
        assert_eq!(again.fingerprint(), first.fingerprint());
        assert_eq!(again, first);
    }
}

#[test]
fn the_same_graph_can_be_planned_by_device_arena() {
    let graph = graphs::chain(12);
    for (name, alignment, planner) in graphs::planners() {
        let theirs = planner(&graph);
        let buffers = oracle::buffers(&graph, &theirs, alignment);
        let planned = Planner::new().alignment(alignment).plan(&buffers).expect("planned");
        assert!(
            planned.peak() <= theirs.arena_size as u64,
            "{name}: {} > {}",
            planned.peak(),
            theirs.arena_size
        );
        let ours = planned.into_plan();
        ours.verify_schedule(&steps(&graph, &theirs).expect("steps")).expect("no hazard");
    }
}

#[test]
fn a_graph_without_nodes_is_a_plan_without_slots() {
    let graph = Graph::new("empty");
    let theirs = graphs::planners()[0].2(&graph);
    let ours = plan(&graph, &theirs, 64).expect("a plan");
    assert!(ours.is_empty() && ours.total() == 0);
    assert_eq!(steps(&graph, &theirs).expect("steps").len(), 1);
}
