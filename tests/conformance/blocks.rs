//! Blocks, classification, copies and rewinds.

use device_arena::backend::{Backend, Block, CopyRange, Placement, ScrubRange, Stream, Vendor};
use device_arena::{Error, MemoryKind, Status};

use crate::Subject;

/// A stream, and blocks that the test frees.
pub(crate) struct Bench<'s> {
    pub(crate) subject: &'s Subject,
    pub(crate) stream: Stream,
}

impl<'s> Bench<'s> {
    pub(crate) fn new(subject: &'s Subject) -> Self {
        Self { subject, stream: subject.backend.create_stream(0).unwrap() }
    }

    pub(crate) fn allocate(&self, placement: Placement, bytes: usize) -> Block {
        let block = self.subject.backend.allocate(0, Some(&self.stream), placement, bytes).unwrap();
        assert!(block.bytes() >= bytes);
        block
    }

    pub(crate) fn free(&self, block: Block) {
        // SAFETY: the test has the block alone, and all work on it is in the stream.
        unsafe { self.subject.backend.free(Some(&self.stream), block) }.unwrap();
    }

    fn transfer(&self, destination: *mut u8, source: *const u8, bytes: usize) {
        let range = CopyRange { destination, source, bytes };
        // SAFETY: both ends are live and as long; nothing else touches them until the stream has passed.
        unsafe { self.subject.backend.transfer(Some(&self.stream), range) }.unwrap();
        self.subject.backend.synchronize(&self.stream).unwrap();
    }

    /// The block's bytes.
    pub(crate) fn read(&self, block: &Block) -> Vec<u8> {
        let mut bytes = vec![0xEE; block.bytes()];
        self.transfer(bytes.as_mut_ptr(), block.address().as_ptr(), block.bytes());
        bytes
    }

    pub(crate) fn write(&self, block: &Block, bytes: &[u8]) {
        assert!(bytes.len() <= block.bytes());
        self.transfer(block.address().as_ptr(), bytes.as_ptr(), bytes.len());
    }
}

/// Where a backend can have blocks.
const PLACEMENTS: [Placement; 2] = [Placement::Device, Placement::HostCoherent];

pub(crate) fn blocks_are_aligned_and_apart(subject: &Subject) {
    let bench = Bench::new(subject);
    let alignment = subject.backend.block_alignment();
    assert!(alignment.is_power_of_two() && alignment >= subject.backend.output_alignment());
    let sizes = [1, 4095, 4096, 4097, (2 << 20) - 1, 2 << 20, (5 << 20) + 3];
    for placement in PLACEMENTS {
        let blocks: Vec<_> = sizes.iter().map(|&bytes| bench.allocate(placement, bytes)).collect();
        let mut spans = Vec::new();
        for block in &blocks {
            let start = block.address().as_ptr().addr();
            assert_eq!(start % alignment, 0);
            spans.push((start, start + block.bytes()));
            let fill = vec![0x5A; block.bytes()];
            bench.write(block, &fill);
            assert!(bench.read(block) == fill);
        }
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
        blocks.into_iter().for_each(|block| bench.free(block));
    }
}

pub(crate) fn blocks_of_the_host_are_zeros(subject: &Subject) {
    if subject.backend.vendor() != Vendor::Host {
        println!("nothing to see: a device's memory is what it is, and arenas fill it");
        return;
    }
    let bench = Bench::new(subject);
    for bytes in [1, 4097, 2 << 20] {
        let block = bench.allocate(Placement::Device, bytes);
        assert!(bench.read(&block).iter().all(|&byte| byte == 0));
        bench.free(block);
    }
}

pub(crate) fn a_block_of_another_ordinal_is_unavailable(subject: &Subject) {
    let devices = subject.backend.devices().unwrap();
    assert!(devices.iter().zip(0..).all(|(device, ordinal)| device.ordinal == ordinal));
    for beyond in [u32::try_from(devices.len()).unwrap(), u32::MAX] {
        let refused = subject.backend.allocate(beyond, None, Placement::Device, 64).unwrap_err();
        assert_eq!(refused.status(), Status::Unavailable);
        assert_eq!(subject.backend.create_stream(beyond).unwrap_err().status(), Status::Unavailable);
    }
}

