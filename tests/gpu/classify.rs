//! What the driver says of every kind of pointer.

use device_arena::{AllocationOrigin, MemoryKind, PointerInfo};

use crate::driver;
use crate::functions::Function;
use crate::memory::{MODES, Memory, RawStream, Registered, Virtual, ask};
use crate::process::alone;
use crate::simulated::simulated_or_skip;
use crate::turn::{turn, turn_of_nvidia};
use crate::vendor;
use crate::vendors::version_and_library;

static OF_THE_PROGRAM: [u8; 64] = [7; 64];

/// Pages of its own within a larger piece.
fn pages(bytes: &mut Vec<u8>) -> &mut [u8] {
    bytes.resize(3 * 4096, 0);
    let start = bytes.as_ptr().align_offset(4096);
    &mut bytes[start..start + 2 * 4096]
}

#[track_caller]
fn expect(info: PointerInfo, kind: MemoryKind, origin: AllocationOrigin, memory: &Memory, bytes: usize) {
    assert_eq!((info.kind, info.origin), (kind, vendor::says(origin)));
    assert_eq!(info.vendor, Some(vendor::vendor()));
    assert_eq!(info.allocation, Some((memory.pointer().addr(), bytes)));
    assert!(info.buffer_id.is_some());
    assert!(info.is_device_accessible);
}

#[test]
fn memory_that_no_driver_knows_is_unregistered() {
    let Some(turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let (local, heap) = (7u8, vec![7u8; 100_000]);
    let reaches = executor.device().unwrap().reaches_pageable_memory;
    let backend = turn.backend();
    for pointer in
        [&raw const local, heap.as_ptr(), heap.as_ptr().wrapping_add(99_999), OF_THE_PROGRAM.as_ptr()]
    {
        let info = ask(pointer).unwrap();
        assert_eq!((info.kind, info.vendor, info.allocation), (MemoryKind::Unregistered, None, None));
        assert_eq!((info.buffer_id, info.ordinal()), (None, None));
        assert!(info.is_host_accessible());
        assert!(info.is_device_accessible || !reaches, "{}", version_and_library(&backend).1);
    }
    for pointer in
        [std::ptr::null(), std::ptr::without_provenance(0x10), std::ptr::without_provenance(usize::MAX)]
    {
        assert_eq!(ask(pointer).unwrap().kind, MemoryKind::Unregistered);
    }
}

#[test]
fn pinned_and_registered_host_memory_is_pinned() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let pinned = Memory::pinned(&executor, 10_000);
    for offset in [0, 1, 9_999] {
        let info = ask(pinned.pointer().wrapping_add(offset)).unwrap();
        assert_eq!(
            (info.kind, info.origin),
            (MemoryKind::PinnedHost, vendor::says(AllocationOrigin::Direct))
        );
        assert!(info.is_host_accessible() && info.is_device_accessible);
        assert!(info.buffer_id.is_some() && info.vendor == Some(vendor::vendor()));
        let (start, bytes) = info.allocation.unwrap();
        assert!(start <= pinned.pointer().addr() && pinned.pointer().addr() + 10_000 <= start + bytes);
    }
    let mut heap = Vec::new();
    let pages = pages(&mut heap);
    let (start, len) = (pages.as_ptr(), pages.len());
    assert_eq!(ask(start).unwrap().kind, MemoryKind::Unregistered);
    let registered = Registered::new(&executor, pages);
    for offset in [0, len / 2, len - 1] {
        let info = ask(start.wrapping_add(offset)).unwrap();
        assert_eq!(
            (info.kind, info.origin),
            (MemoryKind::PinnedHost, vendor::says(AllocationOrigin::Direct))
        );
    }
    drop(registered);
    assert_eq!(ask(start).unwrap().kind, MemoryKind::Unregistered);
}

