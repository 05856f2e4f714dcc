//! What is behind a pointer, in the words of the driver that was asked.

#[cfg(gpu)]
use crate::backend::Backend;
use crate::backend::Vendor;
use crate::error::{Error, Result};

/// The class of memory behind a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// No driver claims it. This is how drivers answer for pageable host memory, and also for freed and
    /// one-past-the-end pointers: it does not say that the memory is live.
    Unregistered,
    /// Host pages that a driver has pinned or registered.
    PinnedHost,
    /// Memory of one device, or an address that a device alone has for host pages.
    Device {
        /// The device's number as its driver counts it.
        ordinal: u32,
    },
    /// Memory that the driver moves between host and device.
    Managed {
        /// The device that it was made for, where the driver says.
        ordinal: Option<u32>,
    },
    /// Addresses that a driver has reserved and mapped nothing to: nobody can read there.
    Unmapped,
}

/// How the driver came to the memory, where it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AllocationOrigin {
    /// The driver does not say.
    Unknown,
    /// An allocation of its own.
    Direct,
    /// A pool of stream-ordered allocations.
    Pool,
    /// Memory that was mapped into reserved addresses.
    Virtual,
}

/// The answer to a classification. Class and accessibility are apart: pageable memory is no driver's, and on some
/// machines devices reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointerInfo {
    /// The class of the memory.
    pub kind: MemoryKind,
    /// Whose driver claims it.
    pub vendor: Option<Vendor>,
    /// Address and size in bytes of the allocation that the pointer lies in, where the driver knows; of virtual memory
    /// the mapped part.
    pub allocation: Option<(usize, usize)>,
    /// The allocation's identity, where the driver has one: a number that it counts up, in 64 bits on NVIDIA's and 32 on AMD's.
    /// An address alone proves nothing: a later allocation may have the same.
    pub buffer_id: Option<u64>,
    /// How the driver came to the memory.
    pub origin: AllocationOrigin,
    /// Whether a device's kernels can read through the pointer: the memory's own device's, or for unregistered memory
    /// that of some device.
    pub is_device_accessible: bool,
    /// The context that the memory is of; zero where it is of none, or the driver does not say.
    pub(crate) context: usize,
    /// A second driver that has pinned the same host pages.
    pub(crate) also_pinned_by: Option<Vendor>,
}

impl PointerInfo {
    pub(crate) const UNREGISTERED: Self = Self {
        kind: MemoryKind::Unregistered,
        vendor: None,
        allocation: None,
        buffer_id: None,
        origin: AllocationOrigin::Unknown,
        is_device_accessible: false,
        context: 0,
        also_pinned_by: None,
    };

    /// Whether the host can read through the pointer, given that it is live.
    #[must_use]
    pub fn is_host_accessible(&self) -> bool {
        !matches!(self.kind, MemoryKind::Device { .. } | MemoryKind::Unmapped)
    }

    /// Whether that vendor's driver claims the memory.
    #[cfg(gpu)]
    pub(crate) fn is_of(&self, vendor: Vendor) -> bool {
        self.vendor == Some(vendor) || self.also_pinned_by == Some(vendor)
    }

    /// What two drivers say of one pointer. Host pages may be pinned by both; memory of a device is one driver's alone.
    #[cfg(all(feature = "cuda", feature = "rocm"))]
    fn merged(self, other: Self, pointer: *const u8) -> Result<Self> {
        let is_host = |info: &Self| matches!(info.kind, MemoryKind::Unregistered | MemoryKind::PinnedHost);
        match (is_host(&self), is_host(&other)) {
            (false, true) => Ok(self),
            (true, false) => Ok(other),
            (false, false) => Err(Error::ConflictingClaims {
                operation: "classify",
                address: pointer.addr(),
                vendors: [self.vendor, other.vendor].map(|vendor| vendor.unwrap_or(Vendor::Host)),
            }),
            (true, true) => {
                let is_device_accessible = self.is_device_accessible || other.is_device_accessible;
                // What the second driver has pinned in part is not its own: the range that is answered is the first's.
                let holds = |((start, bytes), (outer, more)): ((usize, usize), (usize, usize))| {
                    start
                        .checked_sub(outer)
                        .and_then(|offset| offset.checked_add(bytes))
                        .is_some_and(|end| end <= more)
                };
                let is_held = self.allocation.zip(other.allocation).is_some_and(holds);
                let both = self.vendor.and(other.vendor).filter(|_| is_held);
                let claim = if self.vendor.is_some() { self } else { other };
                Ok(Self { is_device_accessible, also_pinned_by: both, ..claim })
            }
        }
    }