pub(crate) fn a_block_beyond_the_machine_is_out_of_memory(subject: &Subject) {
    let bench = Bench::new(subject);
    for placement in PLACEMENTS {
        for bytes in [1usize << 60, isize::MAX as usize, usize::MAX - 1, usize::MAX] {
            let refused = subject.backend.allocate(0, Some(&bench.stream), placement, bytes).unwrap_err();
            assert!(
                matches!(refused, Error::OutOfMemory { requested, .. } if requested == bytes),
                "{refused}"
            );
        }
    }
}

pub(crate) fn unknown_pointers_are_unregistered(subject: &Subject) {
    let local = 7u8;
    for pointer in [&raw const local, std::ptr::null(), std::ptr::without_provenance(0x10)] {
        // SAFETY: classification reads nothing.
        let info = unsafe { subject.backend.classify(pointer) }.unwrap();
        assert_eq!(info.kind, MemoryKind::Unregistered);
        assert!(info.is_host_accessible());
    }
}

pub(crate) fn blocks_are_what_they_are(subject: &Subject) {
    let bench = Bench::new(subject);
    for placement in PLACEMENTS {
        let block = bench.allocate(placement, 10_000);
        let start = block.address().as_ptr();
        for offset in [0, 1, 9_999] {
            // SAFETY: classification reads nothing, and the block is live.
            let info = unsafe { subject.backend.classify(start.wrapping_add(offset)) }.unwrap();
            let expected = match (subject.backend.vendor(), placement) {
                (Vendor::Host, _) => MemoryKind::Unregistered,
                (_, Placement::HostCoherent) => MemoryKind::PinnedHost,
                _ => MemoryKind::Device { ordinal: 0 },
            };
            assert_eq!(info.kind, expected);
            assert_eq!(info.is_host_accessible(), subject.backend.is_host_accessible(placement));
            if expected != MemoryKind::Unregistered {
                let (allocated, bytes) = info.allocation.unwrap();
                assert!(allocated <= start.addr() && start.addr() + block.bytes() <= allocated + bytes);
                assert_eq!(info.vendor, Some(subject.backend.vendor()));
            }
        }
        bench.free(block);
        // SAFETY: as above; the block is gone, which the driver says as it says that it never knew it.
        let info = unsafe { subject.backend.classify(start) }.unwrap();
        assert_eq!(info.kind, MemoryKind::Unregistered);
    }
}

pub(crate) fn copies_move_every_byte_and_overlap_as_memmove(subject: &Subject) {
    let bench = Bench::new(subject);
    let block = bench.allocate(Placement::Device, 8192);
    let pattern: Vec<u8> = (0..8192u32).map(|i| (i * 31 % 251) as u8).collect();
    for (from, to, bytes) in
        [(0, 4096, 4096), (1, 0, 8191), (0, 1, 8191), (17, 4001, 1000), (5, 5, 99), (3, 9, 0)]
    {
        bench.write(&block, &pattern);
        copy(&bench, &block, &[(from, to, bytes)]);
        let mut expected = pattern.clone();
        expected.copy_within(from..from + bytes, to);
        assert!(bench.read(&block)[..8192] == expected, "{from} to {to}, {bytes} bytes");
    }
    bench.free(block);
}

pub(crate) fn a_long_range_that_overlaps_itself_moves_as_memmove(subject: &Subject) {
    const MIB: usize = 1 << 20;
    let bench = Bench::new(subject);
    let bytes = 20 * MIB;
    let block = bench.allocate(Placement::Device, bytes);
    let pattern: Vec<u8> = (0..block.bytes()).map(|i| (i * 31 % 251) as u8).collect();
    // By less and by more than what is moved at a time, up and down, among ranges that stay in the list: few or many.
    for (from, to, long, others) in [
        (3, 4 * 1024 + 3, 9 * MIB + 5, 2),
        (4 * 1024 + 3, 4, 9 * MIB + 5, 200),
        (16, 9 * MIB, 10 * MIB, 200),
        (9 * MIB + 7, 16, 10 * MIB, 1),
        (64, 64, MIB, 3),
        (17, 16, 300 << 10, 300),
    ] {
        let other = |index| (bytes - 64 * (index + 1), bytes - 64 * (index + 1) + 5, index % 60);
        let mut ranges: Vec<_> = (0..others).map(other).collect();
        ranges.insert(others / 2, (from, to, long));
        bench.write(&block, &pattern);
        copy(&bench, &block, &ranges);
        let mut expected = pattern.clone();
        for (from, to, bytes) in ranges {
            expected.copy_within(from..from + bytes, to);
        }
        assert!(bench.read(&block) == expected, "{from} to {to}, {long} bytes");
    }
    bench.free(block);
}

