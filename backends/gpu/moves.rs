//! Ranges that overlap themselves and are too long for one block: they are moved part after part, in the order of
//! `memmove`, each by way of memory between, unless its ends are apart.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::event::GpuEvent;
use super::list;
use super::stream::{GpuStream, Queueing};
use super::{blocks, copies};
use crate::backend::{Block, CopyRange, Placement};
use crate::error::Result;

/// Bytes from which on a range is moved in parts: one block moves some 50 bytes a nanosecond on an H200, read and written,
/// and two launches take it three microseconds.
const LONG: usize = 256 << 10;

/// Bytes of a part, which is read back while it is in the device's cache: an H200 has 50 MiB of that.
const PART: usize = 8 << 20;

/// The memory between. The stream's order keeps one part's use of it from the next.
#[derive(Debug, Default)]
pub(super) struct Moves(Mutex<Option<Between>>);

#[derive(Debug)]
struct Between {
    block: Block,
    /// Behind the last launch that uses the block.
    event: GpuEvent,
}

impl Between {
    fn new(stream: &GpuStream) -> Result<Self> {
        let event = GpuEvent::new(stream.device())?;
        Ok(Self { block: blocks::allocate(stream.device(), Placement::Device, PART)?, event })
    }
}

impl Moves {
    fn lock(&self) -> MutexGuard<'_, Option<Between>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the memory once its last launch has passed. What can't be waited for is left to the driver.
    pub(super) fn free(&self) {
        let Some(Between { block, event }) = self.lock().take() else { return };
        if event.wait(None).is_err_and(|error| !error.is_of_lost_device()) {
            return;
        }
        // SAFETY: it was taken out, and the last launch that used it has passed, or its device is lost.
        let _ = unsafe { blocks::free(None, block) };
    }
}

/// Whether a range is one that one block takes long to move.
pub(super) fn is_long_move(range: &CopyRange) -> bool {
    range.bytes >= LONG && copies::overlaps(range) && range.source != range.destination.cast_const()
}

/// Bytes from which on a [long move](is_long_move) of this list is moved in parts. Parts follow each other and go some sixteen
/// times as fast as a block, while a launch has a block for each range, and they all move at once: parts are for ranges that
/// one block takes longer for than parts do for all of the list's long moves. 0 where there are none.
pub(super) fn least_in_parts(ranges: &[CopyRange]) -> usize {
    let moves = ranges.iter().filter(|range| is_long_move(range));
    moves.fold(0, |sum: usize, range| sum.saturating_add(LONG / 2 + range.bytes / 16))
}

/// Whether a range of a list is moved in parts, by the [least](least_in_parts) of that list.
pub(super) fn is_in_parts(range: &CopyRange, least: usize) -> bool {
    range.bytes >= least && is_long_move(range)
}

/// The parts of a range, as offsets and bytes, in the order in which no part is written over before it is moved.
fn parts(bytes: usize, part: usize, backwards: bool) -> impl Iterator<Item = (usize, usize)> {
    let mut left = bytes;
    std::iter::from_fn(move || {
        let size = left.min(part);
        let at = if backwards { left - size } else { bytes - left };
        left -= size;
        (size != 0).then_some((at, size))
    })
}

/// # Safety
///
/// As [`copies::copy`], for one range that [is long](is_long_move); the stream is not captured.
pub(super) unsafe fn copy(stream: &GpuStream, range: &CopyRange) -> Result<()> {
    debug_assert!(is_long_move(range));
    let distance = range.destination.addr().abs_diff(range.source.addr());
    // Held while the parts are queued: another thread's parts would use the same memory between them.
    let mut kept = stream.moves.lock();
    if distance >= PART {
        let queueing = stream.queue_outside_captures("copy")?;
        // SAFETY: the caller's promise is the same.
        return unsafe { copy_parts(stream, &queueing, range, distance, None) };
    }
    let between = match kept.take() {
        Some(between) => between,
        None => match Between::new(stream) {
            Ok(between) => between,
            // One block needs no memory.
            // SAFETY: the caller's promise is the same.
            Err(_) => return unsafe { list::copy_few(stream, &[*range]) },
        },
    };
    let queueing = match stream.queue_outside_captures("copy") {
        Ok(queueing) => queueing,
        Err(error) => {
            *kept = Some(between);
            return Err(error);
        }
    };
    // SAFETY: the caller's promise is the same.
    let moved = unsafe { copy_parts(stream, &queueing, range, PART, Some(&between.block)) };
    // Where no event says when the memory can be freed, the stream does; and where that does not, it never is.
    let noted = between.event.record(stream).or_else(|_| stream.wait_for_borrowed(queueing));
    if noted.is_ok() {
        *kept = Some(between);
    }
    moved
}

