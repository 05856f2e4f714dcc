//! Streams, events, and work that runs late.

use super::*;

#[test]
fn a_stream_keeps_its_order_and_is_not_waited_for() {
    let _turn = turn();
    let (stream, memory) = (stream(1), device_memory(4096));
    occupy(stream);
    unsafe {
        assert_eq!(cuMemsetD8Async(memory, 1, 4096, stream), 0);
        assert_eq!(cuMemsetD8Async(memory, 2, 2048, stream), 0);
        assert_eq!(cuStreamQuery(stream), 600);
        assert_eq!(cuStreamSynchronize(stream), 0);
        assert_eq!(cuStreamQuery(stream), 0);
    }
    let read = bytes_at(memory, 4096, stream);
    assert!(read[..2048].iter().all(|&byte| byte == 2) && read[2048..].iter().all(|&byte| byte == 1));
}

#[test]
fn an_event_orders_two_streams() {
    let _turn = turn();
    let (first, second, done) = (stream(1), stream(1), event());
    let (memory, to) = (device_memory(64), pinned(64));
    unsafe {
        assert_eq!(cuEventQuery(done), 0, "never recorded");
        occupy(first);
        assert_eq!(cuMemsetD8Async(memory, 7, 64, first), 0);
        assert_eq!(cuEventRecord(done, first), 0);
        assert_eq!(cuEventQuery(done), 600);
        assert_eq!(cuStreamWaitEvent(second, done, 0), 0);
        assert_eq!(cuMemcpyAsync(to as u64, memory, 64, second), 0);
        assert_eq!(cuStreamSynchronize(second), 0);
        assert_eq!(cuEventQuery(done), 0);
        assert_eq!(to.read(), 7);
    }
}

#[test]
fn the_nameless_stream_orders_blocking_streams_alone() {
    let _turn = turn();
    let (blocking, free) = (stream(0), stream(1));
    let memory = device_memory(64);
    occupy(blocking);
    unsafe {
        assert_eq!(cuMemsetD8Async(memory, 1, 64, blocking), 0);
        assert_eq!(cuStreamSynchronize(free), 0);
        assert_eq!(cuStreamQuery(blocking), 600);
        assert_eq!(cuMemsetD8Async(memory, 2, 64, null()), 0);
        assert_eq!(cuStreamQuery(free), 0);
        assert_eq!(bytes_at(memory, 1, blocking), [2]);
        occupy(null());
        assert_eq!(cuMemsetD8Async(memory, 3, 64, null()), 0);
        assert_eq!(cuMemsetD8Async(memory, 4, 64, blocking), 0);
        assert_eq!(cuStreamSynchronize(blocking), 0);
        assert_eq!(cuStreamQuery(null()), 0);
        assert_eq!(bytes_at(memory, 1, free), [4]);
    }
}

#[test]
fn copies_of_pageable_memory_are_staged_or_waited_for() {
    let _turn = turn();
    let (stream, memory) = (stream(1), device_memory(64));
    occupy(stream);
    let mut host = [5_u8; 64];
    unsafe { assert_eq!(cuMemcpyHtoDAsync_v2(memory, host.as_ptr().cast(), 64, stream), 0) };
    host.fill(6);
    assert_eq!(bytes_at(memory, 64, stream), [5; 64]);
    // Pinned memory is read when the copy runs.
    let source = pinned(64);
    occupy(stream);
    unsafe {
        source.write_bytes(1, 64);
        assert_eq!(cuMemcpyAsync(memory, source as u64, 64, stream), 0);
        source.write_bytes(2, 64);
    }
    assert_eq!(bytes_at(memory, 64, stream), [2; 64]);
    assert_eq!(host, [6; 64]);
}

#[test]
fn late_work_waits_for_whoever_waits_for_it() {
    let _turn = turn();
    set("LATE", "1");
    set("LATE_MS", "0");
    let (first, second, done) = (stream(1), stream(1), event());
    let memory = device_memory(64);
    let seen = pinned(64);
    unsafe {
        seen.write_bytes(0, 64);
        assert_eq!(cuMemsetD8Async(memory, 9, 64, first), 0);
        assert_eq!(cuEventRecord(done, first), 0);
        assert_eq!(cuStreamWaitEvent(second, done, 0), 0);
        assert_eq!(cuMemcpyAsync(seen as u64, memory, 64, second), 0);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(seen.read(), 0, "nobody has waited");
        assert_eq!(cuStreamSynchronize(second), 0);
        assert_eq!(seen.read(), 9);

        // Questions make it go on, in the end.
        assert_eq!(cuMemsetD8Async(memory, 1, 64, first), 0);
        assert_eq!([cuStreamQuery(first), cuStreamQuery(first), cuStreamQuery(first)], [600; 3]);
        while cuStreamQuery(first) == 600 {}

        // Without order between them, the copy runs before what it should come after.
        assert_eq!(cuMemsetD8Async(memory, 2, 64, first), 0);
        assert_eq!(cuMemcpyAsync(seen as u64, memory, 64, second), 0);
        assert_eq!(cuStreamSynchronize(second), 0);
        assert_eq!(seen.read(), 1);
        assert_eq!(cuCtxSynchronize(), 0);
    }
    set("LATE_MS", "10");
    unsafe extern "C" fn answer(sender: *mut c_void) {
        let sender = unsafe { Box::from_raw(sender.cast::<std::sync::mpsc::Sender<u32>>()) };
        sender.send(unsafe { cuInit(0) }).unwrap();
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    unsafe { assert_eq!(cuLaunchHostFunc(first, Some(answer), Box::into_raw(Box::new(sender)).cast()), 0) };
    // It runs by itself in the end, and may not call the driver.
    assert_eq!(receiver.recv(), Ok(800));
}

#[test]
fn handles_end() {
    let turn = turn();
    let (stream, named, event) = (stream(0), stream(0), event());
    occupy(stream);
    unsafe {
        assert_eq!(cuStreamDestroy_v2(stream), 0);
        assert_eq!(cuStreamDestroy_v2(stream), 400);
        assert_eq!(cuStreamSynchronize(stream), 400);
        assert_eq!(cuEventDestroy_v2(event), 0);
        assert_eq!(cuEventQuery(event), 400);
        assert_eq!(cuEventQuery(null()), 400);
        assert_eq!(cuStreamSynchronize(null()), 0);

        let mut other = null();
        assert_eq!(cuCtxCreate_v2(&mut other, 0, 1), 0);
        let theirs = super::stream(0);
        let mut owner = null();
        assert_eq!((cuStreamGetCtx(theirs, &mut owner), owner), (0, other));
        assert_eq!(cuCtxDestroy_v2(other), 0);
        assert_eq!(cuStreamSynchronize(theirs), 400);
        assert_eq!(cuCtxPushCurrent_v2(other), 201);

        let mut popped = null();
        assert_eq!((cuCtxPopCurrent_v2(&mut popped), popped), (0, turn.context));
        assert_eq!(cuCtxPopCurrent_v2(&mut popped), 201);
        let mut address = 0;
        assert_eq!(cuMemAlloc_v2(&mut address, 64), 201);
        assert_eq!(cuStreamSynchronize(null()), 201);
        assert_eq!(cuStreamSynchronize(named), 0, "a handle says its context");
        assert_eq!(cuCtxSetCurrent(turn.context), 0);
        assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
        assert_eq!(cuMemAlloc_v2(&mut address, 64), 709);
        assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 201);
    }
}
