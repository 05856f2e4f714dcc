//! Allocations, their limits, and virtual memory.

use super::*;
use crate::structures::{AccessDescription, AllocationProperties, Location};

#[test]
fn memory_runs_out_and_comes_back() {
    let _turn = turn();
    let (mut free, mut total, mut address) = (0, 0, 0);
    let first = device_memory(900 << 20);
    unsafe {
        assert_eq!(cuMemAlloc_v2(&mut address, 200 << 20), 2);
        assert_eq!(cuMemAlloc_v2(&mut address, usize::MAX), 2);
        assert_eq!(cuMemAlloc_v2(&mut address, 0), 1);
        assert_eq!(cuMemGetInfo_v2(&mut free, &mut total), 0);
        assert_eq!((free, total), (124 << 20, 1 << 30));
        assert_eq!(live("device_bytes"), 900 << 20);
        // The other ordinal has its own.
        let other = open(1);
        assert_eq!(cuMemAlloc_v2(&mut address, 1 << 30), 0);
        assert_eq!(cuMemFree_v2(address), 0);
        assert_eq!(cuMemFree_v2(address), 1);
        let mut popped = null();
        assert_eq!((cuCtxPopCurrent_v2(&mut popped), popped), (0, other));
        assert_eq!(cuMemFree_v2(first + 512), 1);
        assert_eq!(cuMemFree_v2(first), 0);
        assert_eq!([cuMemFree_v2(0), cuMemFreeHost(null())], [0; 2]);
        assert_eq!(cuMemGetInfo_v2(&mut free, &mut total), 0);
    }
    assert_eq!(free, 1 << 30);
}

#[test]
fn device_memory_is_poisoned_aligned_and_closed() {
    let _turn = turn();
    let memory = device_memory(5000);
    assert_eq!(memory % 512, 0);
    assert!(!is_readable(memory));
    assert!(bytes_at(memory, 5000, null()).iter().all(|&byte| byte == 0xC5));
    assert!(!is_readable(memory) && !is_readable(memory + 4999));
    let host = pinned(100);
    assert!(is_readable(host as u64));
    unsafe {
        assert_eq!(host.read(), 0xC5);
        let (mut base, mut bytes) = (0, 0);
        assert_eq!(cuMemGetAddressRange_v2(&mut base, &mut bytes, memory + 7), 0);
        assert_eq!((base, bytes), (memory, 5000));
        assert_eq!(cuMemGetAddressRange_v2(&mut base, &mut bytes, memory + 5000), 500);
        // A copy has to lie within one allocation.
        assert_eq!(cuMemsetD8Async(memory, 0, 5001, null()), 1);
        assert_eq!(cuMemcpyAsync(host as u64, memory + 4990, 20, null()), 1);
    }
}

#[test]
fn copies_reach_peers_and_freed_memory_breaks_the_context() {
    let turn = turn();
    set("PEER", "0");
    let near = device_memory(64);
    let there = open(1);
    let far = device_memory(64);
    unsafe {
        let mut can = 9;
        assert_eq!((cuDeviceCanAccessPeer(&mut can, 0, 1), can), (0, 0));
        assert_eq!(cuCtxEnablePeerAccess(turn.context, 0), 217);
        let stream = stream(1);
        assert_eq!(cuMemsetD8Async(far, 3, 64, stream), 0);
        assert_eq!(cuMemcpyPeerAsync(near, turn.context, far, there, 64, stream), 0);
        assert_eq!(bytes_at(near, 1, stream), [3]);
        occupy(stream);
        assert_eq!(cuMemsetD8Async(far, 4, 64, stream), 0);
        assert_eq!(cuMemFree_v2(far), 0);
        assert_eq!(cuStreamSynchronize(stream), 700);
        let mut address = 0;
        assert_eq!(cuMemAlloc_v2(&mut address, 64), 700, "it stays broken");
        let mut popped = null();
        assert_eq!(cuCtxPopCurrent_v2(&mut popped), 0);
        assert_eq!(cuCtxSynchronize(), 0, "and the other ordinal whole");
    }
}