pub(crate) fn long_lists_of_ranges_of_many_lengths(subject: &Subject) {
    const STEP: usize = 9000;
    // More than one launch has room for.
    for count in [129, 300, 1100] {
        let row = |row| (row * STEP + row % 13, row * STEP + row % 7, row * 77 % 8950);
        copy_between_blocks(subject, count * STEP, &(0..count).map(row).collect::<Vec<_>>());
    }
}

/// Copies from one block to another of as many bytes, from, to, how many bytes, and looks at all of the other.
fn copy_between_blocks(subject: &Subject, bytes: usize, ranges: &[(usize, usize, usize)]) {
    let bench = Bench::new(subject);
    let (from, to) = (bench.allocate(Placement::Device, bytes), bench.allocate(Placement::Device, bytes));
    let pattern: Vec<u8> = (0..from.bytes()).map(|i| (i * 7 % 253) as u8).collect();
    bench.write(&from, &pattern);
    bench.write(&to, &vec![0; to.bytes()]);
    let mut expected = vec![0u8; to.bytes()];
    let list: Vec<_> = ranges
        .iter()
        .map(|&(source, destination, bytes)| {
            expected[destination..destination + bytes].copy_from_slice(&pattern[source..source + bytes]);
            CopyRange {
                destination: to.address().as_ptr().wrapping_add(destination),
                source: from.address().as_ptr().wrapping_add(source),
                bytes,
            }
        })
        .collect();
    // SAFETY: the ranges are of two blocks that the test has alone; no two of them meet.
    unsafe { subject.backend.copy(Some(&bench.stream), &list) }.unwrap();
    let got = bench.read(&to);
    let wrong = got.iter().zip(&expected).position(|(got, expected)| got != expected);
    assert_eq!(wrong, None, "{} ranges", ranges.len());
    bench.free(from);
    bench.free(to);
}

/// Copies within a block: from, to, how many bytes.
fn copy(bench: &Bench, block: &Block, ranges: &[(usize, usize, usize)]) {
    let at = |offset| block.address().as_ptr().wrapping_add(offset);
    let ranges: Vec<_> = ranges
        .iter()
        .map(|&(from, to, bytes)| CopyRange { destination: at(to), source: at(from), bytes })
        .collect();
    // SAFETY: the ranges are of one block that the test has alone, and don't clash.
    unsafe { bench.subject.backend.copy(Some(&bench.stream), &ranges) }.unwrap();
}

pub(crate) fn many_ranges_are_copied_at_once(subject: &Subject) {
    const STEP: usize = 48;
    for count in [0, 1, 2, 127, 128, 129, 300, 5000, 40_000] {
        // Every alignment of both ends, and lengths from nothing to all of a row.
        let row = |row| (row * STEP + row % 13, (count - 1 - row) * STEP + row % 7, (row * 5) % 33);
        copy_between_blocks(subject, (count * STEP).max(1), &(0..count).map(row).collect::<Vec<_>>());
    }
}

pub(crate) fn rewind_fills_just_its_ranges(subject: &Subject) {
    let bench = Bench::new(subject);
    let block = bench.allocate(Placement::Device, 4096);
    let at = |start: usize, bytes, value| ScrubRange {
        address: block.address().as_ptr().wrapping_add(start),
        bytes,
        value,
    };
    // One, several, and more than one launch takes.
    for count in [1, 3, 40] {
        bench.write(&block, &[1; 4096]);
        let mut expected = [1u8; 4096];
        let ranges: Vec<_> = (0..count)
            .map(|i| {
                let (start, bytes, value) = (i * 100, (i * 17 + 3) % 99, (i * 3) as u8);
                expected[start..start + bytes].fill(value);
                at(start, bytes, value)
            })
            .collect();
        // SAFETY: the ranges are of a block that the test has alone.
        unsafe { subject.backend.rewind(Some(&bench.stream), None, &ranges) }.unwrap();
        assert_eq!(bench.read(&block)[..4096], expected, "{count} ranges");
    }
    bench.free(block);
}
