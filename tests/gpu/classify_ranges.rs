//! Ranges: held against what the driver says of their allocation, and asked about once.

use device_arena::{AllocationOrigin, Arena, Error, Executor, MemoryKind, PointerInfo, Result};

use crate::driver;
use crate::functions::Function;
use crate::memory::{Memory, Virtual, ask_range};
use crate::simulated::simulated_or_skip;
use crate::turn::turn;
use crate::vendor;

#[test]
fn a_range_that_leaves_its_allocation_is_refused() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let bytes = 4 << 20;
    for memory in [Memory::device(&executor, bytes), Memory::pinned(&executor, bytes)] {
        let start = memory.pointer();
        for (offset, len) in [(0, bytes), (bytes - 1, 1), (5, bytes - 5)] {
            ask_range(start.wrapping_add(offset), len).unwrap();
        }
        for (offset, len) in [(0, bytes + 1), (bytes - 1, 2), (5, bytes), (1, isize::MAX as usize - bytes)] {
            let range = start.wrapping_add(offset);
            let refused = ask_range(range, len);
            if range.addr().checked_add(len).is_none() {
                assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{refused:?}");
                continue;
            }
            let expected = Error::OutOfAllocation {
                operation: "classify_range",
                start: range.addr(),
                bytes: len,
                allocation: (start.addr(), bytes),
            };
            assert_eq!(refused, Err(expected), "{offset} {len}");
        }
    }
}

#[test]
fn sizes_that_can_not_be_are_refused_and_no_bytes_are_nothing() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let memory = Memory::device(&executor, 4096);
    for pointer in [memory.pointer().cast_const(), std::ptr::null(), std::ptr::without_provenance(0x10)] {
        assert_eq!(ask_range(pointer, 0).unwrap().kind, MemoryKind::Unregistered);
    }
    // One past the end, of no bytes.
    assert_eq!(ask_range(memory.pointer().wrapping_add(4096), 0).unwrap().kind, MemoryKind::Unregistered);
    assert!(matches!(ask_range(std::ptr::null(), 1), Err(Error::OutOfRange { .. })));
    for bytes in [isize::MAX as usize + 1, usize::MAX] {
        assert!(matches!(ask_range(memory.pointer(), bytes), Err(Error::OutOfRange { .. })));
    }
    let high = std::ptr::without_provenance(usize::MAX - 10);
    assert!(matches!(ask_range(high, 100), Err(Error::OutOfRange { .. })));
}

/// On whatever context is current.
fn check_mapped_ranges(executor: &Executor, ask: impl Fn(*const u8, usize) -> Result<PointerInfo>) {
    let mut reserved = Virtual::reserve(executor, 8);
    // All as long: HIP from 7.0 to 7.13 grants no access to what is longer or shorter than what was mapped there first.
    let piece = 2 * reserved.granule;
    reserved.map(0, 2);
    reserved.map(2, 2);
    for (offset, bytes) in [(0, piece), (piece, piece), (2 * piece - 2, 2)] {
        let info = ask(reserved.pointer(offset), bytes).unwrap();
        assert_eq!(info.kind, MemoryKind::Device { ordinal: 0 });
        assert_eq!(info.origin, vendor::says(AllocationOrigin::Virtual));
    }
    for (offset, bytes) in [(0, 2 * piece), (piece - 1, 2), (17, 2 * piece - 17)] {
        let asked = ask(reserved.pointer(offset), bytes);
        if vendor::is_nvidia() {
            assert_eq!(asked.unwrap().kind, MemoryKind::Device { ordinal: 0 });
        } else {
            // For all that the runtime says, these are two allocations.
            assert!(matches!(asked, Err(Error::OutOfAllocation { .. })), "{offset} {bytes}: {asked:?}");
        }
    }
    for (offset, bytes) in [(0, 2 * piece + 1), (2 * piece - 1, 2), (0, 4 * piece)] {
        let refused = ask(reserved.pointer(offset), bytes);
        assert!(matches!(refused, Err(Error::OutOfAllocation { .. })), "{offset} {bytes}: {refused:?}");
    }
    // A hole between two mappings is no way across.
    reserved.map(6, 2);
    assert!(ask(reserved.pointer(3 * piece), piece).is_ok());
    let refused = ask(reserved.pointer(piece), 3 * piece);
    assert!(matches!(refused, Err(Error::OutOfAllocation { .. })), "{refused:?}");
}

#[test]
fn a_range_may_span_mappings_and_not_leave_what_is_mapped() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    check_mapped_ranges(&executor, |pointer, bytes| {
        executor.with_current(|| ask_range(pointer, bytes)).unwrap()
    });
}

#[test]
fn virtual_ranges_are_held_against_what_is_mapped_without_a_context() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    assert!(driver::current().is_null());
    check_mapped_ranges(&executor, ask_range);
}

#[test]
fn a_call_asks_once_for_each_allocation_and_the_next_call_asks_again() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    let arena = Arena::new(&executor);
    let buffers = [
        Memory::device(&executor, 100_000),
        Memory::pinned(&executor, 100_000),
        Memory::managed(&executor, 100_000),
        Memory::pool(&executor, 100_000),
    ];
    let local = [7u8; 64];
    let asked = || simulated.calls(Function::PointerGetAttributes);
    for round in 0..3 {
        let call = executor.begin(&arena).unwrap();
        for buffer in &buffers {
            let before = asked();
            for (offset, bytes) in [(0, 100), (99_000, 1000), (0, 100_000), (5, 1)] {
                // SAFETY: the memory outlives the call.
                let info = unsafe { call.classify_range(buffer.pointer().wrapping_add(offset), bytes) };
                assert_ne!(info.unwrap().kind, MemoryKind::Unregistered);
            }
            assert_eq!(asked() - before, 1, "round {round}");
            // What leaves the allocation is asked about, and refused.
            // SAFETY: as above.
            let refused = unsafe { call.classify_range(buffer.pointer(), 100_001) };
            assert!(matches!(refused, Err(Error::OutOfAllocation { .. })), "{refused:?}");
        }
        // Memory that no driver knows may become a driver's.
        let before = asked();
        for _ in 0..3 {
            // SAFETY: as above.
            unsafe { call.classify_range(local.as_ptr(), 64) }.unwrap();
        }
        assert_eq!(asked() - before, 3);
        call.finish().unwrap();
    }
}

#[test]
fn more_allocations_than_a_call_remembers_are_answered_right() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let arena = Arena::new(&executor);
    let buffers: Vec<_> = (0..40)
        .map(|at| if at % 2 == 0 { Memory::device(&executor, 4096) } else { Memory::pinned(&executor, 4096) })
        .collect();
    let call = executor.begin(&arena).unwrap();
    for _ in 0..2 {
        for (at, buffer) in buffers.iter().enumerate() {
            // SAFETY: the memory outlives the call.
            let info = unsafe { call.classify_range(buffer.pointer(), 4096) }.unwrap();
            assert_eq!(matches!(info.kind, MemoryKind::PinnedHost), at % 2 == 1);
        }
    }
    call.finish().unwrap();
}
