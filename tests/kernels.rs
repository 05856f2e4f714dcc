//! The kernels by themselves, through the backend's `copy` and `rewind`: every alignment and length around the widths
//! that they move at once, overlaps, many ranges, and ranges beyond 32 bits. Held against the host's own copies.
#![cfg(any(feature = "cuda", feature = "rocm"))]

#[macro_use]
mod vendors;

use device_arena::Placement;
use device_arena::backend::{
    AnyBackend, Backend, Block, CopyRange, CopyRows, RowIndices, ScrubRange, Stream,
};

/// What the kernels cut ranges into, and short ones.
const TILE: usize = 32 << 10;
const SHORT_TILE: usize = 4 << 10;

on_each_vendor!(
    every_alignment_and_length_around_the_widths,
    every_alignment_around_the_tiles,
    ranges_with_as_many_tiles_and_one_that_differs,
    a_hundred_thousand_ranges,
    a_range_that_overlaps_itself_moves_as_memmove,
    fills_of_every_alignment,
    ranges_beyond_four_gib,
    rows_of_any_shape_are_as_a_plain_loop_has_them,
    rows_of_every_alignment,
    rows_beyond_four_gib,
);

/// The first device of a driver, and a stream there.
struct Gpu {
    backend: AnyBackend,
    stream: Stream,
}

impl Gpu {
    fn new(backend: AnyBackend) -> Self {
        let stream = backend.create_stream(0).unwrap();
        Self { backend, stream }
    }

    fn block(&self, bytes: usize) -> Block {
        self.backend.allocate(0, Some(&self.stream), Placement::Device, bytes).unwrap()
    }

    fn free(&self, block: Block) {
        // SAFETY: the test has the block alone.
        unsafe { self.backend.free(Some(&self.stream), block) }.unwrap();
    }

    fn transfer(&self, destination: *mut u8, source: *const u8, bytes: usize) {
        let range = CopyRange { destination, source, bytes };
        // SAFETY: both ends are live, and wait below.
        unsafe { self.backend.transfer(Some(&self.stream), range) }.unwrap();
        self.backend.synchronize(&self.stream).unwrap();
    }

    fn write(&self, block: &Block, bytes: &[u8]) {
        assert!(bytes.len() <= block.bytes());
        self.transfer(block.address().as_ptr(), bytes.as_ptr(), bytes.len());
    }

    fn read(&self, block: &Block, start: usize, bytes: usize) -> Vec<u8> {
        let mut copy = vec![0; bytes];
        self.transfer(copy.as_mut_ptr(), block.address().as_ptr().wrapping_add(start), bytes);
        copy
    }

    fn copy(&self, ranges: &[CopyRange]) {
        // SAFETY: the ranges are of blocks that the test has alone, and don't clash.
        unsafe { self.backend.copy(Some(&self.stream), ranges) }.unwrap();
    }
}

fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Copies of these offsets and lengths from one block to another, held against the host's.
fn check_copies(gpu: &Gpu, ranges: &[(usize, usize, usize)], bytes: usize) {
    let (from, to) = (gpu.block(bytes), gpu.block(bytes));
    let source = pattern(bytes, 7);
    let mut expected = pattern(bytes, 8);
    gpu.write(&from, &source);
    gpu.write(&to, &expected);
    for &(from, to, bytes) in ranges {
        expected[to..to + bytes].copy_from_slice(&source[from..from + bytes]);
    }
    let as_range = |&(start, end, bytes): &(usize, usize, usize)| CopyRange {
        destination: to.address().as_ptr().wrapping_add(end),
        source: from.address().as_ptr().wrapping_add(start),
        bytes,
    };
    gpu.copy(&ranges.iter().map(as_range).collect::<Vec<_>>());
    let got = gpu.read(&to, 0, bytes);
    if let Some(at) = got.iter().zip(&expected).position(|(got, expected)| got != expected) {
        let near = ranges.iter().find(|range| (range.1..range.1 + range.2.max(1)).contains(&at));
        panic!("byte {at} differs, in {near:?}");
    }
    gpu.free(from);
    gpu.free(to);
}

