//! What backends copy beside plain ranges: rows that are alike, and lists that are launched again and again.

use crate::backend::CopyRange;

/// Rows that are alike, copied by one launch. Row `i` of `count` goes from `source + s * source_stride` to
/// `destination + d * destination_stride`, where `s` and `d` are what [`source_rows`](Self::source_rows) and
/// [`destination_rows`](Self::destination_rows) say of `i`.
#[derive(Debug, Clone, Copy)]
pub struct CopyRows {
    /// Where row 0 of the destination starts.
    pub destination: *mut u8,
    /// Where row 0 of the source starts.
    pub source: *const u8,
    /// Bytes from one row of the destination to the next.
    pub destination_stride: usize,
    /// Bytes from one row of the source to the next: less than a row's, where rows overlap, or 0, where all are one.
    pub source_stride: usize,
    /// Bytes of a row.
    pub bytes: usize,
    /// How many rows are copied.
    pub count: usize,
    /// Which rows of the destination are written.
    pub destination_rows: RowIndices,
    /// Which rows of the source are read. One may be read more than once.
    pub source_rows: RowIndices,
}

/// Which rows: the numbers of [`CopyRows::count`] of them, read when the copy runs and by whoever does it, which on a device
/// is a kernel. They are aligned as their type is.
#[derive(Debug, Clone, Copy)]
pub enum RowIndices {
    /// Row 0, row 1, and so on.
    InOrder,
    /// An array of numbers.
    U32(*const u32),
    /// An array of larger numbers.
    U64(*const u64),
}

impl RowIndices {
    /// The row that is copied in this turn.
    ///
    /// # Safety
    ///
    /// An array has a number for that turn, which the host may read.
    unsafe fn row(self, turn: usize) -> usize {
        match self {
            Self::InOrder => turn,
            // SAFETY: the caller's promise is the same.
            Self::U32(rows) => unsafe { rows.add(turn).read() as usize },
            // SAFETY: as above; a row that is live is not beyond a pointer's width.
            Self::U64(rows) => unsafe { rows.add(turn).read() as usize },
        }
    }
}

impl CopyRows {
    /// The row that is copied in this turn, as a range.
    ///
    /// # Safety
    ///
    /// The arrays have numbers for that turn, which the host may read.
    pub(crate) unsafe fn range(&self, turn: usize) -> CopyRange {
        // SAFETY: the caller's promise is the same.
        let (to, from) = unsafe { (self.destination_rows.row(turn), self.source_rows.row(turn)) };
        CopyRange {
            destination: self.destination.wrapping_add(to.wrapping_mul(self.destination_stride)),
            source: self.source.wrapping_add(from.wrapping_mul(self.source_stride)),
            bytes: self.bytes,
        }
    }
}

// SAFETY: rows are addresses and sizes; who may touch what is behind them is said by `Backend::copy_rows`.
unsafe impl Send for CopyRows {}

/// A list of copies that lies where its backend reads it, from [`prepare`](crate::backend::Backend::prepare).
///
/// Dropped, it waits until the streams that it was launched in have passed, and frees its memory. Where the thread may not
/// wait, as the driver's own, and while one of the streams is being captured, another thread does both. It keeps those
/// streams until then. What a graph does with it later is not known to it: whoever launches the graph keeps the list.
#[derive(Debug)]
pub struct PreparedCopies {
    pub(crate) kind: PreparedKind,
    count: usize,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) enum PreparedKind {
    Host(std::sync::Arc<[CopyRange]>),
    #[cfg(gpu)]
    Gpu(crate::backends::gpu::GpuPrepared),
}

impl PreparedCopies {
    pub(crate) fn new(kind: PreparedKind, ranges: &[CopyRange]) -> Self {
        let bytes = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.bytes as u64));
        Self { kind, count: ranges.len(), bytes }
    }

    /// How many ranges there are, those without bytes too.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many bytes a launch copies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