/// # Safety
///
/// As [`copy`]; a part is no longer than what it goes by, or its ends are apart.
unsafe fn copy_parts(
    stream: &GpuStream,
    queueing: &Queueing<'_>,
    range: &CopyRange,
    part: usize,
    between: Option<&Block>,
) -> Result<()> {
    let CopyRange { destination, source, bytes } = *range;
    debug_assert!(between.map_or(usize::MAX, |block| block.bytes) >= part);
    for (at, bytes) in parts(bytes, part, destination.addr() > source.addr()) {
        let (destination, source) = (destination.wrapping_add(at), source.wrapping_add(at));
        let copy = |destination, source| {
            // SAFETY: the part is of the caller's range, and what is between holds it; its ends are apart by the caller.
            unsafe { list::copy_few_queued(stream, queueing, &[CopyRange { destination, source, bytes }]) }
        };
        match between.map(|block| block.address.as_ptr()) {
            Some(between) => copy(between, source).and_then(|()| copy(destination, between.cast_const()))?,
            None => copy(destination, source)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_from_the_end_that_they_move_towards() {
        let all = |bytes, backwards| parts(bytes, 10, backwards).collect::<Vec<_>>();
        assert_eq!(all(0, false), []);
        assert_eq!(all(10, false), [(0, 10)]);
        assert_eq!(all(25, false), [(0, 10), (10, 10), (20, 5)]);
        assert_eq!(all(25, true), [(15, 10), (5, 10), (0, 5)]);
        assert_eq!(parts(usize::MAX, 10, true).next(), Some((usize::MAX - 10, 10)));
    }

    #[test]
    fn short_ranges_and_those_whose_ends_are_apart_are_listed() {
        let range = |distance, bytes| CopyRange {
            destination: std::ptr::without_provenance_mut((1 << 40) + distance),
            source: std::ptr::without_provenance(1 << 40),
            bytes,
        };
        assert!(is_long_move(&range(1, LONG)) && is_long_move(&range(LONG - 1, LONG)));
        assert!(!is_long_move(&range(1, LONG - 1)) && !is_long_move(&range(LONG, LONG)));
        assert!(!is_long_move(&range(0, LONG)));
    }

    #[test]
    fn many_alike_are_left_to_their_blocks() {
        const MIB: usize = 1 << 20;
        let range = |bytes| CopyRange {
            destination: std::ptr::without_provenance_mut((1 << 40) + 1),
            source: std::ptr::without_provenance(1 << 40),
            bytes,
        };
        let in_parts = |lengths: &[usize]| {
            let ranges: Vec<_> = lengths.iter().map(|&bytes| range(bytes)).collect();
            let least = least_in_parts(&ranges);
            ranges.iter().filter(|range| is_in_parts(range, least)).count()
        };
        assert_eq!(
            [LONG - 1, LONG, MIB, 1 << 40, usize::MAX].map(|bytes| in_parts(&[bytes])),
            [0, 1, 1, 1, 1]
        );
        assert_eq!((in_parts(&[LONG; 2]), in_parts(&[MIB; 5]), in_parts(&[MIB; 6])), (0, 5, 0));
        assert_eq!((in_parts(&[64 * MIB; 15]), in_parts(&[64 * MIB; 16])), (15, 0));
        let mut mixed = vec![LONG; 1000];
        mixed.push(1024 * MIB);
        assert_eq!((in_parts(&mixed), in_parts(&[])), (1, 0));
    }
}