fn every_alignment_and_length_around_the_widths(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    let mut lengths: Vec<usize> = (0..=67).collect();
    lengths.extend([127, 128, 129, 255, 256, 257, 1023, 1024, 1025]);
    const ROW: usize = 1088;
    let mut ranges = Vec::new();
    for from in 0..16 {
        for to in 0..16 {
            for &bytes in &lengths {
                let row = ranges.len() * ROW;
                ranges.push((row + from, row + to, bytes));
            }
        }
    }
    let bytes = ranges.len() * ROW;
    check_copies(&gpu, &ranges, bytes);
    println!("{} ranges", ranges.len());
}

fn every_alignment_around_the_tiles(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    for tile in [SHORT_TILE, TILE] {
        let mut ranges = Vec::new();
        let mut row = 0;
        for (from, to) in (0..16).flat_map(|from| [(from, 0), (0, from), (from, 15 - from), (from, from)]) {
            for bytes in [tile - 17, tile - 1, tile, tile + 1, tile + 15, 2 * tile - to, 2 * tile + 1 - to] {
                ranges.push((row + from, row + to, bytes));
                row += 2 * tile + 64;
            }
        }
        // In parts, so that a small device holds them.
        for part in ranges.chunks(64) {
            let first = part[0].0 / (2 * tile + 64) * (2 * tile + 64);
            let part: Vec<_> =
                part.iter().map(|&(from, to, bytes)| (from - first, to - first, bytes)).collect();
            check_copies(&gpu, &part, part.len() * (2 * tile + 64));
        }
    }
}

/// A list of ranges that are alike, then with an exception at either end or within: the kernels look for a range only there.
fn ranges_with_as_many_tiles_and_one_that_differs(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    for tiles in [1, 3] {
        for (tile, counts) in [(SHORT_TILE, [1, 64, 65, 300]), (TILE, [1, 2, 5, 20])] {
            for count in counts {
                for odd in [None, Some(0), Some(count - 1)] {
                    let row = (tiles + 1) * tile;
                    let ranges: Vec<_> = (0..count)
                        .map(|at| {
                            let bytes = tiles * tile - 15 - at % 30;
                            let bytes = if odd == Some(at) { bytes + tile } else { bytes };
                            (at * row + at % 16, at * row + at * 7 % 16, bytes - 31)
                        })
                        .collect();
                    check_copies(&gpu, &ranges, count * row);
                }
            }
        }
    }
}

fn a_hundred_thousand_ranges(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    let count = 100_000;
    let ranges: Vec<_> = (0..count)
        .map(|row| {
            let back = count - 1 - row;
            (row * 80 + row % 16, back * 80 + row % 13, (row * 7) % 65)
        })
        .collect();
    check_copies(&gpu, &ranges, count * 80);
}

fn a_range_that_overlaps_itself_moves_as_memmove(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    let size = 300_000;
    let block = gpu.block(size);
    let source = pattern(size, 3);
    for distance in [1, 2, 3, 7, 8, 15, 16, 17, 31, 64, 255, 4096, 40_000] {
        for bytes in [1, distance, distance + 1, 100, 5000, 100_001] {
            for (from, to) in [(5, 5 + distance), (5 + distance, 5), (0, distance), (distance, 0)] {
                gpu.write(&block, &source);
                let at = |offset| block.address().as_ptr().wrapping_add(offset);
                gpu.copy(&[CopyRange { destination: at(to), source: at(from), bytes }]);
                let mut expected = source.clone();
                expected.copy_within(from..from + bytes, to);
                assert!(gpu.read(&block, 0, size) == expected, "{from} to {to}, {bytes} bytes");
            }
        }
    }
    gpu.free(block);
}

