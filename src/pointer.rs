//! What is behind a pointer, in the words of the driver that was asked.

use crate::backend::{Backend, available};
use crate::error::Result;

/// The class of memory behind a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// No driver claims it. This is how drivers answer for pageable host memory, and also for freed and
    /// one-past-the-end pointers: it does not say that the memory is live.
    Unregistered,
    /// Host pages that a driver has pinned or registered.
    PinnedHost,
    /// Memory of one device.
    Device {
        /// The device's number as its driver counts it.
        ordinal: u32,
    },
    /// Memory that the driver moves between host and device.
    Managed {
        /// The device that it was made for.
        ordinal: u32,
    },
}

/// The answer to a classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointerInfo {
    /// The class of the memory.
    pub kind: MemoryKind,
    /// Address and size in bytes of the allocation that the pointer lies in, where the driver knows.
    pub allocation: Option<(usize, usize)>,
}

impl PointerInfo {
    pub(crate) const UNREGISTERED: Self = Self { kind: MemoryKind::Unregistered, allocation: None };

    /// Whether the host can read through the pointer, given that it is live.
    #[must_use]
    pub fn is_host_accessible(&self) -> bool {
        !matches!(self.kind, MemoryKind::Device { .. })
    }
}

/// Asks every loaded driver that has devices what `pointer` is. With no such driver the answer is
/// [`MemoryKind::Unregistered`].
///
/// ```
/// let bytes = [0u8; 16];
/// // SAFETY: the pointer is to a live local.
/// let info = unsafe { device_arena::classify(bytes.as_ptr()) }?;
/// assert_eq!(info.kind, device_arena::MemoryKind::Unregistered);
/// # Ok::<(), device_arena::Error>(())
/// ```
///
/// # Errors
///
/// A query that fails is an [`Error::Driver`](crate::Error::Driver), never a guess.
///
/// # Safety
///
/// The pointer is not dereferenced, but the answer holds only as long as nobody frees the memory: the caller
/// vouches that it stays allocated while the answer is used.
pub unsafe fn classify(pointer: *const u8) -> Result<PointerInfo> {
    for backend in available() {
        // SAFETY: the caller's promise is this function's own.
        let info = unsafe { backend.classify(pointer) }?;
        if info.kind != MemoryKind::Unregistered {
            return Ok(info);
        }
    }
    Ok(PointerInfo::UNREGISTERED)
}
