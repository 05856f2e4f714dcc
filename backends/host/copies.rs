//! Copies by the host: by the calling thread, or by several where there are cores for them and bytes enough.

use std::io;
use std::thread::{self, Builder};

use crate::backend::{CopyRange, CopyRows};

/// Before so many bytes are copied, nobody asks how many there are in all: to read a long list twice takes time as well.
const FEW: usize = 256 << 10;
/// Lists of fewer bytes are the calling thread's alone: to start threads takes much of what they save.
const LARGE: usize = 16 << 20;
/// A thread has at least so many bytes: hundreds of microseconds of work for the tens that it takes to start.
const SHARE: usize = 4 << 20;
/// More threads than this only wait for the memory.
const MOST_THREADS: usize = 8;
/// A range is cut where its destination is at a multiple of this, so that no two threads write parts of it in one page.
const CUT: usize = 4096;

/// Copies each range, which may overlap itself, by the host. All of it is done on return.
///
/// # Safety
///
/// Each range is live on both sides, and nobody else touches it meanwhile; no range's destination clashes with another.
pub(super) unsafe fn copy(ranges: &[CopyRange]) {
    let (mut ahead, mut copied, mut most) = (ranges, 0usize, FEW);
    loop {
        // SAFETY: this function's own contract.
        let (left, room) = unsafe { copy_few(ahead, most) };
        let Some(next) = left.first() else { return };
        copied = copied.saturating_add(most - room);
        // The whole list is read only where it will be large if it goes on like this. If not, it may still change.
        let seen = copied.saturating_add(next.bytes);
        let count = ranges.len().saturating_sub(left.len()).saturating_add(1);
        if seen.div_ceil(count).saturating_mul(ranges.len()) >= LARGE {
            // SAFETY: as above, of the ranges that are left.
            return unsafe { copy_many(left.iter().copied(), sum(ranges)) };
        }
        (ahead, most) = (left, seen.max(FEW));
    }
}

/// Copies the first ranges, as long as they have no more bytes than `most`. Answers those that are left, and how many bytes
/// there would be room for.
///
/// # Safety
///
/// As [`copy`].
unsafe fn copy_few(ranges: &[CopyRange], most: usize) -> (&[CopyRange], usize) {
    let (mut rest, mut room) = (ranges.iter(), most);
    loop {
        let left = rest.as_slice();
        let Some(range) = rest.next() else { return (left, room) };
        let Some(room_behind) = room.checked_sub(range.bytes) else { return (left, room) };
        room = room_behind;
        // SAFETY: the range is live on both sides, and may overlap itself.
        unsafe { std::ptr::copy(range.source, range.destination, range.bytes) };
    }
}

fn sum(ranges: &[CopyRange]) -> usize {
    ranges.iter().fold(0, |sum, range| sum.saturating_add(range.bytes))
}

/// Copies rows by the host. All of it is done on return.
///
/// # Safety
///
/// As [`copy_rows`](crate::backend::Backend::copy_rows), for the host, and until this returns.
pub(super) unsafe fn copy_rows(rows: &CopyRows) {
    if rows.bytes == 0 {
        return;
    }
    let bytes = rows.bytes.saturating_mul(rows.count);
    if bytes >= LARGE {
        // SAFETY: this function's own contract, of every row.
        return unsafe { copy_many(each_row(*rows), bytes) };
    }
    for turn in 0..rows.count {
        // SAFETY: the arrays have as many numbers as there are rows.
        let range = unsafe { rows.range(turn) };
        // SAFETY: the row is live on both sides, and may overlap itself.
        unsafe { std::ptr::copy(range.source, range.destination, range.bytes) };
    }
}

/// The rows as ranges.
///
/// # Safety
///
/// The arrays of numbers can be read as long as the iterator is used, by whatever thread.
unsafe fn each_row(rows: CopyRows) -> impl Iterator<Item = CopyRange> + Clone + Send {
    // SAFETY: the arrays have as many numbers as there are rows.
    (0..rows.count).map(move |turn| unsafe { rows.range(turn) })
}