fn fills_of_every_alignment(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    const ROW: usize = 160;
    let mut rows = Vec::new();
    for start in 0..32 {
        for bytes in 0..=100 {
            rows.push((rows.len() * ROW + start, bytes, (rows.len() % 251) as u8));
        }
    }
    rows.push((rows.len() * ROW + 3, 3 * TILE + 5, 0xA5));
    let size = rows.len() * ROW + 4 * TILE;
    let block = gpu.block(size);
    let mut expected = pattern(size, 5);
    gpu.write(&block, &expected);
    let as_range = |&(start, bytes, value): &(usize, usize, u8)| ScrubRange {
        address: block.address().as_ptr().wrapping_add(start),
        bytes,
        value,
    };
    let ranges: Vec<_> = rows.iter().map(as_range).collect();
    // SAFETY: the ranges are of a block that the test has alone.
    unsafe { gpu.backend.rewind(Some(&gpu.stream), None, &ranges) }.unwrap();
    for &(start, bytes, value) in &rows {
        expected[start..start + bytes].fill(value);
    }
    assert!(gpu.read(&block, 0, size) == expected);
    gpu.free(block);
}

/// The rows of one side: where the first begins and how far it is to the next, and which of them are copied.
#[derive(Debug, Clone)]
struct Rows {
    start: usize,
    stride: usize,
    numbers: Option<Vec<u64>>,
    is_wide: bool,
}

impl Rows {
    fn at(&self, turn: usize) -> usize {
        let row = self.numbers.as_ref().map_or(turn, |numbers| numbers[turn] as usize);
        self.start + row * self.stride
    }

    /// The end of the last byte.
    fn end(&self, count: usize, bytes: usize) -> usize {
        (0..count).map(|turn| self.at(turn) + bytes).max().unwrap_or(0)
    }

    /// The numbers where the device reads them.
    fn indices(&self, gpu: &Gpu) -> (RowIndices, Option<Block>) {
        let Some(numbers) = &self.numbers else { return (RowIndices::InOrder, None) };
        let bytes: Vec<u8> = if self.is_wide {
            numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
        } else {
            numbers.iter().flat_map(|&number| (number as u32).to_ne_bytes()).collect()
        };
        let block = gpu.block(bytes.len().max(1));
        gpu.write(&block, &bytes);
        let start = block.address().as_ptr().cast_const();
        let indices =
            if self.is_wide { RowIndices::U64(start.cast()) } else { RowIndices::U32(start.cast()) };
        (indices, Some(block))
    }
}

impl Gpu {
    fn copy_rows(
        &self,
        (to, to_rows): (&Block, &Rows),
        (from, from_rows): (&Block, &Rows),
        bytes: usize,
        count: usize,
    ) {
        let (destination_rows, to_numbers) = to_rows.indices(self);
        let (source_rows, from_numbers) = from_rows.indices(self);
        let rows = CopyRows {
            destination: to.address().as_ptr().wrapping_add(to_rows.start),
            source: from.address().as_ptr().wrapping_add(from_rows.start),
            destination_stride: to_rows.stride,
            source_stride: from_rows.stride,
            bytes,
            count,
            destination_rows,
            source_rows,
        };
        // SAFETY: the rows are of blocks that the test has alone, and don't clash.
        unsafe { self.backend.copy_rows(Some(&self.stream), &rows) }.unwrap();
        to_numbers.into_iter().chain(from_numbers).for_each(|block| self.free(block));
    }
}

/// Copies the rows from one block to another, and holds that against a loop over copies of the host's.
fn check_rows(gpu: &Gpu, bytes: usize, count: usize, to_rows: &Rows, from_rows: &Rows) {
    let source = pattern(from_rows.end(count, bytes), 7);
    let mut expected = pattern(to_rows.end(count, bytes) + 64, 8);
    let (from, to) = (gpu.block(source.len().max(1)), gpu.block(expected.len()));
    gpu.write(&from, &source);
    gpu.write(&to, &expected);
    for turn in 0..count {
        let (to, from) = (to_rows.at(turn), from_rows.at(turn));
        expected[to..to + bytes].copy_from_slice(&source[from..from + bytes]);
    }
    gpu.copy_rows((&to, to_rows), (&from, from_rows), bytes, count);
    let got = gpu.read(&to, 0, expected.len());
    if let Some(at) = got.iter().zip(&expected).position(|(got, expected)| got != expected) {
        let turn = (0..count).find(|&turn| (to_rows.at(turn)..to_rows.at(turn) + bytes.max(1)).contains(&at));
        panic!("byte {at} differs, of {turn:?}: {count} rows of {bytes} bytes, {to_rows:?} {from_rows:?}");
    }
    gpu.free(from);
    gpu.free(to);
}

