//! Reserved addresses and what is mapped there, and memory between processes.

use super::*;
use crate::structures::{AccessDescription, AllocationProperties, Location, SharedMemory};

const GRANULE: usize = 4096;

fn properties(ordinal: c_int, handle_types: u32) -> AllocationProperties {
    AllocationProperties {
        kind: 1,
        handle_types,
        location: Location { kind: 1, id: ordinal },
        win32: 0,
        flags: [0; 8],
    }
}

fn device_type(version: i32) -> u32 {
    if version < 60_000_000 { 1 } else { 2 }
}

#[test]
fn a_mapping_is_what_is_mapped() {
    let _turn = turn();
    let wanted = properties(1, 0);
    let access = AccessDescription { location: Location { kind: 1, id: 0 }, flags: 3 };
    for version in VERSIONS {
        set_version(version);
        let (mut place, mut memory, mut granule) = (null(), 0, 0);
        let no_hint = null();
        unsafe {
            assert_eq!(hipMemGetAllocationGranularity(&mut granule, &wanted, 0), 0);
            assert_eq!(granule, GRANULE);
            let misaligned = if version < 70_000_000 { 2 } else { 1 };
            assert_eq!(hipMemAddressReserve(&mut place, GRANULE + 1, 0, no_hint, 0), misaligned);
            assert_eq!(hipMemAddressReserve(&mut place, 4 * GRANULE, 0, no_hint, 0), 0);
            assert_eq!(hipMemCreate(&mut memory, GRANULE + 1, &wanted, 0), 1);
            assert_eq!(hipMemCreate(&mut memory, GRANULE, &wanted, 0), 0);
            let second = place.wrapping_byte_add(GRANULE);
            assert_eq!(hipMemMap(second, GRANULE, 0, memory, 0), 0);
            assert_eq!(hipMemSetAccess(second, GRANULE, &access, 1), 0);
            // The mapped part, and the device that has the memory; what is only reserved is unknown.
            let (status, answer) = attributes(second.wrapping_byte_add(7));
            assert_eq!((status, answer.kind, answer.device), (0, device_type(version), 1));
            assert_eq!(range(second.wrapping_byte_add(7)), (0, second.addr(), GRANULE));
            assert_eq!(range(place).0, 500);
            let known = attributes(place);
            assert_eq!((known.0, known.1.kind), if version < 60_000_000 { (1, 77) } else { (0, 0) });
            assert_eq!(hipMemsetD8Async(second, 5, GRANULE, null()), 0);
            assert_eq!(bytes_at(second, 2, null()), [5, 5]);
            assert_eq!(hipMemUnmap(second, GRANULE), 0);
            assert_eq!(hipMemRelease(memory), 0);
            assert_eq!(hipMemAddressFree(place, 4 * GRANULE), 0);
        }
    }
}

#[test]
fn what_grew_opens_in_parts_like_the_first() {
    let _turn = turn();
    let access = AccessDescription { location: Location { kind: 1, id: 0 }, flags: 3 };
    for (version, statuses) in [(60_443_484, [0, 0, 0]), (70_226_015, [0, 1, 0]), (71_460_850, [0, 0, 0])] {
        set_version(version);
        let mut place = null();
        unsafe { assert_eq!(hipMemAddressReserve(&mut place, 8 * GRANULE, 0, null(), 0), 0) };
        let mut at = place;
        let mut memories = Vec::new();
        for (granules, status) in [1, 2, 1].into_iter().zip(statuses) {
            let (bytes, mut memory) = (granules * GRANULE, 0);
            unsafe {
                assert_eq!(hipMemCreate(&mut memory, bytes, &properties(0, 0), 0), 0);
                assert_eq!(hipMemMap(at, bytes, 0, memory, 0), 0);
                assert_eq!(hipMemSetAccess(at, bytes, &access, 1), status, "{granules} in {version}");
            }
            at = at.wrapping_byte_add(bytes);
            memories.push(memory);
        }
        unsafe {
            assert_eq!(hipMemUnmap(place, 4 * GRANULE), 0);
            for memory in memories {
                assert_eq!(hipMemRelease(memory), 0);
            }
            assert_eq!(hipMemAddressFree(place, 8 * GRANULE), 0);
        }
    }
}

#[test]
fn imported_memory_is_the_threads_devices() {
    let _turn = turn();
    set_version(60_443_484);
    let (plain, shared) = (properties(0, 0), properties(0, 1));
    let access = AccessDescription { location: Location { kind: 1, id: 1 }, flags: 3 };
    let (mut memory, mut imported, mut file, mut place) = (0, 0, -1, null());
    unsafe {
        assert_eq!(hipMemCreate(&mut memory, GRANULE, &plain, 0), 0);
        assert_eq!(hipMemExportToShareableHandle((&raw mut file).cast(), memory, 1, 0), 1);
        assert_eq!(hipMemRelease(memory), 0);
        assert_eq!(hipMemCreate(&mut memory, GRANULE, &shared, 0), 0);
        assert_eq!(hipMemExportToShareableHandle((&raw mut file).cast(), memory, 1, 0), 0);
        assert_eq!(hipSetDevice(1), 0);
        assert_eq!(hipMemImportFromShareableHandle(&mut imported, file as usize as Handle, 1), 0);
        assert_eq!(libc::close(file), 0);
        assert_eq!(hipMemAddressReserve(&mut place, GRANULE, 0, null(), 0), 0);
        assert_eq!(hipMemMap(place, GRANULE, 0, imported, 0), 0);
        assert_eq!(hipMemSetAccess(place, GRANULE, &access, 1), 0);
        assert_eq!(hipSetDevice(0), 0);
        assert_eq!(attributes(place).1.device, 1);
        assert_eq!(hipMemUnmap(place, GRANULE), 0);
        for memory in [memory, imported] {
            assert_eq!(hipMemRelease(memory), 0);
        }
        assert_eq!(hipMemAddressFree(place, GRANULE), 0);
        set_version(50_731_921);
        assert_eq!(hipMemCreate(&mut memory, GRANULE, &shared, 0), 801);
    }
}

