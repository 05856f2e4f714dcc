//! Where an arena's blocks come from: the backend, and for memory of a device the executor that it serves.

use crate::arena::options::ArenaOptions;
use crate::arena::{ArenaDescription, Residency};
use crate::backend::{AnyBackend, Backend, Placement, Stream, Vendor};
use crate::error::{Error, Result};
use crate::executor::{Executor, Identity};
use crate::sync::UnsafeCell;

/// What an arena's parts need to know of its memory.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) backend: AnyBackend,
    pub(crate) ordinal: u32,
    pub(crate) placement: Placement,
    pub(crate) options: ArenaOptions,
    /// Which executor the arena serves; none for every one of the host.
    identity: Option<Identity>,
    executor: UnsafeCell<Option<Executor>>,
}

// SAFETY: the executor is read by owners of the blocks alone, and taken by the last of them.
unsafe impl Sync for Source {}

impl Source {
    /// Host pages, for every host executor.
    pub(crate) fn host(backend: AnyBackend, options: ArenaOptions) -> Self {
        let executor = UnsafeCell::new(None);
        Self { backend, ordinal: 0, placement: Placement::Host, options, identity: None, executor }
    }

    /// Memory of an executor's device, which it alone uses.
    pub(crate) fn device(executor: &Executor, placement: Placement, options: ArenaOptions) -> Self {
        Self {
            backend: executor.backend().clone(),
            ordinal: executor.ordinal(),
            placement,
            options,
            identity: Some(executor.identity()),
            executor: UnsafeCell::new(Some(executor.clone())),
        }
    }

    /// The same source for the state that follows; this one has no executor any more.
    ///
    /// # Safety
    ///
    /// The caller holds the arena's lease, and moves the arena to the new source.
    pub(crate) unsafe fn follow(&self) -> Self {
        // SAFETY: the lease's holder is the only owner but for the handle, which asks the new source from now on.
        let executor = unsafe { self.release() };
        Self {
            backend: self.backend.clone(),
            ordinal: self.ordinal,
            placement: self.placement,
            options: self.options,
            identity: self.identity,
            executor: UnsafeCell::new(executor),
        }
    }

    /// The executor that the arena serves; none for host pages.
    ///
    /// # Safety
    ///
    /// The caller is an owner of the arena's blocks, and stays one for as long as the answer is used.
    #[inline]
    pub(crate) unsafe fn executor(&self) -> Option<&Executor> {
        // SAFETY: it is taken when no owner is left.
        self.executor.with(|executor| unsafe { (*executor).as_ref() })
    }

    /// Its stream.
    ///
    /// # Safety
    ///
    /// As [`executor`](Self::executor).
    #[inline]
    pub(crate) unsafe fn stream(&self) -> Option<&Stream> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.executor() }.map(Executor::as_stream)
    }

    /// An error while the executor's stream is being captured.
    ///
    /// To be called by owners of the blocks alone: those who have the room are.
    pub(super) fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        // SAFETY: the caller is an owner.
        match unsafe { self.stream() } {
            Some(stream) if self.backend.is_capturing(stream)? => Err(Error::Capturing { operation }),
            _ => Ok(()),
        }
    }

    /// Lets the executor go.
    ///
    /// # Safety
    ///
    /// The caller is alone: no owner is left, or the lease's holder moves the arena to another source.
    pub(crate) unsafe fn release(&self) -> Option<Executor> {
        // SAFETY: the caller is alone.
        self.executor.with_mut(|executor| unsafe { (*executor).take() })
    }

    /// Whether the arena serves an executor: host pages serve every host executor, a device's memory its own.
    #[inline]
    pub(crate) fn check_executor(&self, operation: &'static str, executor: &Executor) -> Result<()> {
        let serves = match self.identity {
            None => executor.vendor() == Vendor::Host,
            Some(identity) => identity == executor.identity(),
        };
        if serves {
            return Ok(());
        }
        Err(Error::WrongExecutor {
            operation,
            arena: self.backend.vendor(),
            arena_ordinal: self.ordinal,
            executor: executor.vendor(),
            ordinal: executor.ordinal(),
        })
    }

    /// Whether host access has to wait for the device's work: both reach the same bytes.
    #[inline]
    pub(crate) fn is_shared_with_device(&self) -> bool {
        self.identity.is_some() && self.placement == Placement::HostCoherent
    }

    /// Whether a device reaches the memory.
    #[inline]
    pub(crate) fn is_on_device(&self) -> bool {
        self.identity.is_some()
    }

    pub(crate) fn describe(&self) -> ArenaDescription {
        match self.placement {
            Placement::Device => {
                let device = i32::try_from(self.ordinal).unwrap_or(i32::MAX);
                ArenaDescription { residency: Residency::Vram, device }
            }
            _ => ArenaDescription::HOST,
        }
    }

    /// Whether a block's own alignment is enough for `align`.
    #[inline]
    pub(crate) fn check_alignment(&self, align: usize) -> Result<()> {
        // The arena's own alignment was checked when it was made.
        if align <= super::room::LEAST_ALIGNMENT || align <= self.options.alignment {
            return Ok(());
        }
        let largest = self.backend.block_alignment();
        if align > largest { Err(Error::Alignment { alignment: align, largest }) } else { Ok(()) }
    }
}
