//! Parts of an output by their offsets: what runs of planned arenas write, read, move and clear.

use super::Output;
use crate::backend::{Backend, CopyRange, CopyRows, PreparedCopies, ScrubRange};
use crate::error::{Error, Result};

/// A move within one output, in bytes from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) bytes: usize,
}

impl Output<u8> {
    /// The room's address, for whoever compares it.
    pub(crate) fn base(&self) -> *mut u8 {
        self.address().as_ptr()
    }

    /// Whether the host touches the room itself. Where a device has it, or its work on it has not passed, the work goes to
    /// the stream.
    fn is_by_host(&self, operation: &'static str) -> Result<bool> {
        // What a capture takes is for the graph to do.
        if self.hold().is_captured() {
            return Ok(false);
        }
        match self.host_access(operation) {
            Ok(()) => Ok(true),
            Err(Error::Device { .. } | Error::Pending { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes work on the room that was just queued: the host sees nothing of it until the stream has passed.
    fn note_device_work(&mut self, operation: &'static str) -> Result<()> {
        if self.hold().core().source.is_on_device() { self.give_to_device(operation) } else { Ok(()) }
    }

    /// The address of a part that lies within.
    fn part(&self, operation: &'static str, start: usize, bytes: usize) -> Result<*mut u8> {
        match start.checked_add(bytes) {
            Some(end) if end <= self.len() => Ok(self.address().as_ptr().wrapping_add(start)),
            end => {
                let end = end.unwrap_or(usize::MAX);
                Err(Error::OutOfRange { operation, start, end, len: self.len() })
            }
        }
    }

    /// Writes bytes at an offset, and is done with them when it returns.
    pub(crate) fn write_part(&mut self, operation: &'static str, at: usize, bytes: &[u8]) -> Result<()> {
        let destination = self.part(operation, at, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        if self.is_by_host(operation)? {
            // SAFETY: the part lies within the room, which this output alone leads to; the bytes are borrowed.
            unsafe { destination.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            return Ok(());
        }
        let range = CopyRange { destination, source: bytes.as_ptr(), bytes: bytes.len() };
        // SAFETY: as above, until this returns.
        unsafe { self.hold().transfer(range) }
    }

    /// Reads bytes from an offset.
    pub(crate) fn read_part(&self, operation: &'static str, at: usize, bytes: &mut [u8]) -> Result<()> {
        let source = self.part(operation, at, bytes.len())?.cast_const();
        if bytes.is_empty() {
            return Ok(());
        }
        if self.is_by_host(operation)? {
            // SAFETY: the part lies within the room, which nobody writes while this output is borrowed.
            unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(source, bytes.len()) };
            return Ok(());
        }
        let range = CopyRange { destination: bytes.as_mut_ptr(), source, bytes: bytes.len() };
        // SAFETY: as above, until this returns.
        unsafe { self.hold().transfer(range) }
    }

    /// Moves parts, each as `memmove` would. On a device it is queued, as one launch.
    ///
    /// # Safety
    ///
    /// No part's destination clashes with another part.
    pub(crate) unsafe fn move_parts(&mut self, operation: &'static str, parts: &[Part]) -> Result<()> {
        let mut ranges = Vec::with_capacity(parts.len());
        for part in parts.iter().filter(|part| part.bytes != 0 && part.to != part.from) {
            let destination = self.part(operation, part.to, part.bytes)?;
            let source = self.part(operation, part.from, part.bytes)?.cast_const();
            ranges.push(CopyRange { destination, source, bytes: part.bytes });
        }
        if ranges.is_empty() {
            return Ok(());
        }
        if self.is_by_host(operation)? {
            for range in ranges {
                // SAFETY: both ends lie within the room, which this output alone leads to.
                unsafe { range.destination.copy_from(range.source, range.bytes) };
            }
            return Ok(());
        }
        let core = self.hold().core();
        self.hold().check_capture(operation)?;
        // SAFETY: as above, in the order of the stream; that no ranges clash is the caller's promise.
        let queued = unsafe { core.source.backend.copy(self.hold().stream(), &ranges) };
        // Some may be queued where others were refused.
        self.note_device_work(operation)?;
        queued
    }

    /// Fills a part with one byte. On a device it is queued.
    pub(crate) fn fill_part(
        &mut self,
        operation: &'static str,
        at: usize,
        bytes: usize,
        value: u8,
    ) -> Result<()> {
        let address = self.part(operation, at, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        if self.is_by_host(operation)? {
            // SAFETY: the part lies within the room, which this output alone leads to.
            unsafe { address.write_bytes(value, bytes) };
            return Ok(());
        }
        let core = self.hold().core();
        self.hold().check_capture(operation)?;
        let range = ScrubRange { address, bytes, value };
        // SAFETY: as above, in the order of the stream.
        unsafe { core.source.backend.rewind(self.hold().stream(), None, &[range]) }?;
        self.note_device_work(operation)
    }
}

impl Output<u8> {
    /// Copies all bytes into another output that is as long, of this arena or any other.
    pub(crate) fn copy_all_into(&mut self, operation: &'static str, other: &mut Self) -> Result<()> {
        let bytes = self.len();
        if other.len() != bytes {
            return Err(Error::LengthMismatch { operation, expected: bytes, actual: other.len() });
        }
        if bytes == 0 {
            return Ok(());
        }
        if self.is_by_host(operation)? {
            let from = self.address().as_ptr().cast_const();
            // SAFETY: the host may read the room, which this output alone leads to; the other one's is another.
            return other.write_part(operation, 0, unsafe { std::slice::from_raw_parts(from, bytes) });
        }
        if other.is_by_host(operation)? {
            let to = other.address().as_ptr();
            // SAFETY: likewise.
            return self.read_part(operation, 0, unsafe { std::slice::from_raw_parts_mut(to, bytes) });
        }
        if self.hold().core().source.backend.vendor() != other.hold().core().source.backend.vendor() {
            return self.copy_by_the_host(operation, other);
        }
        let queued = self.queue_all_into(other);
        other.note_device_work(operation)?;
        self.note_device_work(operation)?;
        queued
    }

    /// Queues it in the other's stream, behind what either stream has now; what this one gets from here on comes behind it.
    fn queue_all_into(&self, other: &Self) -> Result<()> {
        let backend = &other.hold().core().source.backend;
        let streams = (self.hold().stream(), other.hold().stream());
        let (Some(own_stream), Some(their_stream)) = streams else { return Ok(()) };
        let written = backend.record(own_stream)?;
        backend.stream_wait(their_stream, &written)?;
        let (destination, source) = (other.address().as_ptr(), self.address().as_ptr().cast_const());
        // SAFETY: both rooms are held, are as long and two; the streams are in order of each other.
        unsafe {
            backend.transfer(Some(their_stream), CopyRange { destination, source, bytes: self.len() })
        }?;
        let ordered =
            backend.record(their_stream).and_then(|copied| backend.stream_wait(own_stream, &copied));
        // Where no event orders them, the host does.
        ordered.or_else(|_| backend.synchronize(their_stream))
    }

    /// By way of the host, a piece at a time: neither driver knows the other's memory.
    fn copy_by_the_host(&self, operation: &'static str, other: &mut Self) -> Result<()> {
        const PIECE: usize = 16 << 20;
        let mut piece = vec![0u8; self.len().min(PIECE)];
        for at in (0..self.len()).step_by(PIECE) {
            let bytes = PIECE.min(self.len() - at);
            let part = piece.get_mut(..bytes).unwrap_or_default();
            self.read_part(operation, at, part)?;
            other.write_part(operation, at, part)?;
        }
        Ok(())
    }
}

impl Output<u8> {
    /// Makes copies whose ends are live as one launch, and one for each set of rows. On a device they are queued, and some
    /// of them are where others were refused.
    ///
    /// # Safety
    ///
    /// As [`Backend::copy`] and [`Backend::copy_rows`]: the ends are live, where the host or the executor's device reaches
    /// them, until the stream has passed, and no copy's destination clashes with another copy.
    pub(crate) unsafe fn copy_ranges(&mut self, ranges: &[CopyRange], rows: &[CopyRows]) -> Result<()> {
        let backend = &self.hold().core().source.backend;
        let queued = if ranges.is_empty() {
            Ok(())
        } else {
            // SAFETY: the caller's promise is the same.
            unsafe { backend.copy(self.hold().stream(), ranges) }
        };
        // SAFETY: as above.
        let queued = queued.and_then(|()| unsafe { self.queue_rows(rows) });
        self.note_device_work("copy")?;
        queued
    }

    /// # Safety
    ///
    /// As [`Backend::copy_rows`], of each set.
    unsafe fn queue_rows(&self, rows: &[CopyRows]) -> Result<()> {
        let backend = &self.hold().core().source.backend;
        // SAFETY: the caller's promise is the same.
        rows.iter().try_for_each(|rows| unsafe { backend.copy_rows(self.hold().stream(), rows) })
    }

    /// Puts a list where the stream's device reads it.
    pub(crate) fn prepare_ranges(&self, ranges: &[CopyRange]) -> Result<PreparedCopies> {
        self.hold().core().source.backend.prepare(self.hold().stream(), ranges)
    }

    /// As [`copy_ranges`](Self::copy_ranges), of a list that was prepared.
    ///
    /// # Safety
    ///
    /// As [`Backend::copy_prepared`] and [`Backend::copy_rows`].
    pub(crate) unsafe fn copy_prepared(&mut self, list: &PreparedCopies, rows: &[CopyRows]) -> Result<()> {
        let backend = &self.hold().core().source.backend;
        // SAFETY: the caller's promise is the same.
        let queued = unsafe { backend.copy_prepared(self.hold().stream(), list) };
        // SAFETY: as above.
        let queued = queued.and_then(|()| unsafe { self.queue_rows(rows) });
        self.note_device_work("copy")?;
        queued
    }

    /// Whether work goes into the room's own graph: see [`Hold::check_capture`](super::hold::Hold::check_capture).
    pub(crate) fn check_capture(&self, operation: &'static str) -> Result<bool> {
        self.hold().check_capture(operation)
    }
}
