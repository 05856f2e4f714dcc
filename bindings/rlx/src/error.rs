//! Why a plan is not taken.

use rlx_ir::NodeId;

/// Why a plan of rlx's is refused. Every variant names the nodes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan breaks a rule of device-arena's: an alignment, the arena's end, bytes that two nodes have at once.
    #[error(transparent)]
    Rule(#[from] device_arena::Error),
    /// A node that the graph does not have, or has in another place than its number says: the plan is another graph's.
    #[error("node {node} is not the graph's")]
    UnknownNode {
        /// The node.
        node: NodeId,
    },
    /// A node that runs twice.
    #[error("node {node} is scheduled at step {first} and again at step {second}")]
    ScheduledTwice {
        /// The node.
        node: NodeId,
        /// Where it runs.
        first: usize,
        /// Where it runs again.
        second: usize,
    },
    /// A node that is to be computed, has a slot or is an output, and never runs.
    #[error("node {node} is never scheduled")]
    Unscheduled {
        /// The node.
        node: NodeId,
    },
    /// A node that runs before one that it reads.
    #[error("node {node} is scheduled at step {step}, before node {input}, which it reads")]
    OutOfOrder {
        /// The node.
        node: NodeId,
        /// Where it runs.
        step: usize,
        /// What it reads.
        input: NodeId,
    },
    /// A node that runs and has no slot, though nothing says that it needs none. Where its shape has dimensions that
    /// are not known yet, bind them and plan again.
    #[error("node {node} is computed and has no slot")]
    Unplaced {
        /// The node.
        node: NodeId,
    },
    /// A view whose slot does not begin where its place in the node that it is a view of says, or that node has none.
    #[error(
        "node {node} at {offset} is a view of node {root}, {within} bytes into it, and does not lie there"
    )]
    ViewElsewhere {
        /// The view.
        node: NodeId,
        /// Where its slot begins.
        offset: usize,
        /// Whose bytes it is to share.
        root: NodeId,
        /// How far into that node it is to begin.
        within: usize,
    },
}