#[test]
fn device_memory_is_known_from_its_first_byte_to_its_last_and_no_further() {
    let Some(turn) = turn() else { return };
    for ordinal in 0..turn.count().min(2) {
        let executor = vendor::executor(ordinal).unwrap();
        // Larger than what a driver takes small allocations from.
        let bytes = 8 << 20;
        let memory = Memory::device(&executor, bytes);
        for offset in [0, 1, 4097, bytes - 1] {
            let info = ask(memory.pointer().wrapping_add(offset)).unwrap();
            expect(info, MemoryKind::Device { ordinal }, AllocationOrigin::Direct, &memory, bytes);
            assert!(!info.is_host_accessible());
            assert_eq!(info.ordinal(), Some(ordinal));
        }
        let behind = ask(memory.pointer().wrapping_add(bytes)).unwrap();
        assert_ne!(behind.allocation, ask(memory.pointer()).unwrap().allocation);
        let start = memory.pointer();
        drop(memory);
        assert_eq!(ask(start).unwrap().kind, MemoryKind::Unregistered, "freed");
    }
    let skipped = turn.has_two();
    println!("of a second ordinal: {skipped}");
}

#[test]
fn managed_memory_is_managed_and_not_device_memory() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let memory = Memory::managed(&executor, 10_000);
    for offset in [0, 9_999] {
        let info = ask(memory.pointer().wrapping_add(offset)).unwrap();
        assert!(matches!(info.kind, MemoryKind::Managed { .. }), "{info:?}");
        assert!(info.is_host_accessible() && info.is_device_accessible && info.buffer_id.is_some());
    }
}

#[test]
fn memory_of_a_pool_says_so() {
    let Some(turn) = turn() else { return };
    for ordinal in 0..turn.count().min(2) {
        let executor = vendor::executor(ordinal).unwrap();
        let memory = Memory::pool(&executor, 10_000);
        for offset in [0, 9_999] {
            let info = ask(memory.pointer().wrapping_add(offset)).unwrap();
            assert_eq!(
                (info.kind, info.origin),
                (MemoryKind::Device { ordinal }, vendor::says(AllocationOrigin::Pool))
            );
            assert!(!info.is_host_accessible() && info.is_device_accessible);
        }
    }
}

#[test]
fn reserved_addresses_are_unmapped_until_memory_is_mapped_there() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let mut reserved = Virtual::reserve(&executor, 4);
    let granule = reserved.granule;
    // AMD's runtime does not know addresses without memory.
    let unmapped = if vendor::is_nvidia() { MemoryKind::Unmapped } else { MemoryKind::Unregistered };
    for offset in [0, granule, reserved.bytes() - 1] {
        let info = ask(reserved.pointer(offset)).unwrap();
        assert_eq!((info.kind, info.origin), (unmapped, vendor::says(AllocationOrigin::Virtual)));
        assert!(!info.is_host_accessible() || !vendor::is_nvidia());
        assert!(!info.is_device_accessible || executor.device().unwrap().reaches_pageable_memory);
    }
    reserved.map(1, 1);
    let info = ask(reserved.pointer(granule + 17)).unwrap();
    let origin = vendor::says(AllocationOrigin::Virtual);
    assert_eq!((info.kind, info.origin), (MemoryKind::Device { ordinal: 0 }, origin));
    if let Some((start, bytes)) = info.allocation {
        assert_eq!((start, bytes), (reserved.pointer(granule).addr(), granule), "the mapped part alone");
    }
    assert_eq!(ask(reserved.pointer(0)).unwrap().kind, unmapped);
    assert_eq!(ask(reserved.pointer(2 * granule)).unwrap().kind, unmapped);
}

#[test]
fn an_allocation_at_a_freed_ones_address_is_another_buffer() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let mut seen = Vec::new();
    let mut addresses = Vec::new();
    for _ in 0..8 {
        let memory = Memory::device(&executor, 4 << 20);
        let id = ask(memory.pointer()).unwrap().buffer_id.unwrap();
        assert!(!seen.contains(&id), "{id} was another's");
        seen.push(id);
        addresses.push(memory.pointer().addr());
    }
    addresses.sort_unstable();
    addresses.dedup();
    println!("8 allocations at {} addresses", addresses.len());
}

fn is_active(ordinal: i32) -> bool {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: the driver writes both.
    driver::ok(unsafe { driver::primary_state(ordinal, &raw mut flags, &raw mut active) });
    active != 0
}

