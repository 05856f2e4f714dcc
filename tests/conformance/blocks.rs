//! Blocks, classification, copies and rewinds.

use device_arena::backend::{Backend, Block, CopyRange, ScrubRange};
use device_arena::{Error, MemoryKind, Status};

use crate::Subject;

/// A block that the test frees.
fn allocate(subject: &Subject, bytes: usize) -> Block {
    let block = subject.backend.allocate(0, bytes).unwrap();
    assert!(block.bytes() >= bytes);
    block
}

fn free(subject: &Subject, block: Block) {
    // SAFETY: the test has the block alone, and no work is queued.
    unsafe { subject.backend.free(block) }.unwrap();
}

/// The block's bytes as the host sees them.
fn read(subject: &Subject, block: &Block) -> Vec<u8> {
    let mut bytes = vec![0xEE; block.bytes()];
    let range =
        CopyRange { destination: bytes.as_mut_ptr(), source: block.address().as_ptr(), bytes: bytes.len() };
    // SAFETY: both ends are live and as long; nothing else touches them.
    unsafe { subject.backend.copy(None, &[range]) }.unwrap();
    bytes
}

fn write(subject: &Subject, block: &Block, bytes: &[u8]) {
    assert!(bytes.len() <= block.bytes());
    let range =
        CopyRange { destination: block.address().as_ptr(), source: bytes.as_ptr(), bytes: bytes.len() };
    // SAFETY: as in `read`.
    unsafe { subject.backend.copy(None, &[range]) }.unwrap();
}

pub(crate) fn blocks_are_zeroed_aligned_and_apart(subject: &Subject) {
    let alignment = subject.backend.block_alignment();
    assert!(alignment.is_power_of_two() && alignment >= subject.backend.output_alignment());
    let sizes = [1, 4095, 4096, 4097, (2 << 20) - 1, 2 << 20, (5 << 20) + 3];
    let blocks: Vec<_> = sizes.iter().map(|&bytes| allocate(subject, bytes)).collect();
    let mut spans = Vec::new();
    for block in &blocks {
        let start = block.address().as_ptr().addr();
        assert_eq!(start % alignment, 0);
        spans.push((start, start + block.bytes()));
        if subject.backend.is_host_accessible() {
            assert!(read(subject, block).iter().all(|&byte| byte == 0));
        }
    }
    spans.sort_unstable();
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
    blocks.into_iter().for_each(|block| free(subject, block));
}

pub(crate) fn a_block_of_another_ordinal_is_unavailable(subject: &Subject) {
    let devices = subject.backend.devices().unwrap();
    assert!(devices.iter().zip(0..).all(|(device, ordinal)| device.ordinal == ordinal));
    let beyond = u32::try_from(devices.len()).unwrap();
    let refused = subject.backend.allocate(beyond, 64).unwrap_err();
    assert_eq!(refused.status(), Status::Unavailable);
    assert_eq!(subject.backend.create_stream(beyond).unwrap_err().status(), Status::Unavailable);
}

pub(crate) fn a_block_beyond_the_machine_is_out_of_memory(subject: &Subject) {
    for bytes in [1usize << 60, isize::MAX as usize, usize::MAX - 1, usize::MAX] {
        let refused = subject.backend.allocate(0, bytes).unwrap_err();
        assert!(matches!(refused, Error::OutOfMemory { requested, .. } if requested == bytes), "{refused}");
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

pub(crate) fn copies_move_every_byte_and_overlap_as_memmove(subject: &Subject) {
    let block = allocate(subject, 8192);
    let pattern: Vec<u8> = (0..8192u32).map(|i| (i * 31 % 251) as u8).collect();
    for (from, to, bytes) in
        [(0, 4096, 4096), (1, 0, 8191), (0, 1, 8191), (17, 4001, 1000), (5, 5, 99), (3, 9, 0)]
    {
        write(subject, &block, &pattern);
        // SAFETY: both offsets are within the block.
        let range = unsafe {
            CopyRange {
                destination: block.address().as_ptr().add(to),
                source: block.address().as_ptr().add(from),
                bytes,
            }
        };
        // SAFETY: the range is of one block that the test has alone.
        unsafe { subject.backend.copy(None, &[range]) }.unwrap();
        let mut expected = pattern.clone();
        expected.copy_within(from..from + bytes, to);
        assert!(read(subject, &block)[..8192] == expected, "{from} to {to}, {bytes} bytes");
    }
    free(subject, block);
}

pub(crate) fn rewind_fills_just_its_ranges(subject: &Subject) {
    let block = allocate(subject, 4096);
    write(subject, &block, &[1; 4096]);
    let stream = subject.backend.create_stream(0).unwrap();
    let at = |start: usize, bytes, value| {
        // SAFETY: the start is within the block.
        ScrubRange { address: unsafe { block.address().as_ptr().add(start) }, bytes, value }
    };
    for stream in [None, Some(&stream)] {
        write(subject, &block, &[1; 4096]);
        // SAFETY: the ranges are of a block that the test has alone.
        unsafe { subject.backend.rewind(stream, &[at(0, 3, 0), at(100, 1, 0xA5), at(4000, 96, 9)]) }.unwrap();
        if let Some(stream) = stream {
            let event = subject.backend.record(stream).unwrap();
            assert!(subject.backend.wait(&event, None).unwrap());
        }
        let mut expected = [1u8; 4096];
        expected[..3].fill(0);
        expected[100] = 0xA5;
        expected[4000..].fill(9);
        assert_eq!(read(subject, &block)[..4096], expected);
    }
    free(subject, block);
}
