//! What a planner is given.

use std::ops::Range;

/// A buffer to find room for. Sizes, alignments and offsets are bytes.
///
/// ```
/// use device_arena::plan::{Buffer, Planner};
///
/// let buffers = [
///     Buffer::new(1, 0..3, 1000).aligned(256),
///     Buffer::new(2, 2..5, 1000).aligned(256).named("hidden"),
///     Buffer::new(3, 4..5, 1000).alias_of(2),  // computed in place
///     Buffer::new(4, 0..1, 64).pinned(),       // nothing is put there, before or after
///     Buffer::new(5, 3..4, 512).at(0),         // where another program looks for it
/// ];
/// let plan = Planner::new().plan(&buffers)?.into_plan();
/// assert_eq!(plan.get(3).map(|slot| slot.offset), plan.get(2).map(|slot| slot.offset));
/// assert_eq!(plan.get(5).map(|slot| slot.offset), Some(0));
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Buffer {
    /// The node, by the number that the caller's graph has for it.
    pub id: u64,
    /// The steps in which it is live. At least one.
    pub lifetime: Range<u64>,
    /// How many bytes it has. None is allowed: such a buffer has a place, and takes no room.
    pub size: u64,
    /// What its offset has to be a multiple of, a power of two.
    pub alignment: u64,
    /// Where it has to lie.
    pub offset: Option<u64>,
    /// The buffer whose bytes it shares on purpose, from the first one on. It has no more of them.
    pub alias_of: Option<u64>,
    /// Whether its bytes are its own for the whole run, whatever its lifetime.
    pub pinned: bool,
    /// What reports and pictures call it.
    pub name: Option<String>,
}

impl Buffer {
    /// A buffer that may lie anywhere.
    #[must_use]
    pub fn new(id: u64, lifetime: Range<u64>, size: u64) -> Self {
        Self { id, lifetime, size, alignment: 1, offset: None, alias_of: None, pinned: false, name: None }
    }

    /// The same, its offset to be a multiple of `alignment` bytes.
    #[must_use]
    pub fn aligned(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }

    /// The same, to lie at `offset`.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// The same, sharing the bytes of `id` on purpose. What shares bytes is placed as one: as large as the largest, live from
    /// the first step of any to the last of any.
    #[must_use]
    pub fn alias_of(self, id: u64) -> Self {
        Self { alias_of: Some(id), ..self }
    }

    /// The same, its bytes its own for the whole run.
    #[must_use]
    pub fn pinned(self) -> Self {
        Self { pinned: true, ..self }
    }

    /// The same, with a name for reports.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}
