//! What pointer queries answer, version by version.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::*;

fn major(version: i32) -> i32 {
    version / 10_000_000
}

/// The numbers of host and device memory.
fn numbers(version: i32) -> (u32, u32) {
    if major(version) < 6 { (0, 1) } else { (1, 2) }
}

fn is_unknown(address: Handle, version: i32) {
    let (status, answer) = attributes(address);
    if major(version) < 6 {
        // A failure, and nothing is written.
        assert_eq!((status, answer.kind), (1, 77), "{address:?} in {version}");
    } else {
        assert_eq!((status, answer.kind, answer.device), (0, 0, -2), "{address:?} in {version}");
        assert_eq!((answer.device_pointer, answer.host_pointer, answer.is_managed), (0, 0, 0));
    }
    assert_eq!(range(address).0, 500, "{address:?} in {version}");
}

/// Kind, ordinal, where the device and where the host see it, and whether it is managed.
fn is(address: Handle, kind: u32, ordinal: c_int, device: usize, host: usize, managed: bool) {
    let (status, answer) = attributes(address);
    assert_eq!((status, answer.kind, answer.device), (0, kind, ordinal), "{address:?}");
    assert_eq!((answer.device_pointer, answer.host_pointer), (device as u64, host as u64), "{address:?}");
    assert_eq!(answer.is_managed != 0, managed, "{address:?}");
}

fn at(address: Handle, offset: usize) -> Handle {
    address.wrapping_byte_add(offset)
}

#[test]
fn the_table() {
    let _turn = turn();
    let local = 0_u8;
    let local: Handle = (&raw const local).cast_mut().cast();
    for version in VERSIONS {
        set_version(version);
        let (host, device) = numbers(version);
        let (mut pinned, mut managed) = (null(), null());
        let mut registered = vec![0_u8; 8192];
        let own: Handle = registered.as_mut_ptr().cast();
        let memory = device_memory(1000);
        unsafe {
            assert_eq!(hipSetDevice(1), 0);
            let far = device_memory(1000);
            assert_eq!(hipHostMalloc(&mut pinned, 1000, 0), 0);
            assert_eq!(hipSetDevice(0), 0);
            assert_eq!(hipMallocManaged(&mut managed, 1000, 1), 0);
            assert_eq!(hipHostRegister(own, 8192, 0), 0);

            assert_eq!(hipPointerGetAttributes(std::ptr::null_mut(), memory), 1);
            if major(version) < 7 {
                assert_eq!(attributes(null()).0, 1);
            } else {
                is_unknown(null(), version);
            }
            for address in [local, 0x10 as Handle, at(memory, 1000), at(pinned, 1000), at(own, 8192)] {
                is_unknown(address, version);
            }
            for inside in [0, 1, 999] {
                let (there, addr) = (at(memory, inside), memory.addr() + inside);
                is(there, device, 0, addr, 0, false);
                assert_eq!(range(there), (0, memory.addr(), 1000));
                is(at(far, inside), device, 1, far.addr() + inside, 0, false);
                // Its device is the thread's at the time of the allocation.
                let addr = pinned.addr() + inside;
                is(at(pinned, inside), host, 1, addr, addr, false);
                let addr = own.addr() + inside;
                is(at(own, inside), host, 0, addr, addr, false);
                assert_eq!(range(at(own, inside)), (0, own.addr(), 8192));
                let kind = match version {
                    ..50_700_000 => 0,
                    50_700_000..60_000_000 => 4,
                    _ => 3,
                };
                let addr = managed.addr() + inside;
                is(at(managed, inside), kind, 0, addr, addr, true);
            }
            assert_eq!(hipHostUnregister(own), 0);
            for address in [memory, far, managed] {
                assert_eq!(hipFree(address), 0);
            }
            assert_eq!(hipHostFree(pinned), 0);
            for address in [memory, far, managed, pinned, own] {
                is_unknown(address, version);
            }
        }
    }
}

