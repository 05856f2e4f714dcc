//! What AMD's runtime says of pointers, version by version, and what the crate makes of it.

use device_arena::backend::Vendor;
use device_arena::{AllocationOrigin, Arena, Error, MemoryKind, PointerInfo, TapeView};

use crate::amd::{
    Amd, Current, amd, close_from_another_process, declare_foreign, declare_managed, device_address, forget,
    open_from_another_process,
};
use crate::functions::Function;
use crate::memory::{Memory, Registered, Virtual, ask, ask_range};
use crate::process::{is_child, run_child};
use crate::simulated::simulated_or_skip;
use crate::vendor;

fn kind_of(pointer: *const u8) -> MemoryKind {
    ask(pointer).unwrap().kind
}

/// What the runtime can't say is not said, whatever the memory.
#[track_caller]
fn is_of_amd(info: &PointerInfo, kind: MemoryKind) {
    assert_eq!((info.kind, info.vendor), (kind, Some(Vendor::Rocm)));
    assert_eq!(info.origin, AllocationOrigin::Unknown);
    assert!(info.is_device_accessible);
}

#[test]
fn null_is_unregistered_on_every_version() {
    let Some(_amd) = amd() else { return };
    assert_eq!(kind_of(std::ptr::null()), MemoryKind::Unregistered);
}

/// An error of the question up to 5, an answer from 6 on.
#[test]
fn pageable_memory_is_unregistered_on_every_version() {
    let Some(_amd) = amd() else { return };
    let (local, heap) = (7u8, vec![7u8; 1000]);
    static STATIC: u8 = 7;
    for pointer in [&raw const local, &raw const STATIC, heap.as_ptr(), std::ptr::without_provenance(0x10)] {
        let info = ask(pointer).unwrap();
        assert_eq!((info.kind, info.vendor, info.allocation), (MemoryKind::Unregistered, None, None));
    }
}

/// One says a device's up to 5, and two from 6 on.
#[test]
fn memory_of_a_device_is_a_devices_at_every_byte() {
    let Some(amd) = amd() else { return };
    for ordinal in 0..amd.turn.count() {
        let executor = vendor::executor(ordinal).unwrap();
        let memory = Memory::device(&executor, 5000);
        for offset in [0, 1, 2500, 4999] {
            let info = ask(memory.pointer().wrapping_add(offset)).unwrap();
            is_of_amd(&info, MemoryKind::Device { ordinal });
            assert_eq!(info.allocation, Some((memory.pointer().addr(), 5000)));
            assert!(!info.is_host_accessible());
        }
    }
}

#[test]
fn one_past_the_end_is_nobodys_or_the_next_allocations() {
    let Some(_amd) = amd() else { return };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    let past = memory.pointer().wrapping_add(4096);
    let info = ask(past).unwrap();
    assert!(
        info.kind == MemoryKind::Unregistered
            || info.allocation.is_some_and(|(start, _)| start == past.addr())
    );
    assert_eq!(ask_range(past, 0).unwrap().kind, MemoryKind::Unregistered);
    assert!(matches!(ask_range(memory.pointer(), 4097), Err(Error::OutOfAllocation { .. })));
}

#[test]
fn freed_memory_is_unregistered() {
    let Some(_amd) = amd() else { return };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    let pointer = memory.pointer();
    drop(memory);
    assert_eq!(kind_of(pointer), MemoryKind::Unregistered);
}

/// The runtime keeps what it has in its pool: freed memory is a device's still, and never the host's.
#[test]
fn memory_that_was_freed_to_a_pool_is_a_devices_still() {
    let Some(_amd) = amd() else { return };
    let Some(_) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    let memory = Memory::pool(&executor, 4096);
    let pointer = memory.pointer();
    is_of_amd(&ask(pointer).unwrap(), MemoryKind::Device { ordinal: 0 });
    drop(memory);
    executor.synchronize().unwrap();
    assert_eq!(kind_of(pointer), MemoryKind::Device { ordinal: 0 });
}

/// Nought says the host's up to 5, and one from 6 on.
#[test]
fn pinned_memory_is_the_hosts_at_every_byte() {
    let Some(_amd) = amd() else { return };
    let memory = Memory::pinned(&vendor::executor(0).unwrap(), 5000);
    for offset in [0, 1, 4999] {
        let info = ask(memory.pointer().wrapping_add(offset)).unwrap();
        is_of_amd(&info, MemoryKind::PinnedHost);
        assert!(info.is_host_accessible());
    }
}

#[test]
fn registered_memory_is_the_hosts() {
    let Some(_amd) = amd() else { return };
    let mut pages = vec![7u8; 1 << 16];
    let start = pages.as_ptr();
    let registered = Registered::new(&vendor::executor(0).unwrap(), &mut pages);
    let info = ask(start.wrapping_add(4097)).unwrap();
    is_of_amd(&info, MemoryKind::PinnedHost);
    assert!(info.is_host_accessible());
    drop(registered);
    assert_eq!(kind_of(start), MemoryKind::Unregistered);
}

