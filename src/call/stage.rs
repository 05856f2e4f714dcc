//! Tapes where a call computes.

use std::borrow::Cow;
use std::marker::PhantomData;

use super::{Call, Output};
use crate::backend::{AnyBackend, Backend, CopyRange, Stream, Vendor, available};
use crate::error::{Error, Result};
use crate::pointer::{MemoryKind, PointerInfo, classify_range};
use crate::tape::{Offsets, TapeView};

/// A tape that the executor reaches: its bytes, and 64-bit offsets.
///
/// What was reachable is used where it is, and borrowed as long as this; what was not was copied into the call's arena.
/// A device's work that reads it is to be queued on the executor's stream before the call ends, and has to have passed
/// before what was borrowed goes.
#[derive(Debug, Clone, Copy)]
pub struct StagedTape<'t> {
    bytes: *const u8,
    byte_len: usize,
    offsets: *const u64,
    len: usize,
    copied_bytes: usize,
    _tape: PhantomData<&'t [u8]>,
}

// SAFETY: a staged tape offers addresses alone; using them is the unsafe part.
unsafe impl Send for StagedTape<'_> {}
// SAFETY: as above.
unsafe impl Sync for StagedTape<'_> {}

impl StagedTape<'_> {
    /// The bytes' address where the executor computes.
    #[must_use]
    pub fn bytes_ptr(&self) -> *const u8 {
        self.bytes
    }

    /// How many bytes there are.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// The address of the offsets where the executor computes: one more than there are items, or none for no items. They
    /// were checked on the host, and count bytes from [`bytes_ptr`](Self::bytes_ptr).
    #[must_use]
    pub fn offsets_ptr(&self) -> *const u64 {
        self.offsets
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes were copied to bring the tape here, offsets included; none where all of it was reachable.
    #[must_use]
    pub fn copied_bytes(&self) -> usize {
        self.copied_bytes
    }
}

impl Call {
    /// Brings a tape to where the call computes, and copies nothing that is reachable there: on the host all host memory;
    /// on a device its own memory, managed and pinned memory, and pageable memory where host and device share page tables. Offsets
    /// that are not 64 bits wide are copied as such. Copies are queued in the stream's order, and the tape's host memory
    /// is free again when this returns, but for what is used where it is.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output); what [`classify_range`] says of the pointers;
    /// [`Error::Driver`].
    pub fn stage<'t>(&self, tape: &TapeView<'t>) -> Result<StagedTape<'t>> {
        let info = match tape.info() {
            Some(info) => info,
            // SAFETY: the tape's constructors had its memory lent for `'t`.
            None => unsafe { self.info_of(tape.as_ptr(), tape.byte_len()) }?,
        };
        // SAFETY: as above, `byte_len` bytes of it.
        let bytes = unsafe { self.bring(tape.as_ptr(), tape.byte_len(), &info, align_of::<u8>()) }?;
        let offsets = match self.stage_offsets(tape.offsets()) {
            Ok(offsets) => offsets,
            Err(error) => {
                bytes.room.into_iter().for_each(|room| self.give_back(room));
                return Err(error);
            }
        };
        let copied = |brought: &Brought| brought.room.as_ref().map_or(0, Output::len);
        Ok(StagedTape {
            bytes: bytes.address,
            byte_len: tape.byte_len(),
            offsets: offsets.address.cast(),
            len: tape.len(),
            copied_bytes: copied(&bytes) + copied(&offsets),
            _tape: PhantomData,
        })
        // The rooms stay taken until the arena is rewound.
    }

    fn stage_offsets(&self, offsets: Offsets<'_>) -> Result<Brought> {
        let words = offsets.as_words();
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        match words {
            // SAFETY: the words are live until this returns.
            Cow::Owned(_) if !bytes.is_empty() => unsafe {
                self.copy_in(bytes.as_ptr(), bytes.len(), &PointerInfo::UNREGISTERED)
            },
            _ => {
                // SAFETY: the offsets are the tape's, live and not written.
                let info = unsafe { self.info_of(bytes.as_ptr(), bytes.len()) }?;
                // SAFETY: as above.
                unsafe { self.bring(bytes.as_ptr(), bytes.len(), &info, align_of::<u64>()) }
            }
        }
    }

    /// What a span of host memory is to a device: pinned, perhaps.
    ///
    /// # Safety
    ///
    /// As [`classify_range`].
    unsafe fn info_of(&self, pointer: *const u8, bytes: usize) -> Result<PointerInfo> {
        if self.executor().is_none() {
            return Ok(PointerInfo::UNREGISTERED);
        }
        // Asked anew each time: what the call has seen may be gone, since the tape is lent for less than the call.
        // SAFETY: the caller's promise is the same.
        unsafe { classify_range(pointer, bytes) }
    }

    /// The address of the bytes where the call computes, copied there if need be.
    ///
    /// # Safety
    ///
    /// The bytes are live and not written until the stream has passed; `info` is what the driver says of them.
    unsafe fn bring(
        &self,
        pointer: *const u8,
        bytes: usize,
        info: &PointerInfo,
        align: usize,
    ) -> Result<Brought> {
        if bytes == 0 {
            return Ok(Brought { address: std::ptr::without_provenance(align), room: None });
        }
        if info.kind == MemoryKind::Unmapped {
            return Err(Error::Unmapped { operation: "stage" });
        }
        let reaches = match self.executor() {
            None => info.is_host_accessible(),
            Some(executor) => executor.reaches(pointer, info)?,
        };
        if reaches {
            return Ok(Brought { address: pointer, room: None });
        }
        // SAFETY: the caller's promise is the same.
        unsafe { self.copy_in(pointer, bytes, info) }
    }

    /// # Safety
    ///
    /// As [`bring`](Self::bring); pageable memory is free again when this returns.
    unsafe fn copy_in(&self, pointer: *const u8, bytes: usize, info: &PointerInfo) -> Result<Brought> {
        debug_assert!(!pointer.is_null() && bytes != 0);
        let mut room = self.output::<u8>(bytes)?;
        // SAFETY: the caller's promise is the same.
        match unsafe { self.fill_room(&mut room, pointer, info) } {
            Ok(()) => Ok(Brought { address: room.address().as_ptr(), room: Some(room) }),
            Err(error) => {
                self.give_back(room);
                Err(error)
            }
        }
    }

    /// # Safety
    ///
    /// As [`copy_in`](Self::copy_in); there are as many bytes as the room has.
    unsafe fn fill_room(&self, room: &mut Output<u8>, pointer: *const u8, info: &PointerInfo) -> Result<()> {
        let destination = match self.executor() {
            Some(_) => room.device_ptr()?,
            None => room.as_mut_slice()?.as_mut_ptr(),
        };
        let range = CopyRange { destination, source: pointer, bytes: room.len() };
        let backend = &self.core().source.backend;
        match (self.stream(), info.vendor.filter(|_| !info.is_host_accessible())) {
            (Some(stream), Some(vendor)) if vendor != backend.vendor() => {
                // SAFETY: the room was just taken, and the rest is the caller's promise.
                unsafe { between_vendors(vendor, info, backend, stream, range) }?;
            }
            // The host may write its memory again when this returns. What a device reaches, its driver need not have read by
            // then: pinned pages that it knows by another address, and pageable ones.
            (Some(stream), _) if info.is_host_accessible() && info.is_device_accessible => {
                // SAFETY: as above.
                unsafe { backend.transfer_and_wait(Some(stream), range) }?;
            }
            (Some(stream), _) => {
                // SAFETY: as above. The driver has read pageable memory when it returns.
                unsafe { backend.transfer(Some(stream), range) }?;
                room.note_queued();
            }
            // SAFETY: as above.
            (None, Some(vendor)) => unsafe { to_the_host(vendor, info, range) }?,
            // SAFETY: as above; both ends are the host's.
            (None, None) => unsafe { destination.copy_from_nonoverlapping(pointer, room.len()) },
        }
        Ok(())
    }
}

