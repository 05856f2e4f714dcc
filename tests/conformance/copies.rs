//! Rows that are alike, and lists that are launched again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use device_arena::backend::{Backend, Block, CopyRange, CopyRows, Placement, PreparedCopies, RowIndices};

use crate::Subject;
use crate::blocks::Bench;

const SOON: Duration = Duration::from_millis(30);

fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((at + seed) * 31 % 251) as u8).collect()
}

/// A block with these bytes.
fn filled(bench: &Bench, bytes: &[u8]) -> Block {
    let block = bench.allocate(Placement::Device, bytes.len().max(1));
    bench.write(&block, bytes);
    block
}

fn at(block: &Block, offset: usize) -> *mut u8 {
    block.address().as_ptr().wrapping_add(offset)
}

/// Rows of one side: where the first begins, how far it is to the next, and the numbers of those that are copied.
#[derive(Clone, Copy)]
struct Side<'n> {
    start: usize,
    stride: usize,
    numbers: Option<&'n [u64]>,
}

impl Side<'_> {
    fn row(&self, turn: usize) -> usize {
        let row = self.numbers.map_or(turn, |numbers| numbers[turn] as usize);
        self.start + row * self.stride
    }
}

fn in_order(start: usize, stride: usize) -> Side<'static> {
    Side { start, stride, numbers: None }
}

/// The numbers as they are passed, and the block that they are in.
fn indices(bench: &Bench, numbers: Option<&[u64]>, is_wide: bool) -> (RowIndices, Option<Block>) {
    let Some(numbers) = numbers else { return (RowIndices::InOrder, None) };
    let bytes: Vec<u8> = if is_wide {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    } else {
        numbers.iter().flat_map(|&number| u32::try_from(number).unwrap().to_ne_bytes()).collect()
    };
    let block = filled(bench, &bytes);
    let start = block.address().as_ptr().cast_const();
    let indices = if is_wide { RowIndices::U64(start.cast()) } else { RowIndices::U32(start.cast()) };
    (indices, Some(block))
}

/// Copies rows of `bytes` bytes from one block to another, and holds them against the host's own copies.
fn check_rows(bench: &Bench, count: usize, bytes: usize, to: Side, from: Side) {
    let end = |side: Side| (0..count).map(|turn| side.row(turn) + bytes).max().unwrap_or(0);
    let (source, mut expected) = (pattern(end(from), 3), pattern(end(to) + 32, 5));
    let (from_block, to_block) = (filled(bench, &source), filled(bench, &expected));
    for turn in 0..count {
        let (to, from) = (to.row(turn), from.row(turn));
        expected[to..to + bytes].copy_from_slice(&source[from..from + bytes]);
    }
    for is_wide in [false, true] {
        bench.write(&to_block, &pattern(expected.len(), 5));
        let (destination_rows, to_numbers) = indices(bench, to.numbers, is_wide);
        let (source_rows, from_numbers) = indices(bench, from.numbers, !is_wide);
        let rows = CopyRows {
            destination: at(&to_block, to.start),
            source: at(&from_block, from.start),
            destination_stride: to.stride,
            source_stride: from.stride,
            bytes,
            count,
            destination_rows,
            source_rows,
        };
        // SAFETY: the rows and the numbers are of blocks that the test has alone, and no two rows clash.
        unsafe { bench.subject.backend.copy_rows(Some(&bench.stream), &rows) }.unwrap();
        let got = bench.read(&to_block);
        let wrong = got.iter().zip(&expected).position(|(got, expected)| got != expected);
        assert_eq!(wrong, None, "{count} rows of {bytes} bytes, from {} to {}", from.start, to.start);
        [to_numbers, from_numbers].into_iter().flatten().for_each(|block| bench.free(block));
    }
    [from_block, to_block].into_iter().for_each(|block| bench.free(block));
}

