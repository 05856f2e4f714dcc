//! Tapes over raw memory: what may be where, and what is held against the driver's word.

use device_arena::{Error, MemoryKind, Offset, Result, TapeRule, TapeView};

use crate::memory::{Memory, Registered, Virtual};
use crate::turn::{turn, turn_of_nvidia};
use crate::vendor;

const TEXT: &[u8] = b"onetwothree";
const OFFSETS: [u64; 4] = [0, 3, 6, 11];

fn tape<'a, O: Offset>(bytes: *const u8, len: usize, offsets: &'a [O]) -> Result<TapeView<'a>> {
    // SAFETY: the tests keep both for as long as the tape, and what is not so is refused without being read.
    unsafe { TapeView::from_raw(bytes, len, offsets.as_ptr(), offsets.len()) }
}

#[test]
fn bytes_may_be_anywhere_and_the_tape_says_where() {
    let Some(turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let buffers = [
        (Memory::device(&executor, 64), MemoryKind::Device { ordinal: 0 }),
        (Memory::pool(&executor, 64), MemoryKind::Device { ordinal: 0 }),
        (Memory::managed(&executor, 64), MemoryKind::Managed { ordinal: Some(0) }),
        (Memory::pinned(&executor, 64), MemoryKind::PinnedHost),
    ];
    for (memory, kind) in &buffers {
        memory.write(TEXT);
        let tape = tape(memory.pointer(), TEXT.len(), &OFFSETS).unwrap();
        assert_eq!((tape.len(), tape.memory(), tape.byte_len()), (3, *kind, TEXT.len()));
        assert_eq!(tape.range(1).unwrap(), 3..6, "the offsets are the host's");
        if let MemoryKind::Device { ordinal } = *kind {
            let refused = Error::Device { operation: "bytes", ordinal };
            assert_eq!(tape.get(0), Err(refused.clone()));
            assert_eq!(tape.bytes(), Err(refused.clone()));
            assert_eq!(tape.iter().err(), Some(refused));
        } else {
            assert_eq!(tape.get(2).unwrap(), b"three");
        }
    }
    if turn.has_two() {
        let memory = Memory::device(&vendor::executor(1).unwrap(), 64);
        let tape = tape(memory.pointer(), TEXT.len(), &OFFSETS).unwrap();
        assert_eq!(tape.memory(), MemoryKind::Device { ordinal: 1 });
    }
}

#[test]
fn offsets_may_be_in_any_memory_that_the_host_reads() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    for memory in [Memory::pinned(&executor, 64), Memory::managed(&executor, 64)] {
        memory.write(bytemuck_bytes(&OFFSETS));
        // SAFETY: both are live and as long.
        let tape = unsafe {
            TapeView::from_raw(TEXT.as_ptr(), TEXT.len(), memory.pointer().cast::<u64>(), OFFSETS.len())
        };
        assert_eq!(tape.unwrap().get(1).unwrap(), b"two");
    }
}

fn bytemuck_bytes(values: &[u64]) -> &[u8] {
    // SAFETY: any bytes are bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[test]
fn offsets_in_device_memory_are_refused_and_not_read() {
    let Some(turn) = turn() else { return };
    for ordinal in 0..turn.count().min(2) {
        let executor = vendor::executor(ordinal).unwrap();
        for memory in [Memory::device(&executor, 4096), Memory::pool(&executor, 4096)] {
            // On the simulated driver, a read of them would end the process.
            // SAFETY: they are refused.
            let refused = unsafe {
                TapeView::from_raw(TEXT.as_ptr(), TEXT.len(), memory.pointer().cast::<u64>(), OFFSETS.len())
            };
            assert_eq!(refused.err(), Some(Error::Device { operation: "offsets", ordinal }));
        }
    }
}

#[test]
fn what_is_mapped_nowhere_is_refused() {
    let Some(_turn) = turn_of_nvidia("addresses without memory that are known") else { return };
    let executor = vendor::executor(0).unwrap();
    let reserved = Virtual::reserve(&executor, 1);
    let refused = tape(reserved.pointer(0), TEXT.len(), &OFFSETS);
    assert_eq!(refused.err(), Some(Error::Unmapped { operation: "bytes" }));
    // SAFETY: they are refused.
    let refused = unsafe {
        TapeView::from_raw(TEXT.as_ptr(), TEXT.len(), reserved.pointer(0).cast::<u64>(), OFFSETS.len())
    };
    assert_eq!(refused.err(), Some(Error::Unmapped { operation: "offsets" }));
}

#[test]
fn offsets_that_lead_outside_of_device_bytes_are_refused() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let memory = Memory::device(&executor, 4096);
    let (bytes, len) = (memory.pointer(), TEXT.len());
    let beyond = tape(bytes, len, &[0u32, 3, 12]).unwrap_err();
    assert!(matches!(beyond, Error::Tape { index: 2, value: 12, bound: 11, rule: TapeRule::BeyondBytes }));
    let decreasing = tape(bytes, len, &[0u64, 5, 4]).unwrap_err();
    assert!(matches!(decreasing, Error::Tape { index: 2, rule: TapeRule::Decreasing, .. }));
    let negative = tape(bytes, len, &[-1i32, 5]).unwrap_err();
    assert!(matches!(negative, Error::Tape { index: 0, value: -1, rule: TapeRule::Negative, .. }));
    let far = tape(bytes, len, &[0u64, u64::MAX]).unwrap_err();
    assert!(matches!(far, Error::Tape { rule: TapeRule::BeyondBytes, .. }));
}

#[test]
fn bytes_are_held_against_the_drivers_range_and_not_the_callers_word() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let bytes = 4 << 20;
    let memory = Memory::device(&executor, bytes);
    let offsets = [0u64, 1];
    assert!(tape(memory.pointer(), bytes, &offsets).is_ok());
    assert!(tape(memory.pointer().wrapping_add(bytes - 1), 1, &offsets).is_ok());
    for (offset, len) in [(0, bytes + 1), (bytes - 1, 2), (1, bytes)] {
        let refused = tape(memory.pointer().wrapping_add(offset), len, &offsets).unwrap_err();
        assert!(matches!(refused, Error::OutOfAllocation { allocation: (_, size), .. } if size == bytes));
    }
    assert!(matches!(tape(std::ptr::null(), 1, &offsets), Err(Error::OutOfRange { .. })));
    assert!(matches!(tape(memory.pointer(), usize::MAX, &offsets), Err(Error::OutOfRange { .. })));
    // Offsets, too, are held against theirs.
    let mut words = vec![0u8; 4096 * 3];
    let start = words.as_ptr().align_offset(4096);
    let registered = &mut words[start..start + 4096];
    let first = registered.as_ptr().cast::<u64>();
    let _registered = Registered::new(&executor, registered);
    // SAFETY: the pages are live; the second is refused.
    unsafe {
        assert!(TapeView::from_raw(memory.pointer(), bytes, first, 512).is_ok());
        let refused = TapeView::from_raw(memory.pointer(), bytes, first, 513);
        assert!(matches!(refused, Err(Error::OutOfAllocation { .. })), "{refused:?}");
    }
}

#[test]
fn a_tape_of_no_bytes_or_no_items_asks_nothing() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let memory = Memory::device(&executor, 4096);
    let none: [u64; 0] = [];
    for offsets in [&none[..], &[0], &[0, 0, 0]] {
        let tape = tape(memory.pointer().wrapping_add(4096), 0, offsets).unwrap();
        assert_eq!(tape.len(), offsets.len().saturating_sub(1));
        assert_eq!(tape.memory(), MemoryKind::Unregistered);
    }
}
