//! What can be chosen when an arena is made.

use crate::arena::Arena;
use crate::arena::source::Source;
pub use crate::backend::Placement;
use crate::backend::{AnyBackend, Backend, Host, Vendor};
use crate::error::{Error, Result};
use crate::executor::Executor;

/// How the blocks of an arena grow when a call outgrows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Growth {
    /// A new block holds all that the call has taken so far and what it asks for, and is at least twice as large
    /// as the largest before, or `max_step` bytes larger where that is less. Few driver calls, at most twice the
    /// memory.
    Geometric {
        /// The cap on a step, in bytes.
        max_step: usize,
    },
    /// A new block holds what is asked for and no more, rounded up to pages. Least memory, a driver call each
    /// time a call needs more than any before.
    Exact,
}

impl Default for Growth {
    fn default() -> Self {
        Self::Geometric { max_step: 1 << 30 }
    }
}

/// What a rewind does to the bytes that the call before it wrote. Room that one call takes twice, as scratch or from a
/// writer that gave it back, shows what that call left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Scrub {
    /// Nothing: room that is not written shows what it held before.
    #[default]
    Never,
    /// Fills them with zeros.
    Zero,
    /// Fills them with this byte, and fresh blocks too.
    Poison(u8),
}

impl Scrub {
    pub(crate) fn value(self) -> Option<u8> {
        match self {
            Self::Never => None,
            Self::Zero => Some(0),
            Self::Poison(value) => Some(value),
        }
    }
}

/// The choices for a new arena. Sizes and alignments are bytes.
///
/// ```
/// use device_arena::{ArenaOptions, Growth, Scrub};
///
/// let arena = ArenaOptions::new()
///     .alignment(128)
///     .first_capacity(1 << 20)
///     .byte_limit(1 << 30)
///     .growth(Growth::Exact)
///     .scrub(Scrub::Poison(0xA5))
///     .build_host()?;
/// assert_eq!(arena.stats().bytes_reserved, 0); // nothing is allocated yet
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaOptions {
    pub(crate) alignment: usize,
    pub(crate) first_capacity: usize,
    pub(crate) byte_limit: usize,
    pub(crate) growth: Growth,
    pub(crate) scrub: Scrub,
    placement: Option<Placement>,
}

impl Default for ArenaOptions {
    fn default() -> Self {
        Self {
            alignment: 1,
            first_capacity: 64 << 10,
            byte_limit: usize::MAX,
            growth: Growth::default(),
            scrub: Scrub::default(),
            placement: None,
        }
    }
}

impl ArenaOptions {
    /// The defaults: the backend's least alignment, a first block of 64 KiB, no limit, geometric growth by
    /// 1 GiB at most, no scrub, memory where the executor computes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The least alignment of every output: a power of two, at most that of a block (4096 on the host, 256 on a device).
    /// Less than the backend's own minimum (64 on the host, 256 on a device) means that minimum.
    #[must_use]
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// The least size of the first block, where the limit and the system grant it.
    #[must_use]
    pub fn first_capacity(mut self, bytes: usize) -> Self {
        self.first_capacity = bytes;
        self
    }

    /// The most bytes that the arena may have reserved from the driver at any instant. Blocks are whole pages (4096
    /// on the host, steps of 256 on a device), the address space that aligns them is not counted, and a call that outgrows its block has both for the rest of it; where that passes the limit, the
    /// output is refused, and the next call begins with one block that would have held it.
    #[must_use]
    pub fn byte_limit(mut self, bytes: usize) -> Self {
        self.byte_limit = bytes;
        self
    }

    /// How blocks grow.
    #[must_use]
    pub fn growth(mut self, growth: Growth) -> Self {
        self.growth = growth;
        self
    }

    /// What a rewind does to the bytes that were written.
    #[must_use]
    pub fn scrub(mut self, scrub: Scrub) -> Self {
        self.scrub = scrub;
        self
    }

    /// Where the blocks are. Without it they are where the executor computes.
    #[must_use]
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = Some(placement);
        self
    }

    /// An arena of host pages for calls on the calling thread. Nothing is allocated yet.
    ///
    /// # Errors
    ///
    /// [`Error::Alignment`], and [`Error::Option`] for a device's placement.
    pub fn build_host(self) -> Result<Arena> {
        self.build_for(AnyBackend::Host(Host), None)
    }

    /// An arena for the calls of `executor`. Nothing is allocated yet.
    ///
    /// # Errors
    ///
    /// As [`build_host`](Self::build_host).
    pub fn build(self, executor: &Executor) -> Result<Arena> {
        let is_host = executor.vendor() == Vendor::Host;
        match self.placement {
            Some(Placement::Host) if !is_host => self.build_host(),
            _ if is_host => self.build_for(executor.backend().clone(), None),
            placement => {
                let placement = placement.unwrap_or(Placement::Device);
                self.build_for(executor.backend().clone(), Some((executor, placement)))
            }
        }
    }

    fn build_for(mut self, backend: AnyBackend, device: Option<(&Executor, Placement)>) -> Result<Arena> {
        let largest = backend.block_alignment();
        if !self.alignment.is_power_of_two() || self.alignment > largest {
            return Err(Error::Alignment { alignment: self.alignment, largest });
        }
        if device.is_none() && self.placement == Some(Placement::Device) {
            return Err(Error::Option {
                option: "placement",
                reason: "this executor is the host, which has no device memory",
            });
        }
        self.alignment = self.alignment.max(backend.output_alignment());
        Ok(Arena::from_source(match device {
            Some((executor, placement)) => Source::device(executor, placement, self),
            None => Source::host(backend, self),
        }))
    }

    /// The defaults of `Arena::host()` and `Arena::new`, which no backend refuses.
    pub(crate) fn build_default(executor: Option<&Executor>) -> Arena {
        let backend = executor.map_or(AnyBackend::Host(Host), |executor| executor.backend().clone());
        let options = Self { alignment: backend.output_alignment(), ..Self::default() };
        Arena::from_source(match executor {
            Some(executor) if executor.vendor() != Vendor::Host => {
                Source::device(executor, Placement::Device, options)
            }
            _ => Source::host(backend, options),
        })
    }
}