pub(crate) fn rows_are_copied_in_order_and_with_strides(subject: &Subject) {
    let bench = Bench::new(subject);
    for bytes in [1, 7, 16, 33, 256, 1000, 1024, 2048, 2049, 5000] {
        check_rows(&bench, 9, bytes, in_order(0, bytes), in_order(0, bytes));
        check_rows(&bench, 9, bytes, in_order(3, bytes + 5), in_order(1, bytes + 11));
        check_rows(&bench, 5, bytes, in_order(16, bytes + 16), in_order(0, bytes.div_ceil(2)));
        check_rows(&bench, 130, bytes, in_order(0, bytes), in_order(7, 0));
        check_rows(&bench, 1, bytes, in_order(1, 0), in_order(2, 0));
    }
}

pub(crate) fn rows_are_copied_by_number(subject: &Subject) {
    let bench = Bench::new(subject);
    let apart: Vec<u64> = (0..100).map(|turn| turn * 37 % 101).collect();
    let repeated: Vec<u64> = (0..100).map(|turn| turn * turn % 7).collect();
    for bytes in [1, 16, 100, 1024, 4096] {
        let by = |start, numbers| Side { start, stride: bytes + start, numbers: Some(numbers) };
        check_rows(&bench, 100, bytes, by(0, &apart), in_order(0, bytes));
        check_rows(&bench, 100, bytes, in_order(0, bytes), by(0, &repeated));
        check_rows(&bench, 100, bytes, by(5, &apart), by(3, &repeated));
    }
}

pub(crate) fn rows_longer_than_a_tile(subject: &Subject) {
    const TILE: usize = 32 << 10;
    let bench = Bench::new(subject);
    for bytes in [TILE - 1, TILE, TILE + 1, 3 * TILE, 3 * TILE + 17] {
        check_rows(&bench, 3, bytes, in_order(0, bytes), in_order(0, bytes));
        check_rows(&bench, 3, bytes, in_order(9, bytes + 3), in_order(4, 100));
        check_rows(
            &bench,
            2,
            bytes,
            Side { start: 1, stride: bytes, numbers: Some(&[2, 0]) },
            in_order(0, 0),
        );
    }
}

pub(crate) fn a_row_that_overlaps_itself_moves_as_memmove(subject: &Subject) {
    let bench = Bench::new(subject);
    const COUNT: usize = 4;
    let numbers: Vec<u64> = (0..COUNT as u64).rev().collect();
    for distance in [0, 1, 15, 16, 100, 3000] {
        for bytes in [1, 100, 1000, 2048, 40_000] {
            for (to, from) in [(distance, 0), (0, distance)] {
                let stride = bytes + distance + 5;
                let before = pattern(COUNT * stride, 7);
                let mut expected = before.clone();
                for row in 0..COUNT {
                    let start = row * stride + from;
                    expected.copy_within(start..start + bytes, row * stride + to);
                }
                let block = filled(&bench, &before);
                // In order, and so that nothing can be said of the rows before their numbers are read.
                let (by_number, array) = indices(&bench, Some(&numbers), false);
                for rows in [RowIndices::InOrder, by_number] {
                    bench.write(&block, &before);
                    let rows = CopyRows {
                        destination: at(&block, to),
                        source: at(&block, from),
                        destination_stride: stride,
                        source_stride: stride,
                        bytes,
                        count: COUNT,
                        destination_rows: rows,
                        source_rows: rows,
                    };
                    // SAFETY: the rows are of a block that the test has alone, each in a place of its own.
                    unsafe { subject.backend.copy_rows(Some(&bench.stream), &rows) }.unwrap();
                    let got = bench.read(&block);
                    assert!(got[..expected.len()] == expected, "{bytes} bytes from {from} to {to}");
                }
                array.into_iter().chain([block]).for_each(|block| bench.free(block));
            }
        }
    }
}