#[test]
fn a_handle_of_the_own_process() {
    let _turn = turn();
    unsafe { assert_eq!(hipSetDevice(1), 0) };
    let memory = device_memory(5000);
    let mut handle = SharedMemory { bytes: [0; 64] };
    let (mut opened, mut again) = (null(), null());
    for version in VERSIONS {
        set_version(version);
        let flags = u32::from(version >= 60_000_000);
        unsafe {
            assert_eq!(hipIpcGetMemHandle(&mut handle, memory), 0);
            assert_eq!(hipIpcOpenMemHandle(&mut opened, handle, 1 - flags), 1);
            assert_eq!(hipIpcOpenMemHandle(&mut opened, handle, flags), 201);
            set("IPC_FOREIGN", "1");
            assert_eq!(hipIpcOpenMemHandle(&mut opened, handle, flags), 0);
            assert_ne!(opened, memory);
            // The first device, or the thread's; never the owner's, but by chance.
            let ordinal = c_int::from(version >= 60_100_000);
            let (status, answer) = attributes(opened.wrapping_byte_add(1));
            assert_eq!((status, answer.kind, answer.device), (0, device_type(version), ordinal), "{version}");
            assert_eq!(answer.host_pointer, 0);
            assert_eq!(range(opened.wrapping_byte_add(1)), (0, opened.addr(), 5000));
            // It is the same memory.
            assert_eq!(hipMemsetD8Async(memory, version as u8, 5000, null()), 0);
            assert_eq!(hipDeviceSynchronize(), 0);
            assert_eq!(bytes_at(opened, 3, null()), [version as u8; 3]);
            // Opened again it is where it was, and is closed as often.
            assert_eq!((hipIpcOpenMemHandle(&mut again, handle, flags), again), (0, opened));
            assert_eq!(hipIpcCloseMemHandle(opened), 0);
            assert_eq!(attributes(opened).0, 0);
            assert_eq!(hipIpcCloseMemHandle(opened), 0);
            assert_eq!(hipIpcCloseMemHandle(opened), 1);
            assert_eq!(range(opened).0, 500);
            assert_eq!(hipIpcCloseMemHandle(memory), 1);
            set("IPC_FOREIGN", "0");
        }
    }
    unsafe {
        assert_eq!(hipFree(memory), 0);
        // What it was of is gone.
        set("IPC_FOREIGN", "1");
        let flags = u32::from(VERSIONS[VERSIONS.len() - 1] >= 60_000_000);
        assert_eq!(hipIpcOpenMemHandle(&mut opened, handle, flags), 17);
        assert_eq!(hipIpcGetMemHandle(&mut handle, memory), 1);
    }
}

/// Opens the handle that its parent has given it, and adds one to each byte.
#[test]
#[ignore = "in a process of its own"]
fn in_a_child_add_one() {
    let text = std::env::var(HANDLE).unwrap();
    let _turn = turn();
    set_version(60_443_484);
    let mut handle = SharedMemory { bytes: [0; 64] };
    for (place, two) in handle.bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *place = u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    }
    let mut opened = null();
    unsafe {
        assert_eq!(hipIpcOpenMemHandle(&mut opened, handle, 1), 0);
        let added: Vec<u8> = bytes_at(opened, 100, null()).iter().map(|byte| byte + 1).collect();
        assert_eq!(hipMemcpyAsync(opened, added.as_ptr().cast_mut().cast(), 100, 1, null()), 0);
        assert_eq!(hipDeviceSynchronize(), 0);
        assert_eq!(hipIpcCloseMemHandle(opened), 0);
    }
}

const HANDLE: &str = "DEVICE_ARENA_SIMULATED_TEST_HANDLE";

#[test]
fn another_process_has_the_same_memory() {
    let _turn = turn();
    let memory = device_memory(100);
    let mut handle = SharedMemory { bytes: [0; 64] };
    unsafe {
        assert_eq!(hipMemsetD8Async(memory, 41, 100, null()), 0);
        assert_eq!(hipDeviceSynchronize(), 0);
        assert_eq!(hipIpcGetMemHandle(&mut handle, memory), 0);
    }
    let text: String = handle.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let child = in_a_child("tests::sharing::in_a_child_add_one", HANDLE, &text);
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert_eq!(bytes_at(memory, 100, null()), [42; 100]);
    unsafe { assert_eq!(hipFree(memory), 0) };
}