/// Copies what takes longer than to find out who does it. It is no part of the function that copies little.
///
/// # Safety
///
/// As [`copy`]; `bytes` is no less than what the ranges have in all.
#[cold]
#[inline(never)]
unsafe fn copy_many(ranges: impl Iterator<Item = CopyRange> + Clone + Send, bytes: usize) {
    let threads = if bytes < LARGE { 1 } else { threads(bytes, cores()) };
    if threads < 2 {
        for range in ranges {
            // SAFETY: the range is live on both sides, and may overlap itself.
            unsafe { std::ptr::copy(range.source, range.destination, range.bytes) };
        }
        return;
    }
    // SAFETY: this function's own contract.
    unsafe { share_out(ranges, bytes, threads, |_| Ok(Builder::new().name("device-arena".into()))) };
}

/// How many threads copy so many bytes of a large list. They have half the cores: two threads of one core share what copies,
/// and other work goes on beside.
fn threads(bytes: usize, cores: usize) -> usize {
    MOST_THREADS.min(cores / 2).min(bytes / SHARE)
}

/// The cores that the calling thread may use, and what it starts: one that is bound to a core copies alone. Asked each time,
/// which takes some 20 microseconds of the millisecond or more that a large list takes.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Shares the ranges out by bytes among the calling thread and others, which are built as `builder` says for their share.
/// Where one can't be had, its share is the calling thread's, with all before it.
///
/// # Safety
///
/// As [`copy_many`].
unsafe fn share_out(
    ranges: impl Iterator<Item = CopyRange> + Clone + Send,
    bytes: usize,
    threads: usize,
    builder: impl Fn(usize) -> io::Result<Builder>,
) {
    let share = bytes.div_ceil(threads.max(1));
    // The scope ends when every thread has: nobody touches a range after this function, nor leaves one undone.
    thread::scope(|scope| {
        let mut left = threads;
        while left > 1 {
            let (begin, end) = (share.saturating_mul(left - 1), share.saturating_mul(left));
            let ranges = ranges.clone();
            // SAFETY: the pointers may be used by another thread, since the caller promises that the ranges are live and
            // nobody else's until all have been copied, which the scope waits for. Threads don't race: no destination clashes
            // with another range, by the caller's promise, and the parts of one range are apart, which `cut` sees to.
            let part = move || unsafe { copy_part(ranges, begin, end) };
            if builder(left - 1).and_then(|builder| builder.spawn_scoped(scope, part)).is_err() {
                break;
            }
            left -= 1;
        }
        // SAFETY: as above.
        unsafe { copy_part(ranges, 0, share.saturating_mul(left)) };
    });
}

/// Copies what lies from byte `begin` to byte `end` of all ranges, one behind the other.
///
/// # Safety
///
/// As [`copy`], but that others may copy other parts.
unsafe fn copy_part(ranges: impl Iterator<Item = CopyRange>, begin: usize, end: usize) {
    debug_assert!(begin <= end);
    let mut at = 0usize;
    // What stays where it is may lie in another range's destination, and must not be written back.
    for range in ranges.filter(|range| range.source != range.destination.cast_const()) {
        if at >= end {
            break;
        }
        let from = cut(&range, begin.saturating_sub(at));
        let bytes = cut(&range, end.saturating_sub(at)).saturating_sub(from);
        let (source, destination) = (range.source.wrapping_add(from), range.destination.wrapping_add(from));
        if bytes != 0 {
            // SAFETY: `cut` answers no more than the range's bytes, so the part lies within it.
            unsafe { std::ptr::copy(source, destination, bytes) };
        }
        // Destinations are apart, so that their bytes are fewer than addresses.
        at = at.saturating_add(range.bytes);
    }
}