#[test]
fn works_that_share_pages_leave_them_open_to_each_other() {
    let _turn = turn();
    let memory = device_memory(64 << 10);
    let streams = [stream(1), stream(1), stream(1)];
    unsafe {
        for round in 0..300_u64 {
            for (index, &stream) in streams.iter().enumerate() {
                let at = memory + (round * 7 + index as u64 * 5) % 8 * 4096;
                assert_eq!(cuMemsetD8Async(at, index as u8, 20 << 10, stream), 0);
            }
        }
        assert_eq!(cuCtxSynchronize(), 0);
    }
    assert!((0..16).all(|page| !is_readable(memory + page * 4096)));
}

#[test]
fn freeing_waits_where_that_is_asked_for() {
    let _turn = turn();
    set("FREE_WAITS", "1");
    let (stream, memory, host) = (stream(1), device_memory(64), pinned(64));
    occupy(stream);
    unsafe {
        assert_eq!(cuMemcpyAsync(host as u64, memory, 64, stream), 0);
        assert_eq!(cuMemFree_v2(memory), 0);
        assert_eq!(cuStreamSynchronize(stream), 0);
    }
    set("FREE_WAITS", "0");
}

#[test]
fn virtual_memory_grows_in_place() {
    let _turn = turn();
    const GRANULE: usize = 2 << 20;
    let location = Location { kind: 1, id: 0 };
    let properties = AllocationProperties { kind: 1, handle_types: 0, location, win32: 0, flags: [0; 8] };
    let access = AccessDescription { location, flags: 3 };
    let (mut granule, mut base) = (0, 0);
    let answer = |address: u64| {
        let (mut kind, mut bytes) = (0_u32, 0_usize);
        let mut places = [(&raw mut kind).cast(), (&raw mut bytes).cast()];
        unsafe { assert_eq!(cuPointerGetAttributes(2, [2, 12].as_ptr(), places.as_mut_ptr(), address), 0) };
        (kind, bytes)
    };
    unsafe {
        assert_eq!((cuMemGetAllocationGranularity(&mut granule, &properties, 0), granule), (0, GRANULE));
        assert_eq!(cuMemAddressReserve(&mut base, GRANULE + 4096, 0, 0, 0), 1);
        assert_eq!(cuMemAddressReserve(&mut base, 4 * GRANULE, 0, 0, 0), 0);
        assert_eq!(answer(base), (0, 4 * GRANULE));
        let mut handles = [0; 2];
        for (index, handle) in handles.iter_mut().enumerate() {
            assert_eq!(cuMemCreate(handle, GRANULE, &properties, 0), 0);
            let at = base + (index * GRANULE) as u64;
            assert_eq!(cuMemMap(at, GRANULE, 0, *handle, 0), 0);
            assert_eq!(cuMemMap(at, GRANULE, 0, *handle, 0), 1);
            assert_eq!(cuMemsetD8Async(at, 1, 1, null()), 1, "nobody may touch it yet");
            assert_eq!(cuMemSetAccess(at, GRANULE, &access, 1), 0);
            assert_eq!(cuMemRelease(*handle), 0);
            assert_eq!(cuMemRelease(*handle), 1);
            assert_eq!(answer(at), (2, 4 * GRANULE));
        }
        assert_eq!(live("device_bytes"), 2 * GRANULE as u64);
        let (mut start, mut bytes) = (0, 0);
        assert_eq!(cuMemGetAddressRange_v2(&mut start, &mut bytes, base + 5), 0);
        assert_eq!((start, bytes), (base, GRANULE));
        assert_eq!(cuMemGetAddressRange_v2(&mut start, &mut bytes, base + 2 * GRANULE as u64), 500);
        assert_eq!(cuMemsetD8Async(base, 8, 2 * GRANULE, null()), 0);
        assert_eq!(bytes_at(base + GRANULE as u64 - 1, 2, null()), [8, 8]);
        assert!(!is_readable(base));
        assert_eq!(cuMemsetD8Async(base, 8, 2 * GRANULE + 1, null()), 1);
        assert_eq!(cuMemAddressFree(base, 4 * GRANULE), 1);
        assert_eq!(cuMemUnmap(base, 2 * GRANULE), 0);
        assert_eq!(cuMemAddressFree(base, 4 * GRANULE), 0);
    }
}
