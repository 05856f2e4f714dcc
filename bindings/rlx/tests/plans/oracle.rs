//! What a graph asks for, worked out from the graph in the plainest way; it shares nothing with the crate.

use device_arena::plan::Buffer;
use rlx_compile::is_elidable_folded_transpose;
use rlx_compile::memory::{MemoryPlan, collect_view_aliases};
use rlx_ir::{Graph, NodeId, Op};

/// A buffer for each node that has a slot: its tensor's true bytes, live as the schedule has it.
pub fn buffers(graph: &Graph, theirs: &MemoryPlan, alignment: u64) -> Vec<Buffer> {
    let views = collect_view_aliases(graph);
    let step = |node: NodeId| theirs.schedule.iter().position(|entry| *entry == node).expect("scheduled");
    // Who reads what, when; through a transpose that was absorbed as well.
    let mut reads: Vec<(NodeId, usize)> = Vec::new();
    for reader in graph.nodes() {
        for input in &reader.inputs {
            let source = graph.node(*input);
            let is_absorbed =
                !theirs.assignments.contains_key(input) && is_elidable_folded_transpose(graph, source);
            reads.push((*input, step(reader.id)));
            reads.extend(source.inputs.iter().filter(|_| is_absorbed).map(|input| (*input, step(reader.id))));
        }
    }
    reads.extend(graph.outputs.iter().map(|output| (*output, theirs.schedule.len())));

    let mut buffers = Vec::new();
    for node in graph.nodes() {
        if !theirs.assignments.contains_key(&node.id) {
            continue;
        }
        // What reads a view reads the node at the end of its chain.
        let is_mine =
            |read: NodeId| read == node.id || views.get(&read).is_some_and(|(root, _)| *root == node.id);
        let last = reads.iter().filter(|(read, _)| is_mine(*read)).map(|(_, step)| *step).max();
        let last = last.unwrap_or(0).max(step(node.id));
        let size = node.shape.size_bytes().expect("known") as u64;
        let mut buffer = Buffer::new(u64::from(node.id.0), step(node.id) as u64..last as u64 + 1, size);
        if matches!(node.op, Op::Input { .. } | Op::Param { .. } | Op::Constant { .. }) {
            buffer = buffer.pinned();
        }
        match views.get(&node.id) {
            Some((root, _)) => buffer = buffer.alias_of(u64::from(root.0)),
            None => buffer = buffer.aligned(alignment),
        }
        buffers.push(buffer);
    }
    buffers
}