    /// The ordinal of the device that the memory belongs to.
    #[must_use]
    pub fn ordinal(&self) -> Option<u32> {
        match self.kind {
            MemoryKind::Device { ordinal } => Some(ordinal),
            MemoryKind::Managed { ordinal } => ordinal,
            _ => None,
        }
    }

    /// Whether `bytes` bytes from `pointer` on lie within the allocation, as far as the driver knows it.
    pub(crate) fn holds(&self, pointer: *const u8, bytes: usize) -> bool {
        // Of virtual memory a part may be mapped: what is not known to be is not.
        let Some((start, size)) = self.allocation else { return self.origin != AllocationOrigin::Virtual };
        pointer
            .addr()
            .checked_sub(start)
            .and_then(|offset| offset.checked_add(bytes))
            .is_some_and(|end| end <= size)
    }
}

/// Asks every loaded driver that has devices what `pointer` is. With no such driver the answer is
/// [`MemoryKind::Unregistered`].
///
/// Each driver is asked in one query or few. Host pages can be pinned by two drivers, and the answer is that of the first
/// then; where two claim the memory for their devices, neither is believed. No context is made, it may be asked from any thread and while a stream is being
/// captured, and the first question of a process loads the drivers.
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
/// A query that fails is an [`Error::Driver`], never a guess; [`Error::ConflictingClaims`] of two drivers.
///
/// # Safety
///
/// The pointer is not dereferenced, but the answer holds only as long as nobody frees the memory: the caller
/// vouches that it stays allocated while the answer is used.
#[inline]
pub unsafe fn classify(pointer: *const u8) -> Result<PointerInfo> {
    let mut info = PointerInfo::UNREGISTERED;
    #[cfg(feature = "cuda")]
    if let Some(cuda) = crate::backend::Cuda::if_present()? {
        // SAFETY: the caller's promise is this function's own.
        info = unsafe { cuda.classify(pointer) }?;
    }
    #[cfg(feature = "rocm")]
    if let Some(rocm) = crate::backend::Rocm::if_present()? {
        // SAFETY: as above.
        let other = unsafe { rocm.classify(pointer) }?;
        #[cfg(feature = "cuda")]
        let other = info.merged(other, pointer)?;
        info = other;
    }
    #[cfg(not(gpu))]
    let _ = (pointer, &mut info);
    Ok(info)
}

/// As [`classify`], for `bytes` bytes from `pointer` on. Nothing is asked for no bytes, and the answer is
/// [`MemoryKind::Unregistered`] then: one past an allocation's end is no driver's.
///
/// # Errors
///
/// As [`classify`]; [`Error::OutOfAllocation`] where the range leaves the allocation that it begins in, or the mapped
/// part of virtual memory; [`Error::OutOfRange`] for null, and where it leaves the address space.
///
/// # Safety
///
/// As [`classify`].
pub unsafe fn classify_range(pointer: *const u8, bytes: usize) -> Result<PointerInfo> {
    if bytes == 0 {
        return Ok(PointerInfo::UNREGISTERED);
    }
    let start = pointer.addr();
    if pointer.is_null() || bytes > isize::MAX as usize || start.checked_add(bytes).is_none() {
        return Err(Error::OutOfRange { operation: "classify_range", start, end: bytes, len: 0 });
    }
    // SAFETY: the caller's promise is this function's own.
    let first = unsafe { classify(pointer) }?;
    let out = || {
        let allocation = first.allocation.unwrap_or((start, 0));
        Error::OutOfAllocation { operation: "classify_range", start, bytes, allocation }
    };
    let (mut last, mut at) = (first, pointer);
    loop {
        // What a driver answers need not make sense.
        let left = bytes.checked_sub(at.addr() - start).ok_or_else(out)?;
        if last.holds(at, left) {
            return Ok(first);
        }
        // Mapped parts of virtual memory follow each other; any other allocation ends here.
        let end = last.allocation.and_then(|(start, size)| start.checked_add(size)).unwrap_or(start);
        if last.origin != AllocationOrigin::Virtual || end <= at.addr() {
            return Err(out());
        }
        at = pointer.wrapping_add(end - start);
        // SAFETY: as above.
        last = unsafe { classify(at) }?;
        if last.kind != first.kind || last.origin != AllocationOrigin::Virtual {
            return Err(out());
        }
    }
}