#[test]
fn asking_makes_no_context() {
    let name = "classify::asking_makes_no_context";
    if !crate::process::is_child(name) && turn_of_nvidia("contexts beside the primary ones").is_none() {
        return;
    }
    if !alone(name, &[]) {
        return;
    }
    let local = 7u8;
    std::thread::spawn(move || {
        for pointer in [&raw const local, OF_THE_PROGRAM.as_ptr(), std::ptr::without_provenance(0x10)] {
            assert_eq!(ask(pointer).unwrap().kind, MemoryKind::Unregistered);
        }
        assert!(driver::current().is_null());
    })
    .join()
    .unwrap();
    assert!(!is_active(0), "a context was made");
    // Somebody else's context, and memory in it: the answer comes from a thread that has none.
    let mut context = std::ptr::null_mut();
    // SAFETY: the driver writes one handle.
    driver::ok(unsafe { driver::ctx_create(&raw mut context, 0, 0) });
    assert_eq!(driver::current(), context);
    let mut address = 0;
    // SAFETY: the driver writes one address.
    driver::ok(unsafe { driver::mem_alloc(&raw mut address, 1 << 20) });
    let asked = std::thread::spawn(move || {
        let info = ask(std::ptr::with_exposed_provenance(address as usize)).unwrap();
        assert!(driver::current().is_null());
        info
    });
    assert_eq!(asked.join().unwrap().kind, MemoryKind::Device { ordinal: 0 });
    assert_eq!(driver::current(), context);
    assert!(!is_active(0), "a primary context was made");
    // SAFETY: nothing uses memory or context any more.
    unsafe {
        driver::ok(driver::mem_free(address));
        driver::ok(driver::ctx_destroy(context));
    }
}

#[test]
fn captures_of_every_mode_stay_valid_while_pointers_are_asked_about() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let (device, pinned) = (Memory::device(&executor, 4096), Memory::pinned(&executor, 4096));
    let (managed, pool) = (Memory::managed(&executor, 4096), Memory::pool(&executor, 4096));
    let mut mapped = Virtual::reserve(&executor, 2);
    mapped.map(0, 1);
    let local = 7u8;
    let pointers = [
        device.pointer().addr(),
        pinned.pointer().addr(),
        managed.pointer().addr(),
        pool.pointer().addr(),
        mapped.pointer(5).addr(),
        mapped.pointer(mapped.granule).addr(),
        (&raw const local).addr(),
        0,
        0x10,
    ];
    let ask_all = || {
        for address in pointers {
            ask(std::ptr::with_exposed_provenance(address)).unwrap();
        }
    };
    let captured = RawStream::new(&executor);
    for mode in MODES {
        let ((), graph) = captured.capture(mode, || {
            ask_all();
            std::thread::scope(|threads| threads.spawn(ask_all).join().unwrap());
        });
        assert!(!graph.is_null(), "mode {mode}: asking has spoilt the capture");
        // SAFETY: the graph is this one's alone.
        driver::ok(unsafe { driver::graph_destroy(graph) });
    }
}

#[test]
fn a_pointer_costs_one_question() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    let (device, pinned) = (Memory::device(&executor, 4096), Memory::pinned(&executor, 4096));
    let local = 7u8;
    for pointer in [device.pointer().cast_const(), pinned.pointer(), &raw const local] {
        let (asked, all) = (simulated.calls(Function::PointerGetAttributes), simulated.all_calls());
        ask(pointer).unwrap();
        assert_eq!(simulated.calls(Function::PointerGetAttributes) - asked, 1);
        // AMD's runtime is asked for the range and the number as well, and twice whether an error of the thread's is left.
        let most = if vendor::is_nvidia() { 1 } else { 5 };
        assert!(simulated.all_calls() - all <= most, "and nothing else is called");
    }
    let all = simulated.all_calls();
    ask(std::ptr::null()).unwrap();
    assert_eq!(simulated.all_calls(), all);
}

#[test]
fn a_query_that_fails_is_an_error_and_no_answer() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let local = 7u8;
    simulated.fail(Function::PointerGetAttributes, 0, 1, 719);
    let error = ask(&raw const local).unwrap_err();
    let device_arena::Error::Driver { vendor, operation, code, .. } = error else { panic!("{error}") };
    let function = Function::PointerGetAttributes;
    assert_eq!((vendor, operation, code), (vendor::vendor(), function.name(), 719));
    assert_eq!(ask(&raw const local).unwrap().kind, MemoryKind::Unregistered);
}
