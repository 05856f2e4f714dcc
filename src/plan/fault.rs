//! What can be wrong with a plan, with what a planner is given, and with a schedule that runs on a plan.

use std::ops::Range;

use super::Slot;

/// Why a plan, or a list of buffers to plan, is refused. Offsets, sizes and alignments are bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// An alignment that is no power of two.
    #[error("{node}: an alignment of {alignment} bytes is not a power of two")]
    Alignment {
        /// Whose alignment.
        node: NodeOrPlan,
        /// The alignment.
        alignment: u64,
    },
    /// An offset that is no multiple of the slot's alignment, or of the plan's.
    #[error("{slot} is not aligned to {alignment} bytes")]
    Misaligned {
        /// The slot.
        slot: Slot,
        /// The alignment.
        alignment: u64,
    },
    /// A slot whose end is beyond 64 bits.
    #[error("{slot} ends beyond the address space")]
    Overflow {
        /// The slot.
        slot: Slot,
    },
    /// A slot that ends beyond the plan's total.
    #[error("{slot} ends beyond the plan's {total} bytes")]
    OutOfBounds {
        /// The slot.
        slot: Slot,
        /// The plan's total.
        total: u64,
    },
    /// A node that comes twice.
    #[error("node {node} comes twice")]
    Duplicate {
        /// The node.
        node: u64,
    },
    /// A lifetime without a step.
    #[error("node {node}: the lifetime {}..{} has no step", lifetime.start, lifetime.end)]
    Lifetime {
        /// The node.
        node: u64,
        /// Its lifetime.
        lifetime: Range<u64>,
    },
    /// Two nodes that have bytes in common and a step in which both are live, and are not named as aliases.
    #[error("{first} and {second} share bytes")]
    Overlap {
        /// The one.
        first: Slot,
        /// The other.
        second: Slot,
    },
    /// An alias of a node that does not exist.
    #[error("node {node} is an alias of node {alias_of}, which does not exist")]
    UnknownAlias {
        /// The node.
        node: u64,
        /// Whose bytes it would share.
        alias_of: u64,
    },
    /// A node that is an alias of itself, if by way of others.
    #[error("node {node} is an alias of itself")]
    AliasCycle {
        /// The node.
        node: u64,
    },
    /// An alias whose bytes are not within those of the node that it names.
    #[error("{alias} is not within {target}")]
    AliasOutside {
        /// The alias.
        alias: Slot,
        /// The node whose bytes it would share.
        target: Slot,
    },
    /// An alias that needs more bytes than the node that it names has.
    #[error("node {node} of {size} bytes is an alias of node {alias_of}, which has {target_size} bytes")]
    AliasTooLarge {
        /// The node.
        node: u64,
        /// Its size.
        size: u64,
        /// Whose bytes it shares.
        alias_of: u64,
        /// How many there are.
        target_size: u64,
    },
    /// Two fixed offsets that can't both be had, since the nodes share their first byte.
    #[error("node {node} is fixed at {offset}, but node {other}, whose bytes it shares, at {other_offset}")]
    FixedApart {
        /// The node.
        node: u64,
        /// Its fixed offset.
        offset: u64,
        /// The other node.
        other: u64,
        /// The offset of the other.
        other_offset: u64,
    },
    /// Sizes and alignments that don't fit a plan of 63 bits, were all of them live at once.
    #[error("node {node}: the sizes up to it, one after another, leave no room in 63 bits")]
    TooLarge {
        /// The first node that does not fit.
        node: u64,
    },
    /// A buffer without a slot.
    #[error("node {node} has no slot")]
    Missing {
        /// The node.
        node: u64,
    },
    /// A slot without a buffer.
    #[error("{slot} is of no buffer")]
    Unasked {
        /// The slot.
        slot: Slot,
    },
    /// A slot that is smaller than its buffer.
    #[error("{slot} is smaller than its buffer of {size} bytes")]
    TooSmall {
        /// The slot.
        slot: Slot,
        /// The size of the buffer.
        size: u64,
    },
    /// A slot that is elsewhere than its buffer has to be.
    #[error("{slot} has to be at {offset}")]
    Moved {
        /// The slot.
        slot: Slot,
        /// Where it has to be: fixed, or where the node begins whose bytes it shares.
        offset: u64,
    },
    /// A slot that is live for less than its buffer.
    #[error("{slot} is not live in all of its buffer's steps, {}", Steps(lifetime))]
    ShortLived {
        /// The slot.
        slot: Slot,
        /// When the buffer is live; none: always.
        lifetime: Option<Range<u64>>,
    },
    /// A slot that shares bytes of another node than its buffer.
    #[error("{slot} is not the alias that its buffer is")]
    OtherAlias {
        /// The slot.
        slot: Slot,
        /// The node that its buffer names.
        alias_of: Option<u64>,
    },
}

/// A node, or the plan as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeOrPlan {
    /// This node.
    Node(u64),
    /// The plan.
    Plan,
}

impl std::fmt::Display for NodeOrPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(node) => write!(f, "node {node}"),
            Self::Plan => f.write_str("the plan"),
        }
    }
}

struct Steps<'a>(&'a Option<Range<u64>>);

impl std::fmt::Display for Steps<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(steps) => write!(f, "{}..{}", steps.start, steps.end),
            None => f.write_str("which are all"),
        }
    }
}

/// Why a schedule does not keep its plan: the first step that would compute with other bytes than it means to. Steps
/// count from zero, by their place in the schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Hazard {
    /// A step names a node that the plan does not have.
    #[error("step {step}: node {node} is not in the plan")]
    Unknown {
        /// The step.
        step: usize,
        /// The node.
        node: u64,
    },
    /// A step reads a node whose bytes another node has overwritten since it was written.
    #[error("step {step} reads {slot}, {}which step {overwritten} overwrote with {by}", Since(*written))]
    Clobbered {
        /// The step that reads.
        step: usize,
        /// What it reads.
        slot: Slot,
        /// The last step that wrote it, if by the name of another node whose bytes it shares; none where it was there before
        /// the first.
        written: Option<usize>,
        /// The node that the bytes are of by now.
        by: Slot,
        /// The step that wrote that.
        overwritten: usize,
    },
    /// A step writes into bytes that it reads as another node's, and neither is an alias of the other.
    #[error("step {step} reads {read}, and writes {written} into the same bytes")]
    InPlace {
        /// The step.
        step: usize,
        /// What it reads.
        read: Slot,
        /// What it writes.
        written: Slot,
    },
    /// A step writes the same bytes as two nodes, aliases or not: which of them stays is not said.
    #[error("step {step} writes {first} and {second} into the same bytes")]
    WrittenTwice {
        /// The step.
        step: usize,
        /// The one.
        first: Slot,
        /// The other.
        second: Slot,
    },
}

struct Since(Option<usize>);

impl std::fmt::Display for Since {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(step) => write!(f, "written by step {step}, "),
            None => f.write_str("there from the beginning, "),
        }
    }
}