#[test]
fn a_pool_keeps_what_it_is_given_back() {
    let _turn = turn();
    let mut memory = null();
    let (_, device) = numbers(60_443_484);
    set_version(60_443_484);
    unsafe {
        assert_eq!(hipMallocAsync(&mut memory, 1000, null()), 0);
        is(memory, device, 0, memory.addr(), 0, false);
        assert_eq!(hipFreeAsync(memory, null()), 0);
        assert_eq!(hipStreamSynchronize(null()), 0);
        // It is free and still the runtime's.
        is(at(memory, 999), device, 0, memory.addr() + 999, 0, false);
        assert_eq!(range(memory), (0, memory.addr(), 1000));
        // What is allocated there is what it is from then on.
        let next = device_memory(500);
        assert_eq!(next.addr() / 4096, memory.addr() / 4096);
        assert_eq!(range(next), (0, next.addr(), 500));
        assert_eq!(hipFree(next), 0);
        is_unknown(next, 60_443_484);
    }
}

#[test]
fn registered_memory_elsewhere() {
    let _turn = turn();
    set("REGISTER_ALIAS", "1");
    let stream = stream();
    for version in VERSIONS {
        set_version(version);
        let (host, _) = numbers(version);
        // Not whole pages.
        let mut memory = vec![7_u8; 3 * 4096 + 100];
        let own: Handle = memory.as_mut_ptr().cast();
        let mut there = null();
        unsafe {
            assert_eq!(hipHostRegister(own, memory.len(), 0), 0);
            assert_eq!(hipHostGetDevicePointer(&mut there, own, 0), 0);
            assert_ne!(there, own);
            for offset in [0, 5000] {
                // Both addresses are known, and each says both.
                for address in [at(own, offset), at(there, offset)] {
                    is(address, host, 0, there.addr() + offset, own.addr() + offset, false);
                    assert_eq!(range(address), (0, 0, memory.len()));
                }
            }
            let mut start = 0_usize;
            for address in [at(own, 9), at(there, 9)] {
                assert_eq!(hipPointerGetAttribute((&raw mut start).cast(), 11, address), 0);
                assert_eq!(start, own.addr());
            }
            // It is the same memory.
            assert_eq!(hipMemsetD8Async(there, 9, 4096, stream), 0);
            assert_eq!(hipStreamSynchronize(stream), 0);
            assert_eq!((memory[0], memory[4095], memory[4096]), (9, 9, 7));
            memory[4096] = 8;
            assert_eq!(bytes_at(at(there, 4096), 2, stream), [8, 7]);
            assert_eq!(hipHostUnregister(there), 713);
            assert_eq!(hipHostUnregister(own), 0);
        }
        assert_eq!((memory[0], memory[4096]), (9, 8));
        is_unknown(own, version);
        is_unknown(there, version);
    }
    unsafe { assert_eq!(hipStreamDestroy(stream), 0) };
}

#[test]
fn nothing_is_lost_while_memory_moves() {
    let _turn = turn();
    set("REGISTER_ALIAS", "1");
    let pages = vec![0_u64; 1 << 16];
    let own = pages.as_ptr().cast_mut();
    let rounds = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (address, rounds, stop) = (own.expose_provenance(), &rounds, &stop);
        let writer = scope.spawn(move || {
            let own: *mut u64 = std::ptr::with_exposed_provenance_mut(address);
            while !stop.load(Relaxed) {
                let round = rounds.load(Relaxed) + 1;
                for index in (0..1 << 16).step_by(512) {
                    unsafe { own.add(index).write_volatile(round) };
                }
                rounds.store(round, Relaxed);
            }
        });
        for _ in 0..20 {
            let before = rounds.load(Relaxed);
            while rounds.load(Relaxed) == before {
                std::hint::spin_loop();
            }
            unsafe {
                assert_eq!(hipHostRegister(own.cast(), 8 << 16, 0), 0);
                assert_eq!(hipHostUnregister(own.cast()), 0);
            }
        }
        stop.store(true, Relaxed);
        writer.join().unwrap();
    });
    for index in (0..1 << 16).step_by(512) {
        assert_eq!(unsafe { own.add(index).read_volatile() }, rounds.load(Relaxed));
    }
}