pub(crate) fn no_rows_and_rows_without_bytes(subject: &Subject) {
    let bench = Bench::new(subject);
    for (count, bytes) in [(0, 100), (100, 0), (0, 0)] {
        // Nothing is read or written: neither rows nor numbers have to be there.
        let rows = CopyRows {
            destination: std::ptr::null_mut(),
            source: std::ptr::null(),
            destination_stride: 1,
            source_stride: 1,
            bytes,
            count,
            destination_rows: RowIndices::InOrder,
            source_rows: RowIndices::U32(std::ptr::null()),
        };
        // SAFETY: there is nothing to copy.
        unsafe { subject.backend.copy_rows(Some(&bench.stream), &rows) }.unwrap();
    }
    subject.backend.synchronize(&bench.stream).unwrap();
}

pub(crate) fn rows_follow_the_work_before_them(subject: &Subject) {
    let bench = Bench::new(subject);
    let (from, to) = (filled(&bench, &pattern(4096, 1)), filled(&bench, &[0; 4096]));
    let (numbers, array) = indices(&bench, Some(&[3, 2, 1, 0]), false);
    let rows = CopyRows {
        destination: at(&to, 0),
        source: at(&from, 0),
        destination_stride: 1024,
        source_stride: 1024,
        bytes: 1024,
        count: 4,
        destination_rows: numbers,
        source_rows: numbers,
    };
    // A driver that loads a kernel late, at its first launch, waits for what is queued: behind the gate for good.
    let elsewhere = filled(&bench, &[0; 4096]);
    let first = CopyRows { destination: at(&elsewhere, 0), ..rows };
    // SAFETY: the rows and the numbers are of blocks that the test has alone, until the stream has passed.
    unsafe { subject.backend.copy_rows(Some(&bench.stream), &first) }.unwrap();
    subject.backend.synchronize(&bench.stream).unwrap();
    let opened = gate(&bench);
    // SAFETY: as above, below.
    unsafe { subject.backend.copy_rows(Some(&bench.stream), &rows) }.unwrap();
    assert!(!subject.backend.is_idle(&bench.stream).unwrap());
    drop(opened);
    assert!(bench.read(&to)[..4096] == pattern(4096, 1));
    array.into_iter().chain([from, to, elsewhere]).for_each(|block| bench.free(block));
}

/// What is queued behind it waits until the sender is used or dropped.
fn gate(bench: &Bench) -> mpsc::Sender<()> {
    let (open, opened) = mpsc::channel();
    let wait = Box::new(move || opened.recv().unwrap_or(()));
    bench.subject.backend.enqueue(&bench.stream, wait).unwrap();
    open
}

/// A list from one block to another, a range each `step` bytes, in the other order there.
fn list(from: &Block, to: &Block, count: usize, step: usize) -> Vec<CopyRange> {
    let range = |row: usize| CopyRange {
        destination: at(to, (count - 1 - row) * step + row % 7),
        source: at(from, row * step + row % 13),
        bytes: (row * 5) % (step - 13),
    };
    (0..count).map(range).collect()
}

/// What `list` makes of these bytes.
fn listed(source: &[u8], to: &mut [u8], count: usize, step: usize) {
    for row in 0..count {
        let (end, start) = ((count - 1 - row) * step + row % 7, row * step + row % 13);
        let bytes = (row * 5) % (step - 13);
        to[end..end + bytes].copy_from_slice(&source[start..start + bytes]);
    }
}

fn prepare(bench: &Bench, ranges: &[CopyRange]) -> PreparedCopies {
    bench.subject.backend.prepare(Some(&bench.stream), ranges).unwrap()
}

fn launch(bench: &Bench, prepared: &PreparedCopies) {
    // SAFETY: the ranges are of blocks that the test has alone, and don't clash.
    unsafe { bench.subject.backend.copy_prepared(Some(&bench.stream), prepared) }.unwrap();
}