fn rows_of_any_shape_are_as_a_plain_loop_has_them(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    let mut state = 1u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for case in 0..300 {
        let bytes = match case % 4 {
            0 => below(70),
            1 => 16 * below(140),
            2 => below(2200),
            _ => below(3 * TILE),
        };
        let count = below(if bytes > TILE { 5 } else { 150 });
        let places = count + below(10);
        // Each row of the destination at most once, in any order.
        let mut numbers: Vec<u64> = (0..places as u64).collect();
        for at in (1..places).rev() {
            numbers.swap(at, below(at + 1));
        }
        let is_aligned = below(3) == 0;
        let past = |bytes: usize| if is_aligned { bytes.next_multiple_of(16) } else { bytes };
        let to = Rows {
            start: past(below(40)),
            stride: past(bytes + below(40)),
            numbers: (below(2) == 0).then_some(numbers),
            is_wide: below(2) == 0,
        };
        let from = Rows {
            start: past(below(40)),
            // None, less than a row, and more.
            stride: past([0, below(bytes + 1), bytes + below(40)][below(3)]),
            numbers: (below(2) == 0).then(|| (0..count).map(|_| below(count) as u64).collect()),
            is_wide: below(2) == 0,
        };
        check_rows(&gpu, bytes, count, &to, &from);
    }
}

fn rows_of_every_alignment(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    let rows = |start, stride| Rows { start, stride, numbers: None, is_wide: false };
    for bytes in [1, 5, 16, 31, 32, 47, 64, 100, 256, 1024, 1536, 2048, 2049, 8192, TILE, TILE + 1] {
        for past in [0, 1, 2, 3, 4, 7, 8, 12, 15] {
            // Strides of 17 bytes more than a multiple of 16 go through all alignments.
            let stride = bytes.next_multiple_of(16) + 17;
            check_rows(&gpu, bytes, 17, &rows(past, stride), &rows(0, bytes.next_multiple_of(16)));
            check_rows(&gpu, bytes, 3, &rows(past, bytes), &rows(past, bytes));
            check_rows(&gpu, bytes, 17, &rows(0, bytes + 16), &rows(past, stride));
        }
    }
}