#[test]
fn what_others_have() {
    let _turn = turn();
    let variable = vec![0_u8; 100];
    let foreign = vec![0_u8; 100];
    let here = |bytes: &Vec<u8>| -> Handle { bytes.as_ptr().cast_mut().cast() };
    let (variable, foreign) = (here(&variable), here(&foreign));
    let local = 0_u8;
    let local: Handle = (&raw const local).cast_mut().cast();
    device_arena_simulated_declare_managed(variable, 100);
    device_arena_simulated_declare_foreign(foreign, 100);
    for version in VERSIONS {
        set_version(version);
        let (host, device) = numbers(version);
        let addr = variable.addr() + 1;
        if version < 71_400_000 {
            is(at(variable, 1), host, 0, addr, addr, false);
        } else {
            is(at(variable, 1), 3, 0, addr, addr, true);
        }
        assert_eq!(range(at(variable, 1)), (0, variable.addr(), 100));
        is_unknown(at(variable, 100), version);
        is(at(foreign, 1), device, 0, foreign.addr() + 1, 0, false);
        assert_eq!(range(at(foreign, 1)), (0, 0x100, usize::MAX));
        // With retried accesses, all that is unknown was taken for the like.
        set("XNACK", "1");
        if version < 50_700_000 {
            is(local, device, 0, local.addr(), 0, false);
        } else {
            is_unknown(local, version);
        }
        set("XNACK", "0");
    }
    crate::hip::forget_declared();
}

#[test]
fn the_widths_of_single_attributes() {
    let _turn = turn();
    let memory = device_memory(64);
    let local = 0_u8;
    let local: Handle = (&raw const local).cast_mut().cast();
    // What is written, by what two different fillings have in common afterwards.
    let ask = |id: u32, address: Handle| {
        let mut slots = [[0x55_u8; 16], [0xAA; 16]];
        let statuses = slots
            .each_mut()
            .map(|slot| unsafe { hipPointerGetAttribute(slot.as_mut_ptr().cast(), id, address) });
        assert_eq!(statuses[0], statuses[1]);
        let written = slots[0].iter().zip(slots[1]).filter(|&(&a, b)| a == b).count();
        (statuses[0], written)
    };
    for version in VERSIONS {
        set_version(version);
        let context = if version < 60_443_484 { (801, 0) } else { (0, 8) };
        let shared = if version < 71_100_000 { (801, 0) } else { (0, 4) };
        for (id, known, unknown) in [
            (1, context, if context.0 == 0 { (1, 0) } else { context }),
            (2, (0, 4), (1, 4)),
            (3, (0, 8), (1, 8)),
            (4, (1, 8), (1, 8)),
            (5, (801, 0), (801, 0)),
            (6, (0, 1), (1, 1)),
            (7, (0, 4), (1, 4)),
            (8, (0, 1), (1, 1)),
            (9, (0, 4), (1, 4)),
            (10, shared, if shared.0 == 0 { (1, 4) } else { shared }),
            (11, (0, 8), (1, 8)),
            (12, (0, 4), (1, 4)),
            (13, (0, 1), (1, 1)),
            (14, (801, 0), (801, 0)),
            (15, (801, 0), (801, 0)),
            (16, (0, 4), (0, 4)),
            (17, (801, 0), (801, 0)),
            (18, (1, 0), (1, 0)),
        ] {
            assert_eq!((ask(id, memory), ask(id, local)), (known, unknown), "{id} in {version}");
        }
        assert_eq!(ask(2, null()), (1, 0));
    }
    // Another allocation at the same address has another id.
    let id = |memory: Handle| {
        let mut id = 0_u64;
        assert_eq!(unsafe { hipPointerGetAttribute((&raw mut id).cast(), 7, memory) }, 0);
        id
    };
    let before = id(memory);
    unsafe { assert_eq!(hipFree(memory), 0) };
    let again = device_memory(64);
    assert_eq!(again, memory);
    assert!(id(again) != before && id(again) != 0);
    unsafe { assert_eq!(hipFree(again), 0) };
}