pub(crate) fn a_prepared_list_copies_what_is_there_at_each_launch(subject: &Subject) {
    const STEP: usize = 100;
    const COUNT: usize = 40;
    let bench = Bench::new(subject);
    let (from, to) = (filled(&bench, &[0; STEP * COUNT]), filled(&bench, &[0; STEP * COUNT]));
    let mut ranges = list(&from, &to, COUNT, STEP);
    let prepared = prepare(&bench, &ranges);
    assert_eq!(prepared.count(), COUNT);
    assert_eq!(prepared.bytes(), ranges.iter().map(|range| range.bytes as u64).sum::<u64>());
    // The list is a copy.
    ranges.iter_mut().for_each(|range| range.bytes = usize::MAX);
    let mut expected = vec![0; STEP * COUNT];
    for round in 0..3 {
        let source = pattern(STEP * COUNT, round);
        bench.write(&from, &source);
        launch(&bench, &prepared);
        listed(&source, &mut expected, COUNT, STEP);
        assert!(bench.read(&to)[..expected.len()] == expected, "launch {round}");
    }
    drop(prepared);
    [from, to].into_iter().for_each(|block| bench.free(block));
}

pub(crate) fn prepared_lists_of_every_length(subject: &Subject) {
    const STEP: usize = 48;
    let bench = Bench::new(subject);
    for count in [0, 1, 2, 64, 65, 300, 4096, 4097, 10_000] {
        let bytes = (count * STEP).max(1);
        let source = pattern(bytes, count);
        let (from, to) = (filled(&bench, &source), filled(&bench, &vec![0; bytes]));
        let mut expected = vec![0; bytes];
        listed(&source, &mut expected, count, STEP);
        let prepared = prepare(&bench, &list(&from, &to, count, STEP));
        assert_eq!(prepared.count(), count);
        launch(&bench, &prepared);
        drop(prepared);
        assert!(bench.read(&to)[..bytes] == expected, "{count} ranges");
        [from, to].into_iter().for_each(|block| bench.free(block));
    }
    // Ranges without bytes alone.
    let nothing = CopyRange { destination: std::ptr::null_mut(), source: std::ptr::null(), bytes: 0 };
    let prepared = prepare(&bench, &[nothing; 70]);
    assert_eq!((prepared.count(), prepared.bytes()), (70, 0));
    launch(&bench, &prepared);
}

pub(crate) fn a_prepared_list_stays_until_its_launch_has_passed(subject: &Subject) {
    const STEP: usize = 48;
    const COUNT: usize = 1000;
    let bench = Bench::new(subject);
    let source = pattern(STEP * COUNT, 9);
    let (from, to) = (filled(&bench, &source), filled(&bench, &[0; STEP * COUNT]));
    let prepared = prepare(&bench, &list(&from, &to, COUNT, STEP));
    let opened = gate(&bench);
    launch(&bench, &prepared);
    let is_dropped = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let seen = Arc::clone(&is_dropped);
        scope.spawn(move || {
            drop(prepared);
            seen.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(SOON);
        // The host's list is shared with the work, so that nobody has to wait.
        let is_host = subject.backend.vendor() == device_arena::backend::Vendor::Host;
        assert!(
            is_host || !is_dropped.load(Ordering::SeqCst),
            "a list was freed while its launch was queued"
        );
        drop(opened);
    });
    let mut expected = vec![0; STEP * COUNT];
    listed(&source, &mut expected, COUNT, STEP);
    assert!(bench.read(&to)[..expected.len()] == expected);
    [from, to].into_iter().for_each(|block| bench.free(block));
}

pub(crate) fn a_prepared_list_is_dropped_by_work_of_its_stream(subject: &Subject) {
    const STEP: usize = 48;
    const COUNT: usize = 100;
    let bench = Bench::new(subject);
    let source = pattern(STEP * COUNT, 4);
    let (from, to) = (filled(&bench, &source), filled(&bench, &[0; STEP * COUNT]));
    let prepared = prepare(&bench, &list(&from, &to, COUNT, STEP));
    launch(&bench, &prepared);
    let event = subject.backend.enqueue(&bench.stream, Box::new(move || drop(prepared))).unwrap();
    assert!(subject.backend.wait(&event, None).unwrap());
    let mut expected = vec![0; STEP * COUNT];
    listed(&source, &mut expected, COUNT, STEP);
    assert!(bench.read(&to)[..expected.len()] == expected);
    [from, to].into_iter().for_each(|block| bench.free(block));
}
