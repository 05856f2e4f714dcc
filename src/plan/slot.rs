//! One node's place in an arena.

use std::ops::Range;

/// Where a node lies in a planned arena, and when. Offsets, sizes and alignments are bytes; the offset counts from the
/// arena's start.
///
/// ```
/// use device_arena::plan::Slot;
///
/// let slot = Slot::new(7, 4096, 512).aligned(256).live(3..9).named("scores");
/// assert_eq!(slot.end(), Some(4608));
/// assert_eq!(slot.to_string(), "node 7 `scores` (512 bytes at 4096, live in 3..9)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Slot {
    /// The node, by the number that the caller's graph has for it.
    pub node: u64,
    /// Its first byte.
    pub offset: u64,
    /// Its size.
    pub size: u64,
    /// What its offset is a multiple of, a power of two.
    pub alignment: u64,
    /// The steps in which its bytes are its own. None: always, nothing else is put there.
    pub lifetime: Option<Range<u64>>,
    /// The node whose bytes it shares on purpose: a view of it, or a result computed in place.
    pub alias_of: Option<u64>,
    /// What reports and pictures call it.
    pub name: Option<String>,
}

impl Slot {
    /// A slot that is live always, aligned to one byte, without a name, and no alias.
    #[must_use]
    pub fn new(node: u64, offset: u64, size: u64) -> Self {
        Self { node, offset, size, alignment: 1, lifetime: None, alias_of: None, name: None }
    }

    /// The same, its offset to be a multiple of `alignment` bytes.
    #[must_use]
    pub fn aligned(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }

    /// The same, live in these steps alone: from the first on, and no longer in the last.
    #[must_use]
    pub fn live(self, steps: Range<u64>) -> Self {
        Self { lifetime: Some(steps), ..self }
    }

    /// The same, sharing bytes of `node` on purpose.
    #[must_use]
    pub fn alias_of(self, node: u64) -> Self {
        Self { alias_of: Some(node), ..self }
    }

    /// The same, with a name for reports.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// One past its last byte; none where that overflows, which no plan has.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.size)
    }

    /// One past its last byte, of a slot that a plan has checked.
    pub(crate) fn checked_end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    /// Whether there is a step in which both are live.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        match (&self.lifetime, &other.lifetime) {
            (Some(a), Some(b)) => a.start < b.end && b.start < a.end,
            _ => true,
        }
    }

    /// Whether the two have a byte in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let holds_bytes = self.size > 0 && other.size > 0;
        holds_bytes && self.offset < other.checked_end() && other.offset < self.checked_end()
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node {}", self.node)?;
        if let Some(name) = &self.name {
            // A name may hold anything, and a message is one line.
            write!(f, " `{}`", name.escape_debug())?;
        }
        write!(f, " ({} bytes at {}, live ", self.size, self.offset)?;
        match &self.lifetime {
            Some(steps) => write!(f, "in {}..{}", steps.start, steps.end)?,
            None => f.write_str("always")?,
        }
        match self.alias_of {
            Some(node) => write!(f, ", shares bytes of node {node})"),
            None => f.write_str(")"),
        }
    }
}
