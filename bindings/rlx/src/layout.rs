//! A graph and a plan of it, held together: which node runs when, reads what, and lies in whose bytes.

use std::collections::HashMap;

use rlx_compile::is_elidable_folded_transpose;
use rlx_compile::memory::{MemoryPlan, collect_view_aliases};
use rlx_ir::{Graph, Node, NodeId, Op};

use crate::Error;

/// What is checked of the two before anything is read from them.
pub(crate) struct Layout<'a> {
    graph: &'a Graph,
    theirs: &'a MemoryPlan,
    /// The step of each node, by its number.
    steps: Vec<Option<usize>>,
    /// Views and results computed in place: the node at the end of the chain, and how many bytes into it.
    views: HashMap<NodeId, (NodeId, usize)>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(graph: &'a Graph, theirs: &'a MemoryPlan) -> Result<Self, Error> {
        // rlx's own functions index by these numbers.
        let known = |node: NodeId| match graph.nodes().get(node.0 as usize) {
            Some(found) if found.id == node => Ok(node),
            _ => Err(Error::UnknownNode { node }),
        };
        for (place, node) in graph.nodes().iter().enumerate() {
            known(node.id)?;
            if let Some(input) = node.inputs.iter().find(|input| input.0 as usize >= place) {
                known(*input)?;
                return Err(Error::OutOfOrder { node: node.id, step: place, input: *input });
            }
        }
        for node in graph.outputs.iter().chain(&theirs.schedule) {
            known(*node)?;
        }
        // The least, since a map's order is another in each run.
        if let Some(node) = theirs.assignments.keys().filter(|node| known(**node).is_err()).min() {
            return Err(Error::UnknownNode { node: *node });
        }

        let mut steps = vec![None; graph.len()];
        for (step, node) in theirs.schedule.iter().enumerate() {
            let known = steps.get_mut(node.0 as usize);
            if let Some(first) = known.and_then(|known| known.replace(step)) {
                return Err(Error::ScheduledTwice { node: *node, first, second: step });
            }
        }
        let layout = Self { graph, theirs, steps, views: collect_view_aliases(graph) };
        for node in graph.nodes() {
            layout.check(node)?;
        }
        Ok(layout)
    }

    fn check(&self, node: &Node) -> Result<(), Error> {
        let slot = self.theirs.assignments.get(&node.id);
        let Some(step) = self.step(node.id) else {
            let is_used = slot.is_some() || self.graph.outputs.contains(&node.id);
            if is_used && !is_source(node) {
                return Err(Error::Unscheduled { node: node.id });
            }
            return Ok(());
        };
        for input in &node.inputs {
            let is_there = is_source(self.graph.node(*input));
            if !is_there && self.step(*input).is_none_or(|computed| computed >= step) {
                return Err(Error::OutOfOrder { node: node.id, step, input: *input });
            }
        }
        let root =
            self.view(node.id).map(|(root, within)| (root, within, self.theirs.assignments.get(&root)));
        match (slot, root) {
            (Some(slot), Some((root, within, storage))) => {
                let start = storage.and_then(|storage| storage.offset.checked_add(within));
                if start != Some(slot.offset) {
                    return Err(Error::ViewElsewhere { node: node.id, offset: slot.offset, root, within });
                }
            }
            (None, Some((_, _, Some(_)))) => return Err(Error::Unplaced { node: node.id }),
            (None, None) => {
                let has_no_bytes = node.shape.size_bytes() == Some(0);
                if !is_source(node) && !has_no_bytes && !is_elidable_folded_transpose(self.graph, node) {
                    return Err(Error::Unplaced { node: node.id });
                }
            }
            // A slot of its own; or a view of what has none, for which that node answers.
            (Some(_), None) | (None, Some((_, _, None))) => {}
        }
        Ok(())
    }

    pub(crate) fn step(&self, node: NodeId) -> Option<usize> {
        self.steps.get(node.0 as usize).copied().flatten()
    }

    /// Whose bytes a node has, and how far into them: none where they are its own.
    pub(crate) fn view(&self, node: NodeId) -> Option<(NodeId, usize)> {
        self.views.get(&node).copied()
    }

    /// The nodes with slots that a node reads when it runs. A transpose without one is part of the product that reads
    /// it, which reads what the transpose would have read.
    pub(crate) fn reads(&self, node: NodeId) -> Vec<NodeId> {
        let mut reads = Vec::new();
        let mut open: Vec<NodeId> = self.graph.node(node).inputs.iter().rev().copied().collect();
        while let Some(input) = open.pop() {
            let source = self.graph.node(input);
            if self.theirs.assignments.contains_key(&input) {
                reads.push(input);
            } else if matches!(source.op, Op::Transpose { .. }) && source.shape.size_bytes() != Some(0) {
                open.extend(source.inputs.iter().rev());
            }
        }
        reads
    }

    /// The nodes with slots whose bytes have to be there after the last step, in order: what the caller takes, and what
    /// the next run finds there again.
    pub(crate) fn kept(&self) -> Vec<NodeId> {
        let sources = self.graph.nodes().iter().filter(|node| is_source(node)).map(|node| node.id);
        let mut kept: Vec<NodeId> = sources.chain(self.graph.outputs.iter().copied()).collect();
        kept.retain(|node| self.theirs.assignments.contains_key(node));
        kept.sort_unstable();
        kept.dedup();
        kept
    }
}

/// Whether a node's bytes are there before the first step, and never computed.
pub(crate) fn is_source(node: &Node) -> bool {
    matches!(node.op, Op::Input { .. } | Op::Param { .. } | Op::Constant { .. })
}