fn rows_beyond_four_gib(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    const FOUR_GIB: usize = 4 << 30;
    let size = FOUR_GIB + (64 << 20);
    let blocks = (0..2).map(|_| gpu.backend.allocate(0, Some(&gpu.stream), Placement::Device, size));
    let Ok([from, to]) =
        blocks.collect::<Result<Vec<_>, _>>().map(|blocks| <[Block; 2]>::try_from(blocks).unwrap())
    else {
        println!("skipped: the device has no two blocks of {size} bytes");
        return;
    };
    let at = |block: &Block, offset: usize| block.address().as_ptr().wrapping_add(offset);
    let whole = |block: &Block, value| ScrubRange { address: at(block, 0), bytes: size, value };
    // SAFETY: the ranges are of blocks that the test has alone.
    unsafe { gpu.backend.rewind(Some(&gpu.stream), None, &[whole(&from, 0x11), whole(&to, 0x22)]) }.unwrap();
    // Rows that are a little over 1 GiB apart, with the fourth beyond 32 bits; short ones and long ones.
    let (far, near) = ((1 << 30) + 12_345, 100_000);
    for bytes in [1000, 3 * TILE + 7] {
        for numbers in [None, Some(vec![4, 3, 0, 1, 2])] {
            for is_wide in [false, true] {
                let far = Rows { start: 3, stride: far, numbers: numbers.clone(), is_wide };
                let packed = Rows { start: 5, stride: near, numbers: None, is_wide };
                let marks: Vec<_> = (0..5).map(|turn| pattern(bytes, 20 + turn)).collect();
                for (turn, mark) in marks.iter().enumerate() {
                    gpu.transfer(at(&from, far.at(turn)), mark.as_ptr(), bytes);
                }
                gpu.copy_rows((&to, &packed), (&from, &far), bytes, 5);
                // And back into the distance.
                let spread = Rows { start: 50_000_000, ..far.clone() };
                gpu.copy_rows((&to, &spread), (&from, &far), bytes, 5);
                for (turn, mark) in marks.iter().enumerate() {
                    assert!(&gpu.read(&to, packed.at(turn), bytes) == mark, "row {turn} of {bytes} bytes");
                    assert!(&gpu.read(&to, spread.at(turn), bytes) == mark, "row {turn} of {bytes} bytes");
                    assert_eq!(gpu.read(&to, spread.at(turn) + bytes, 2), [0x22; 2]);
                }
            }
        }
    }
    // Two rows of 1.5 GiB, which overlap each other in the source.
    let long = (3 << 29) - 1000;
    for place in [0, long / 2, size - 300] {
        gpu.transfer(at(&from, place), pattern(256, place as u64).as_ptr(), 256);
    }
    let to_rows = Rows { start: 0, stride: 1 << 31, numbers: None, is_wide: false };
    let from_rows = Rows { start: 0, stride: 1 << 20, numbers: None, is_wide: false };
    gpu.copy_rows((&to, &to_rows), (&from, &from_rows), long, 2);
    for turn in 0..2 {
        let row = turn << 31;
        assert!(gpu.read(&to, row + long / 2 - (turn << 20), 256) == pattern(256, (long / 2) as u64));
        assert_eq!(gpu.read(&to, row + long - 2, 2), [0x11; 2]);
    }
    gpu.free(from);
    gpu.free(to);
}

fn ranges_beyond_four_gib(backend: AnyBackend) {
    let gpu = Gpu::new(backend);
    const FOUR_GIB: usize = 4 << 30;
    let size = FOUR_GIB + (64 << 20);
    let blocks = (0..2).map(|_| gpu.backend.allocate(0, Some(&gpu.stream), Placement::Device, size));
    let Ok([from, to]) =
        blocks.collect::<Result<Vec<_>, _>>().map(|blocks| <[Block; 2]>::try_from(blocks).unwrap())
    else {
        println!("skipped: the device has no two blocks of {size} bytes");
        return;
    };
    let at = |block: &Block, offset: usize| block.address().as_ptr().wrapping_add(offset);
    let whole = |block: &Block, value| ScrubRange { address: at(block, 0), bytes: size, value };
    // SAFETY: the ranges are of blocks that the test has alone.
    unsafe { gpu.backend.rewind(Some(&gpu.stream), None, &[whole(&from, 0x11), whole(&to, 0x22)]) }.unwrap();
    // Marks on both sides of the boundary and at the ends of a range that is aligned in no way.
    let (start, end, bytes) = (3, 8, FOUR_GIB + 12_345);
    let mark = pattern(256, 9);
    for offset in [start, FOUR_GIB - 128, start + bytes - 256] {
        gpu.transfer(at(&from, offset), mark.as_ptr(), mark.len());
    }
    let small = CopyRange { destination: at(&to, size - 100), source: at(&from, start), bytes: 50 };
    gpu.copy(&[CopyRange { destination: at(&to, end), source: at(&from, start), bytes }, small]);
    for offset in [start, FOUR_GIB - 128, start + bytes - 256] {
        assert!(gpu.read(&to, offset - start + end, 256) == mark, "at {offset}");
    }
    assert_eq!(gpu.read(&to, end + bytes, 4), [0x22; 4]);
    assert_eq!(gpu.read(&to, end - 1, 1), [0x22]);
    assert_eq!(gpu.read(&to, FOUR_GIB + 4096, 4), [0x11; 4]);
    assert!(gpu.read(&to, size - 100, 50) == mark[..50]);
    gpu.free(from);
    gpu.free(to);
}
