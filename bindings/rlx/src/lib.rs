#![doc = include_str!("../README.md")]

mod error;
mod layout;

use std::ops::Range;

use device_arena::plan::{MemoryPlan, PlanFault, Slot, Step};
use rlx_compile::is_pure_view;
use rlx_compile::memory::MemoryPlan as RlxPlan;
use rlx_ir::{Graph, Node, NodeId, Op};

pub use self::error::Error;
use self::layout::{Layout, is_source};

/// A plan of rlx's as one of device-arena's: every node that has a slot there has the same one here, and the arena is as
/// large. `alignment` is what rlx's planner was given, which its plan does not record; 64 with `plan_memory`.
///
/// Nodes go by rlx's numbers, and have the graph's names where it has any. What is a view of another node, or is computed
/// in place, is named as its alias. A step is a place in rlx's schedule. A slot is live from the step that computes it to
/// the last that reads it or a view of it; outputs for one step more, in which the caller reads them; inputs, parameters
/// and constants always. So a lifetime is the least that the schedule asks for: what rlx's planner kept for longer, it did
/// for backends that run out of order, and its plan does not say.
///
/// The answer does not depend on the order of rlx's map.
///
/// # Errors
///
/// The first fault. Those of graph and schedule come first, then a slot smaller than its node's tensor, then those that
/// [`PlanBuilder::build`](device_arena::plan::PlanBuilder::build) finds.
///
/// # Panics
///
/// Where rlx's own functions do: with a graph that its planner would not have taken, such as a view of nothing.
pub fn plan(graph: &Graph, theirs: &RlxPlan, alignment: u64) -> Result<MemoryPlan, Error> {
    let layout = Layout::new(graph, theirs)?;
    let lifetimes = lifetimes(graph, &layout);
    let mut builder = MemoryPlan::builder().total(theirs.arena_size as u64).alignment_of_start(alignment);
    for (node, lifetime) in graph.nodes().iter().zip(lifetimes) {
        let Some(placed) = theirs.assignments.get(&node.id) else { continue };
        let mut slot = Slot::new(id(node.id), placed.offset as u64, placed.size as u64);
        slot = match layout.view(node.id) {
            // What follows from where the root is aligned to.
            Some((root, within)) => {
                slot.alias_of(id(root)).aligned(alignment.min(1 << within.trailing_zeros().min(63)))
            }
            None => slot.aligned(alignment),
        };
        slot.lifetime = lifetime;
        slot.name = name(node).map(str::to_owned);
        if let Some(size) = node.shape.size_bytes().map(|size| size as u64)
            && slot.size < size
        {
            let fault = PlanFault::TooSmall { slot, size };
            return Err(device_arena::Error::Plan(Box::new(fault)).into());
        }
        builder = builder.slot(slot);
    }
    Ok(builder.build()?)
}

/// What rlx's schedule does, for [`MemoryPlan::verify_schedule`]: a step for each of its entries, and a last one that reads
/// what has to be left then, which is the outputs, and the inputs, parameters and constants that the next run finds there.
///
/// A view reads the node that it is a view of, and writes nothing. This is the schedule that the plan was made for; a
/// backend that fuses or moves steps runs another, which it has to spell out itself.
///
/// # Errors
///
/// The first fault of graph and schedule.
///
/// # Panics
///
/// Where [`plan`](fn@plan) does.
pub fn steps(graph: &Graph, theirs: &RlxPlan) -> Result<Vec<Step>, Error> {
    let layout = Layout::new(graph, theirs)?;
    let step = |node: &NodeId| {
        let is_computed = theirs.assignments.contains_key(node)
            && !is_source(graph.node(*node))
            && !is_pure_view(graph, graph.node(*node));
        Step::new(layout.reads(*node).into_iter().map(id), is_computed.then_some(id(*node)))
    };
    let kept = Step::new(layout.kept().into_iter().map(id), []);
    Ok(theirs.schedule.iter().map(step).chain([kept]).collect())
}

/// When each node is live, by its number; none: always.
fn lifetimes(graph: &Graph, layout: &Layout<'_>) -> Vec<Option<Range<u64>>> {
    let after = graph.nodes().iter().filter_map(|node| layout.step(node.id)).max().map_or(0, |last| last + 1);
    let mut last: Vec<usize> =
        graph.nodes().iter().map(|node| layout.step(node.id).unwrap_or_default()).collect();
    let mut read = |node: NodeId, step: usize| {
        let root = layout.view(node).map(|(root, _)| root);
        for node in [Some(node), root].into_iter().flatten() {
            if let Some(last) = last.get_mut(node.0 as usize) {
                *last = step.max(*last);
            }
        }
    };
    for node in graph.nodes() {
        if let Some(step) = layout.step(node.id) {
            for input in layout.reads(node.id) {
                read(input, step);
            }
        }
    }
    for node in layout.kept() {
        read(node, after);
    }
    let lifetime = |(node, last): (&Node, &usize)| {
        let first = layout.step(node.id).filter(|_| !is_source(node))?;
        Some(first as u64..*last as u64 + 1)
    };
    graph.nodes().iter().zip(&last).map(lifetime).collect()
}

fn id(node: NodeId) -> u64 {
    u64::from(node.0)
}

fn name(node: &Node) -> Option<&str> {
    match &node.op {
        Op::Input { name } | Op::Param { name } => Some(name),
        _ => node.name.as_deref(),
    }
}