/// Bytes where the call computes, and the room that they were copied to, if they were.
struct Brought {
    address: *const u8,
    room: Option<Output<u8>>,
}

/// Copies from a device's memory to the host's, on a stream made for it.
///
/// # Safety
///
/// As [`Backend::transfer`].
unsafe fn to_the_host(vendor: Vendor, info: &PointerInfo, range: CopyRange) -> Result<()> {
    debug_assert!(!info.is_host_accessible());
    let of_vendor = |backend: &Result<AnyBackend>| backend.as_ref().is_ok_and(|it| it.vendor() == vendor);
    let unavailable = || Error::Unavailable { vendor, detail: "its driver is gone".into() };
    let backend = available().find(of_vendor).ok_or_else(unavailable)??;
    let stream = backend.create_stream(info.ordinal().unwrap_or(0))?;
    // SAFETY: the caller's promise is the same.
    unsafe { backend.transfer_and_wait(Some(&stream), range) }
}

/// Copies from the memory of one vendor's device to that of another's, by the host: neither driver knows the other's.
///
/// # Safety
///
/// As [`Backend::transfer`].
unsafe fn between_vendors(
    vendor: Vendor,
    info: &PointerInfo,
    backend: &AnyBackend,
    stream: &Stream,
    range: CopyRange,
) -> Result<()> {
    debug_assert!(vendor != backend.vendor());
    let mut bytes = Vec::<u8>::new();
    bytes.try_reserve_exact(range.bytes).map_err(|_| Error::OutOfMemory {
        vendor: Vendor::Host,
        operation: "stage",
        requested: range.bytes,
        free: None,
        total: None,
    })?;
    let between = bytes.spare_capacity_mut().as_mut_ptr().cast::<u8>();
    // SAFETY: the source is live by the caller, and there is room for as many bytes.
    unsafe { to_the_host(vendor, info, CopyRange { destination: between, ..range }) }?;
    // SAFETY: the bytes live until this returns, when the stream has passed; the rest is the caller's promise.
    unsafe { backend.transfer_and_wait(Some(stream), CopyRange { source: between, ..range }) }
}