/// Both are known to the runtime, and the host must not follow the device's.
#[test]
fn registered_memory_with_two_addresses_is_read_by_the_hosts_alone() {
    let Some(_amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    simulated.set("REGISTER_ALIAS", "1");
    let executor = vendor::executor(0).unwrap();
    let mut pages: Vec<u8> = (0..1u32 << 16).map(|i| i as u8).collect();
    let expected = pages.clone();
    let start = pages.as_ptr();
    let registered = Registered::new(&executor, &mut pages);
    let alias = executor.with_current(|| device_address(start)).unwrap();
    assert_ne!(alias, start);
    let (own, other) = (ask(start.wrapping_add(9)).unwrap(), ask(alias.wrapping_add(9)).unwrap());
    is_of_amd(&own, MemoryKind::PinnedHost);
    is_of_amd(&other, MemoryKind::Device { ordinal: 0 });
    assert!(own.is_host_accessible() && !other.is_host_accessible());

    // A tape at the device's address is no text for the host, and is copied for a device.
    let offsets = [0u64, 100, 5000];
    // SAFETY: bytes and offsets are live.
    let tape = unsafe { TapeView::from_raw(alias, 5000, offsets.as_ptr(), offsets.len()) }.unwrap();
    assert!(matches!(tape.get(0), Err(Error::Device { .. })));
    // At the host's own address it is.
    // SAFETY: as above.
    let tape = unsafe { TapeView::from_raw(start, 5000, offsets.as_ptr(), offsets.len()) }.unwrap();
    assert_eq!(tape.get(1).unwrap(), &expected[100..5000]);
    // The device has another address for it: it is not used where it is.
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let staged = call.stage(&tape).unwrap();
    assert_ne!(staged.bytes_ptr(), start);
    executor.synchronize().unwrap();
    drop((call, registered));
    simulated.restore("REGISTER_ALIAS", "0");
}

/// The host's with a mark up to 5.6, a number of its own in 5.7, and another one from 6 on.
#[test]
fn managed_memory_is_known_in_each_of_its_spellings() {
    let Some(amd) = amd() else { return };
    for ordinal in 0..amd.turn.count() {
        let memory = Memory::managed(&vendor::executor(ordinal).unwrap(), 5000);
        let info = ask(memory.pointer().wrapping_add(77)).unwrap();
        is_of_amd(&info, MemoryKind::Managed { ordinal: Some(ordinal) });
        assert!(info.is_host_accessible());
    }
}

/// The runtime takes it for pinned memory until 7.14. The host reaches it either way.
#[test]
fn a_managed_variable_is_managed_from_7_14_on() {
    let Some(amd) = amd() else { return };
    let variable = vec![7u8; 100];
    if !declare_managed(&variable) {
        return;
    }
    let info = ask(variable.as_ptr().wrapping_add(50)).unwrap();
    if amd.is_since(7, 14) {
        assert!(matches!(info.kind, MemoryKind::Managed { .. }), "{:?}", info.kind);
    } else {
        assert_eq!(info.kind, MemoryKind::PinnedHost);
    }
    assert!(info.is_host_accessible());
    forget(&variable);
}

#[test]
fn mapped_memory_is_a_devices_as_far_as_it_is_mapped() {
    let Some(amd) = amd() else { return };
    let ordinal = amd.turn.count() - 1;
    let executor = vendor::executor(ordinal).unwrap();
    let mut memory = Virtual::reserve(&executor, 4);
    let (start, granule) = (memory.pointer(0), memory.granule);
    assert_eq!(kind_of(start), MemoryKind::Unregistered, "reserved alone");
    memory.map(0, 1);
    let info = ask(start.wrapping_add(100)).unwrap();
    is_of_amd(&info, MemoryKind::Device { ordinal });
    assert_eq!(info.allocation, Some((start.addr(), granule)));
    assert_eq!(kind_of(start.wrapping_add(granule)), MemoryKind::Unregistered);
    assert!(ask_range(start, granule).is_ok());
    assert!(ask_range(start, granule + 1).is_err());
}

/// The number that the runtime says is the first device's up to 6.0, and the current one's from 6.1 on: never the owner's.
#[test]
fn memory_of_another_process_is_a_devices_whose_number_says_nothing() {
    let Some(amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    if !amd.turn.has_two() {
        return;
    }
    simulated.set("IPC_FOREIGN", "1");
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    let current = Current::device(1);
    let opened = open_from_another_process(&amd, memory.pointer());
    let info = ask(opened.cast()).unwrap();
    let ordinal = u32::from(amd.is_since(6, 1));
    is_of_amd(&info, MemoryKind::Device { ordinal });
    close_from_another_process(opened);
    drop(current);
    simulated.restore("IPC_FOREIGN", "0");
}

/// Of what other users of the hardware have made, the runtime says that it is the first device's, whoever's it is.
#[test]
fn memory_of_another_runtime_is_an_error_and_no_guess() {
    let Some(_amd) = amd() else { return };
    let memory = vec![7u8; 100];
    if !declare_foreign(&memory) {
        return;
    }
    let error = ask(memory.as_ptr().wrapping_add(3)).unwrap_err();
    assert!(matches!(
        error,
        Error::Driver { vendor: Vendor::Rocm, operation: "hipPointerGetAttributes", .. }
    ));
    assert!(error.to_string().contains("has not made"), "{error}");
    forget(&memory);
    assert_eq!(kind_of(memory.as_ptr()), MemoryKind::Unregistered);
}

/// Up to 5.6, where devices reach pageable memory, that looks like memory of another runtime.
#[test]
fn where_devices_reach_pageable_memory_up_to_5_6_nothing_is_guessed() {
    let name = "amd_pointers::where_devices_reach_pageable_memory_up_to_5_6_nothing_is_guessed";
    if !is_child(name) {
        let Some(_amd) = amd() else { return };
        let Some(_) = simulated_or_skip() else { return };
        run_child(name, &[("DEVICE_ARENA_SIMULATED_XNACK", Some("1"))]);
        return;
    }
    let Some(amd) = amd() else { panic!("no driver") };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    is_of_amd(&ask(memory.pointer()).unwrap(), MemoryKind::Device { ordinal: 0 });
    let heap = Box::new([7u8; 100]);
    if amd.is_since(5, 7) {
        assert_eq!(kind_of(heap.as_ptr()), MemoryKind::Unregistered);
    } else {
        assert!(ask(heap.as_ptr()).is_err());
    }
}

/// The attribute that would say it has 32 bits.
#[test]
fn the_size_of_an_allocation_beyond_4_gib_is_whole() {
    let name = "amd_pointers::the_size_of_an_allocation_beyond_4_gib_is_whole";
    const BYTES: usize = (5 << 30) + 4096;
    if !is_child(name) {
        let Some(amd) = amd() else { return };
        drop(amd);
        run_child(name, &[("DEVICE_ARENA_SIMULATED_MEMORY", Some("8589934592"))]);
        return;
    }
    let Some(_amd) = amd() else { panic!("no driver") };
    let memory = Memory::device(&vendor::executor(0).unwrap(), BYTES);
    let info = ask(memory.pointer().wrapping_add(BYTES - 1)).unwrap();
    assert_eq!(info.allocation, Some((memory.pointer().addr(), BYTES)));
    assert!(ask_range(memory.pointer(), BYTES).is_ok());
    assert!(ask_range(memory.pointer(), BYTES + 1).is_err());
}

#[test]
fn allocations_are_told_apart_where_they_have_one_address() {
    let Some(_amd) = amd() else { return };
    let executor = vendor::executor(0).unwrap();
    let ids: Vec<_> =
        (0..3).map(|_| ask(Memory::device(&executor, 4096).pointer()).unwrap().buffer_id).collect();
    if ids[0].is_none() {
        println!("skipped: this runtime has no numbers for allocations");
        return;
    }
    assert!(ids.iter().all(Option::is_some));
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

fn failing(amd: &Amd, function: Function, code: u32) -> Option<Error> {
    let simulated = simulated_or_skip()?;
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    simulated.fail(function, 0, 1, code);
    let answer = ask(memory.pointer());
    simulated.clear();
    drop(memory);
    assert!(amd.turn.count() > 0);
    answer.err()
}

/// Lack of memory is one of the query's own failures; it is no lack of memory of ours.
#[test]
fn a_query_that_fails_is_an_error_and_no_answer() {
    let Some(amd) = amd() else { return };
    for code in [2, 719, 999] {
        let Some(error) = failing(&amd, Function::PointerGetAttributes, code) else { return };
        let Error::Driver { code: found, operation, .. } = error else { panic!("{error}") };
        assert_eq!((found, operation), (i64::from(code), "hipPointerGetAttributes"));
    }
    let Some(error) = failing(&amd, Function::MemGetAddressRange, 719) else { return };
    assert!(matches!(error, Error::Driver { operation: "hipMemGetAddressRange", code: 719, .. }), "{error}");
}

/// It is how versions up to 5 say that they do not know a pointer, and a failure from 6 on.
#[test]
fn an_invalid_value_is_an_answer_up_to_5_alone() {
    let Some(amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    simulated.fail(Function::PointerGetAttributes, 0, 1, 1);
    let answer = ask(memory.pointer());
    simulated.clear();
    if amd.is_since(6, 0) {
        assert!(matches!(answer, Err(Error::Driver { code: 1, .. })));
    } else {
        assert_eq!(answer.unwrap().kind, MemoryKind::Unregistered);
    }
}

/// It is not fatal: what the allocation is, is known all the same.
#[test]
fn an_allocation_without_a_range_is_an_allocation() {
    let Some(_amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    simulated.fail(Function::MemGetAddressRange, 0, 1, 500);
    let info = ask(memory.pointer()).unwrap();
    simulated.clear();
    assert_eq!((info.kind, info.allocation), (MemoryKind::Device { ordinal: 0 }, None));
}