/// Where a range is cut whose part begins or ends at `offset`: at the next multiple of [`CUT`], and behind all of it where it
/// overlaps itself, since a part would overwrite what another has yet to read. The answer never falls as the offset rises.
fn cut(range: &CopyRange, offset: usize) -> usize {
    if offset == 0 || offset >= range.bytes {
        return offset.min(range.bytes);
    }
    let (to, from) = (range.destination.addr(), range.source.addr());
    if to.abs_diff(from) < range.bytes {
        return range.bytes;
    }
    let short_of_next = to.wrapping_add(offset).wrapping_neg() % CUT;
    offset.saturating_add(short_of_next).min(range.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::RowIndices;

    fn pattern(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
    }

    fn any(_share: usize) -> io::Result<Builder> {
        Ok(Builder::new())
    }

    /// Copies within one piece of memory, each of `bytes` from `from` to `to`, and holds it against a plain loop.
    fn expect(
        copies: &[(usize, usize, usize)],
        threads: usize,
        thread: impl Fn(usize) -> io::Result<Builder>,
    ) {
        let length = copies.iter().map(|&(to, from, bytes)| to.max(from) + bytes).max().unwrap_or(0);
        let mut memory = pattern(length);
        let mut expected = memory.clone();
        for &(to, from, bytes) in copies {
            expected.copy_within(from..from + bytes, to);
        }
        let start = memory.as_mut_ptr();
        let range = |&(to, from, bytes): &(usize, usize, usize)| CopyRange {
            destination: start.wrapping_add(to),
            source: start.wrapping_add(from),
            bytes,
        };
        let ranges: Vec<CopyRange> = copies.iter().map(range).collect();
        let bytes = copies.iter().map(|copy| copy.2).sum();
        // SAFETY: the ranges lie within the memory, and the callers' don't clash.
        unsafe { share_out(ranges.iter().copied(), bytes, threads, thread) };
        assert!(memory == expected, "{threads} threads, {copies:?}");
    }

    /// One behind the other, from a far part of the memory.
    fn in_a_row(sizes: &[usize]) -> Vec<(usize, usize, usize)> {
        let far = sizes.iter().sum::<usize>() + 77;
        let places = sizes.iter().scan(3, |next, &bytes| {
            let to = *next;
            *next += bytes;
            Some((to, far + to, bytes))
        });
        places.collect()
    }

    #[test]
    fn any_number_of_threads_copies_what_a_loop_does() {
        let odd = in_a_row(&[0, 1, 4095, 0, 4097, 3, 12289, 64, 0, 255, 30001, 1536, 7, 0]);
        let short = in_a_row(&[48; 100]);
        for threads in 1..=9 {
            expect(&odd, threads, any);
            expect(&short, threads, any);
            expect(&in_a_row(&[100_003]), threads, any);
            expect(&in_a_row(&[5, 100_003, 9]), threads, any);
            expect(&in_a_row(&[2]), threads, any);
            expect(&in_a_row(&[0, 0]), threads, any);
            expect(&[], threads, any);
        }
    }

    #[test]
    fn lists_that_become_large_or_small_lose_nothing() {
        let mut grows = vec![0; 3];
        grows.extend([500; 600]);
        grows.extend([0, FEW + 1, 0, 1, 3 * FEW, 7]);
        let shrinks: Vec<usize> = grows.iter().rev().copied().collect();
        for sizes in [&grows, &shrinks, &vec![FEW; 3], &vec![FEW + 1; 2], &vec![4095; 70]] {
            let bytes: usize = sizes.iter().sum();
            let source = pattern(bytes);
            let mut destination = vec![0; bytes];
            let start = destination.as_mut_ptr();
            let ranges = sizes.iter().scan(0, |next, &bytes| {
                let at = *next;
                *next += bytes;
                let source = source.as_ptr().wrapping_add(at);
                Some(CopyRange { destination: start.wrapping_add(at), source, bytes })
            });
            let ranges: Vec<CopyRange> = ranges.collect();
            // SAFETY: every range is in both pieces of memory, and none clashes with another.
            unsafe { copy(&ranges) };
            assert!(destination == source, "{} ranges", sizes.len());
        }
    }

    #[test]
    fn a_range_that_overlaps_itself_is_one_threads() {
        let up = (1000, 0, 50_000);
        let down = (60_000, 60_001, 40_000);
        let other = (120_000, 170_000, 50_000);
        for threads in 1..=8 {
            expect(&[up], threads, any);
            expect(&[down], threads, any);
            expect(&[other, up, down], threads, any);
            expect(&[up, other, down], threads, any);
        }
    }

    #[test]
    fn what_stays_where_it_is_is_not_touched() {
        let written = (10_000, 50_000, 30_000);
        for threads in 1..=8 {
            expect(&[(0, 0, 45_000), written, (9_000, 9_000, 20_000)], threads, any);
        }
        // Whoever touches memory that is not there does not come back.
        let nowhere = std::ptr::without_provenance_mut(CUT);
        let stays = CopyRange { destination: nowhere, source: nowhere, bytes: 100_000 };
        // SAFETY: nothing of the range is read or written, as this test is to show.
        unsafe { share_out([stays; 3].into_iter(), 300_000, 4, any) };
    }

    #[test]
    fn shares_of_threads_that_cant_be_had_are_copied_all_the_same() {
        let copies = in_a_row(&[40_000, 1, 4096, 0, 60_001, 333]);
        for missing in 1..8 {
            let all_but =
                |share| if share == missing { Err(io::ErrorKind::WouldBlock.into()) } else { any(share) };
            expect(&copies, 8, all_but);
        }
    }

    #[test]
    fn parts_meet_at_pages_of_the_destination() {
        let mut range = CopyRange {
            destination: std::ptr::without_provenance_mut(10 * CUT + 100),
            source: std::ptr::without_provenance(50 * CUT + 7),
            bytes: 5 * CUT,
        };
        let mut last = 0;
        for offset in 0..=range.bytes + 1 {
            let at = cut(&range, offset);
            assert!(at >= last && at >= offset.min(range.bytes) && at <= range.bytes);
            let is_page = (range.destination.addr() + at).is_multiple_of(CUT);
            assert!(at == 0 || at == range.bytes || is_page, "{offset}: {at}");
            last = at;
        }
        range.source = range.destination.wrapping_add(range.bytes - 1);
        assert_eq!(
            [0, 1, CUT, range.bytes, usize::MAX].map(|offset| cut(&range, offset)),
            [0, range.bytes, range.bytes, range.bytes, range.bytes]
        );
    }

    #[test]
    fn rows_are_shared_out_likewise() {
        let source = pattern(40 * 1000);
        let numbers: Vec<u32> = (0..37).map(|turn| turn * 7 % 37).collect();
        let mut expected = vec![1; 40 * 1000];
        for (turn, &row) in numbers.iter().enumerate() {
            let (to, from) = (turn * 1000, row as usize * 1000 + 5);
            expected[to..to + 900].copy_from_slice(&source[from..from + 900]);
        }
        for threads in 1..=8 {
            let mut destination = vec![1; 40 * 1000];
            let rows = CopyRows {
                destination: destination.as_mut_ptr(),
                source: source.as_ptr().wrapping_add(5),
                destination_stride: 1000,
                source_stride: 1000,
                bytes: 900,
                count: numbers.len(),
                destination_rows: RowIndices::InOrder,
                source_rows: RowIndices::U32(numbers.as_ptr()),
            };
            // SAFETY: every row lies within its memory, and the numbers are here.
            unsafe { share_out(each_row(rows), rows.bytes * rows.count, threads, any) };
            assert!(destination == expected, "{threads} threads");
        }
    }

    #[test]
    fn few_cores_and_few_bytes_have_one_thread() {
        const MIB: usize = 1 << 20;
        let of = |cores| [16, 20, 32, 256].map(|mib| threads(mib * MIB, cores));
        assert_eq!((of(1), of(2), of(3)), ([0; 4], [1; 4], [1; 4]));
        assert_eq!((of(4), of(8), of(16)), ([2; 4], [4; 4], [4, 5, 8, 8]));
        assert_eq!(of(192), [4, 5, 8, 8]);
    }
}
