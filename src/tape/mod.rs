//! Tapes: many variable-length inputs in one buffer, bytes plus offsets, as Arrow's string arrays lay them out.

mod offsets;
mod owned;

use std::marker::PhantomData;
use std::ops::Range;

pub use self::offsets::Offset;
pub(crate) use self::offsets::Offsets;
pub use self::owned::Tape;
use crate::error::{Error, Result};
use crate::pointer::{MemoryKind, PointerInfo, classify_range};

/// A checked look at a tape: item `i` is the bytes from offset `i` to offset `i + 1`.
///
/// There is one more offset than there are items, or none at all for no items. Offsets count bytes. They never
/// decrease, none is negative, and the last lies within the bytes; the first need not be zero, nor the last the
/// end.
///
/// ```
/// use device_arena::{Error, TapeView};
///
/// let tape = TapeView::of(b"onetwothree", &[0u32, 3, 6, 11])?;
/// assert_eq!(tape.iter()?.collect::<Vec<_>>(), [&b"one"[..], b"two", b"three"]);
/// let refused = TapeView::of(b"onetwothree", &[0i64, 3, 2, 11]).unwrap_err();
/// assert!(matches!(refused, Error::Tape { index: 2, value: 2, bound: 3, .. }));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TapeView<'a> {
    bytes: *const u8,
    byte_len: usize,
    offsets: Offsets<'a>,
    /// What the driver said of the bytes; none for a span, which is the host's whatever a driver would say.
    info: Option<PointerInfo>,
    _bytes: PhantomData<&'a [u8]>,
}

// SAFETY: a tape offers shared bytes alone, which its constructors' callers lend for `'a`.
unsafe impl Send for TapeView<'_> {}
// SAFETY: as above.
unsafe impl Sync for TapeView<'_> {}

impl<'a> TapeView<'a> {
    /// A tape over bytes and offsets in the host's memory.
    ///
    /// # Errors
    ///
    /// [`Error::Tape`], which names the first offset that breaks a rule, its value and what it broke it against.
    pub fn of<O: Offset>(bytes: &'a [u8], offsets: &'a [O]) -> Result<Self> {
        let offsets = O::wrap(offsets);
        offsets.check(bytes.len())?;
        Ok(Self::unchecked(bytes, offsets))
    }

    /// A tape whose offsets keep the rules by how they were made.
    pub(crate) fn of_checked(bytes: &'a [u8], offsets: &'a [u64]) -> Self {
        Self::unchecked(bytes, Offsets::U64(offsets))
    }

    fn unchecked(bytes: &'a [u8], offsets: Offsets<'a>) -> Self {
        Self { bytes: bytes.as_ptr(), byte_len: bytes.len(), offsets, info: None, _bytes: PhantomData }
    }

    /// A tape over raw memory: the driver is asked what the pointers are, and offsets in a device's memory are
    /// refused, not read. Null is allowed where the length is zero.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of); [`Error::OutOfRange`] for null with a length, for offsets that are not aligned and for
    /// sizes beyond the address space; [`Error::Device`] for offsets that the host can't read; [`Error::Unmapped`];
    /// [`Error::OutOfAllocation`] for bytes or offsets that leave the allocation which the driver says they are in; what
    /// else [`classify_range`] says.
    ///
    /// # Safety
    ///
    /// Each pointer is to as many bytes or offsets as its length says, and the memory is live and not written for
    /// `'a`. For memory that no driver claims, nobody but the caller can vouch for that.
    pub unsafe fn from_raw<O: Offset>(
        bytes: *const u8,
        byte_len: usize,
        offsets: *const O,
        offset_count: usize,
    ) -> Result<Self> {
        // SAFETY: the caller lends the memory that is behind the pointers.
        let info = unsafe { check_raw("bytes", bytes, byte_len) }?;
        // SAFETY: as above.
        let offsets_info = unsafe { check_raw("offsets", offsets, offset_count) }?;
        for (operation, info) in [("bytes", &info), ("offsets", &offsets_info)] {
            if info.kind == MemoryKind::Unmapped {
                return Err(Error::Unmapped { operation });
            }
        }
        if let MemoryKind::Device { ordinal } = offsets_info.kind {
            return Err(Error::Device { operation: "offsets", ordinal });
        }
        let offsets = if offset_count == 0 {
            &[]
        } else {
            // SAFETY: not null, aligned, within the address space and the host's to read; live by the caller.
            unsafe { std::slice::from_raw_parts(offsets, offset_count) }
        };
        let offsets = O::wrap(offsets);
        offsets.check(byte_len)?;
        Ok(Self { bytes, byte_len, offsets, info: Some(info), _bytes: PhantomData })
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the bytes' memory is. A span of host memory that nobody has asked about is unregistered here.
    #[must_use]
    pub fn memory(&self) -> MemoryKind {
        self.info.map_or(MemoryKind::Unregistered, |info| info.kind)
    }

    /// What the driver said of raw bytes.
    pub(crate) fn info(&self) -> Option<PointerInfo> {
        self.info
    }

    pub(crate) fn offsets(&self) -> Offsets<'a> {
        self.offsets
    }

    /// The bytes' address, for whoever hands them on.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes
    }

    /// How many bytes there are, those that no item covers included.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// All bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the host can't read.
    pub fn bytes(&self) -> Result<&'a [u8]> {
        if let MemoryKind::Device { ordinal } = self.memory() {
            return Err(Error::Device { operation: "bytes", ordinal });
        }
        if self.byte_len == 0 {
            return Ok(&[]);
        }
        // SAFETY: not null, since the constructors refuse that with a length; live for `'a` by their callers.
        Ok(unsafe { std::slice::from_raw_parts(self.bytes, self.byte_len) })
    }

    /// Where item `index` lies in the bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn range(&self, index: usize) -> Result<Range<usize>> {
        let end = index.saturating_add(1);
        match (self.offsets.get(index), self.offsets.get(end)) {
            (Some(start), Some(end)) => Ok(start..end),
            _ => Err(Error::OutOfRange { operation: "tape item", start: index, end, len: self.len() }),
        }
    }

    /// The bytes of item `index`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`], [`Error::Device`].
    pub fn get(&self, index: usize) -> Result<&'a [u8]> {
        let range = self.range(index)?;
        let (start, end) = (range.start, range.end);
        let bytes = self.bytes()?;
        // The range was checked; the memory of a raw tape may have changed since.
        let out = || Error::OutOfRange { operation: "tape item", start, end, len: bytes.len() };
        bytes.get(range).ok_or_else(out)
    }

    /// The items' bytes in order.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the host can't read.
    pub fn iter(&self) -> Result<impl ExactSizeIterator<Item = &'a [u8]> + use<'a>> {
        let (tape, bytes) = (*self, self.bytes()?);
        Ok((0..self.len()).map(move |index| {
            let range = tape.range(index).unwrap_or(0..0);
            bytes.get(range).unwrap_or(&[])
        }))
    }
}

/// What the driver says of a raw pointer to `len` values, none of which is read.
///
/// # Safety
///
/// As [`classify_range`].
unsafe fn check_raw<T>(operation: &'static str, pointer: *const T, len: usize) -> Result<PointerInfo> {
    if len == 0 {
        return Ok(PointerInfo::UNREGISTERED);
    }
    let in_space = len.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize);
    if pointer.is_null() || !pointer.is_aligned() || !in_space {
        return Err(Error::OutOfRange { operation, start: pointer.addr(), end: len, len: 0 });
    }
    // SAFETY: the caller keeps the memory allocated.
    unsafe { classify_range(pointer.cast(), len * size_of::<T>()) }
}
