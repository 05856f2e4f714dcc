//! Plans of memory: which node of a graph has which bytes of an arena, and when; a planner that makes them, and checks
//! that know nothing of the planner.
//!
//! All of it is arithmetic on the host: it allocates no arena and asks no driver. Offsets, sizes and alignments are bytes
//! in 64 bits. A step is any unit of time that the caller counts in, such as a kernel's place in a schedule; lifetimes are
//! half-open, so that a buffer that is live in `3..5` makes room for one that is live in `5..8`.
//!
//! ```
//! use device_arena::plan::{Buffer, Planner, Step};
//!
//! // Three layers, each of which reads what the one before it wrote.
//! let buffers = [
//!     Buffer::new(0, 0..2, 4096),
//!     Buffer::new(1, 1..3, 1024),
//!     Buffer::new(2, 2..4, 4096),
//!     Buffer::new(9, 0..1, 256).pinned().named("weights"),
//! ];
//! let planned = Planner::new().alignment(256).plan(&buffers)?;
//! assert_eq!(planned.peak(), 4096 + 1024 + 256);
//! assert_eq!(planned.lower_bound(), planned.peak()); // it can't be less
//!
//! let plan = planned.into_plan();
//! plan.verify(&buffers)?; // by itself, without the planner
//! let schedule = [Step::new([9], [0]), Step::new([9, 0], [1]), Step::new([9, 1], [2])];
//! plan.verify_schedule(&schedule)?; // what runs is what was planned
//! # Ok::<(), device_arena::Error>(())
//! ```

mod bound;
mod buffer;
mod builder;
mod busiest;
mod csv;
mod fault;
mod fingerprint;
mod greedy;
mod heights;
mod overlap;
mod planner;
mod problem;
mod report;
mod schedule;
mod search;
#[cfg(feature = "serde")]
mod serde;
mod slot;
mod svg;
mod verify;

pub use self::bound::lower_bound;
pub use self::buffer::Buffer;
pub use self::builder::PlanBuilder;
pub use self::busiest::Busiest;
pub use self::csv::{buffers_from_csv, buffers_to_csv};
pub use self::fault::{Hazard, NodeOrPlan, PlanFault};
pub use self::planner::{Planned, Planner, Stop};
pub use self::schedule::Step;
pub use self::slot::Slot;
pub use self::svg::Picture;

/// Which node has which bytes of an arena: made by a [`Planner`], by hand with a [`PlanBuilder`], or from a file.
///
/// It is checked when it is made: slots are aligned and within the total, no node comes twice, and no two nodes share a byte
/// while both are live unless one is named as the other's alias. It does not change after that.
///
/// ```
/// use device_arena::plan::{MemoryPlan, PlanFault, Slot};
/// use device_arena::Error;
///
/// let plan = MemoryPlan::builder()
///     .alignment(64)
///     .slot(Slot::new(1, 0, 512).live(0..4))
///     .slot(Slot::new(2, 512, 256).live(1..3))
///     .slot(Slot::new(3, 0, 128).live(4..6)) // node 1 is over
///     .slot(Slot::new(4, 512, 64).live(2..3).alias_of(2))
///     .build()?;
/// assert_eq!((plan.total(), plan.len()), (768, 4));
/// assert_eq!(plan.get(2).map(|slot| slot.offset), Some(512));
///
/// let refused = MemoryPlan::builder()
///     .slot(Slot::new(1, 0, 512).live(0..4))
///     .slot(Slot::new(3, 0, 128).live(3..6))
///     .build()
///     .unwrap_err();
/// assert!(matches!(refused, Error::Plan(fault) if matches!(*fault, PlanFault::Overlap { .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlan {
    /// In the order of their nodes.
    slots: Vec<Slot>,
    alignment: u64,
    total: u64,
    fingerprint: u128,
}

impl MemoryPlan {
    /// Begins a plan by hand.
    #[must_use]
    pub fn builder() -> PlanBuilder {
        PlanBuilder::default()
    }

    /// A node's slot. It takes O(log n), and allocates nothing.
    #[must_use]
    pub fn get(&self, node: u64) -> Option<&Slot> {
        self.slots.get(self.position(node)?)
    }

    /// Whether the plan has the node.
    #[must_use]
    pub fn has(&self, node: u64) -> bool {
        self.position(node).is_some()
    }

    fn position(&self, node: u64) -> Option<usize> {
        self.slots.binary_search_by_key(&node, |slot| slot.node).ok()
    }

    /// The slots, in the order of their nodes.
    pub fn iter(&self) -> std::slice::Iter<'_, Slot> {
        self.slots.iter()
    }

    /// The same, as a slice.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The bytes that an arena of this plan needs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What the arena's start has to be aligned to: the largest alignment of any slot, or what the builder was told where
    /// that is more. A power of two, in bytes.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// A number for the whole layout: total, alignment, and each node's offset, size, alignment, lifetime and alias. Equal
    /// plans have equal numbers; plans that differ in any of these have different ones, short of a collision of 128 bits that
    /// somebody looked for. Names don't count.
    ///
    /// It is the FNV-1a hash of 128 bits over the mark `device-arena plan 1` and these words, each as 8 bytes, the lowest
    /// first: total, alignment and the number of slots; then of each slot, in the order of nodes, its node, offset, size,
    /// alignment, the lifetime's start, the lifetime's end, and the node whose alias it is. Each of the last three is a
    /// word 0 where there is none, and else a word 1 before the word itself. The number is the same on every machine and
    /// in every release; should what it counts ever change, the mark will.
    #[must_use]
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// The node at the end of a chain of aliases: whose bytes `node` shares.
    #[must_use]
    pub fn root(&self, node: u64) -> Option<&Slot> {
        let mut slot = self.get(node)?;
        // The chain ends: building has followed it.
        while let Some(target) = slot.alias_of {
            slot = self.get(target)?;
        }
        Some(slot)
    }
}

impl<'a> IntoIterator for &'a MemoryPlan {
    type Item = &'a Slot;
    type IntoIter = std::slice::Iter<'a, Slot>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
