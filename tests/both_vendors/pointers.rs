//! What a pointer is where two drivers are asked.

use device_arena::backend::{AnyBackend, Backend, CopyRange};
use device_arena::{Arena, MemoryKind, TapeView};

use crate::drivers::{Side, alone, ask, both};

#[test]
fn memory_of_a_device_is_its_own_drivers() {
    let Some(both) = both() else { return };
    for side in [&both.cuda, &both.rocm] {
        let memory = side.allocate(5000);
        let info = ask(memory.wrapping_add(17)).unwrap();
        assert_eq!((info.kind, info.vendor), (MemoryKind::Device { ordinal: 0 }, Some(side.vendor())));
        assert_eq!(info.allocation, Some((memory.addr(), 5000)));
        side.free(memory);
    }
}

#[test]
fn memory_of_an_arena_is_its_own_drivers() {
    let Some(both) = both() else { return };
    for side in [&both.cuda, &both.rocm] {
        let executor = side.executor();
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        let mut output = call.output::<u8>(100).unwrap();
        let info = ask(output.device_ptr().unwrap()).unwrap();
        assert_eq!((info.kind, info.vendor), (MemoryKind::Device { ordinal: 0 }, Some(side.vendor())));
    }
}

#[test]
fn memory_of_nobody_is_unregistered() {
    let Some(_both) = both() else { return };
    let (local, heap) = (7u8, vec![7u8; 100]);
    for pointer in [&raw const local, heap.as_ptr(), std::ptr::null(), std::ptr::without_provenance(0x10)] {
        let info = ask(pointer).unwrap();
        assert_eq!((info.kind, info.vendor), (MemoryKind::Unregistered, None));
    }
}

/// The claims merge: each vendor's executor uses the pages where they are.
#[test]
fn pages_that_both_have_pinned_are_pinned_for_both() {
    let Some(both) = both() else { return };
    let mut pages = vec![7u8; 1 << 16];
    for side in [&both.cuda, &both.rocm] {
        side.register(&mut pages);
    }
    assert_eq!(ask(pages.as_ptr()).unwrap().kind, MemoryKind::PinnedHost);
    assert!(ask(pages.as_ptr()).unwrap().is_device_accessible);
    for side in [&both.cuda, &both.rocm] {
        let executor = side.executor();
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        let offsets = [0u64, 100, 5000];
        let staged = call.stage(&TapeView::of(&pages, &offsets).unwrap()).unwrap();
        assert_eq!(staged.bytes_ptr(), pages.as_ptr(), "{:?}", side.vendor());
    }
    for side in [&both.cuda, &both.rocm] {
        side.unregister(&mut pages);
    }
}

#[test]
fn pages_that_one_has_pinned_are_copied_for_the_other() {
    let Some(both) = both() else { return };
    let mut pages = vec![7u8; 1 << 16];
    for (owner, other) in [(&both.cuda, &both.rocm), (&both.rocm, &both.cuda)] {
        owner.register(&mut pages);
        let info = ask(pages.as_ptr()).unwrap();
        assert_eq!((info.kind, info.vendor), (MemoryKind::PinnedHost, Some(owner.vendor())));
        for (side, copies) in [(owner, false), (other, true)] {
            let executor = side.executor();
            let arena = Arena::new(&executor);
            let call = executor.begin(&arena).unwrap();
            let staged = call.stage(&TapeView::of(&pages, &[0u64, 5000]).unwrap()).unwrap();
            assert_eq!(staged.bytes_ptr() != pages.as_ptr(), copies);
        }
        owner.unregister(&mut pages);
    }
}

fn backend_copy(backend: &AnyBackend, destination: *mut u8, source: *const u8, bytes: usize) {
    let stream = backend.create_stream(0).unwrap();
    let range = CopyRange { destination, source, bytes };
    // SAFETY: the tests own both ends.
    unsafe { backend.transfer_and_wait(Some(&stream), range) }.unwrap();
}

fn staged_by(side: &Side, memory: *mut u8, bytes: usize) -> Vec<u8> {
    let executor = side.executor();
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let offsets = [0u64, bytes as u64];
    // SAFETY: the memory and the offsets outlive the tape.
    let tape = unsafe { TapeView::from_raw(memory.cast_const(), bytes, offsets.as_ptr(), 2) }.unwrap();
    let staged = call.stage(&tape).unwrap();
    assert!(staged.copied_bytes() >= bytes);
    let mut back = vec![0; bytes];
    executor.synchronize().unwrap();
    backend_copy(&side.backend, back.as_mut_ptr(), staged.bytes_ptr(), bytes);
    back
}

/// Neither driver knows the other's memory: handed its address, it would read it as pageable.
#[test]
fn a_tape_of_one_vendors_device_comes_to_the_others_by_the_host() {
    let Some(both) = both() else { return };
    let bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 7) as u8).collect();
    for (owner, other) in [(&both.cuda, &both.rocm), (&both.rocm, &both.cuda)] {
        let memory = owner.allocate(bytes.len());
        backend_copy(&owner.backend, memory, bytes.as_ptr(), bytes.len());
        assert_eq!(staged_by(other, memory, bytes.len()), bytes);
        owner.free(memory);
    }
}

/// Up to HIP 5.6, where devices reach pageable memory, the runtime says of all memory that it is a device's.
#[test]
fn a_claim_on_everything_is_not_believed() {
    let name = "pointers::a_claim_on_everything_is_not_believed";
    let variables =
        [("DEVICE_ARENA_SIMULATED_HIP_VERSION", "50221153"), ("DEVICE_ARENA_SIMULATED_XNACK", "1")];
    if !alone(name, &variables) {
        return;
    }
    let Some(both) = both() else { return };
    let AnyBackend::Rocm(rocm) = &both.rocm.backend else { return };
    if rocm.version() != 50_221_153 {
        println!("skipped: needs the simulated drivers");
        return;
    }
    let local = 7u8;
    let memory = both.cuda.allocate(100);
    for pointer in [&raw const local, memory.cast_const()] {
        assert!(ask(pointer).is_err());
    }
    both.cuda.free(memory);
}

/// Pages that the second driver has pinned in part were taken for its own in whole.
#[test]
fn pages_that_the_second_has_pinned_in_part_were_used_by_it_in_whole() {
    let Some(both) = both() else { return };
    let mut pages = vec![7u8; 1 << 16];
    both.cuda.register(&mut pages);
    both.rocm.register(&mut pages[..4096]);
    for (side, is_whole) in [(&both.cuda, true), (&both.rocm, false)] {
        let executor = side.executor();
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        // A driver may refuse to copy what it knows in part.
        let staged = call.stage(&TapeView::of(&pages, &[0u64, 60_000]).unwrap());
        let is_used = staged.is_ok_and(|staged| staged.bytes_ptr() == pages.as_ptr());
        assert_eq!(is_used, is_whole, "{:?}", side.vendor());
    }
    both.rocm.unregister(&mut pages[..4096]);
    both.cuda.unregister(&mut pages);
}
