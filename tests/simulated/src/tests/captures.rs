//! Captures, what invalidates them, and graphs.

use super::*;

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

fn begin(stream: Handle, mode: u32) {
    assert_eq!(unsafe { cuStreamBeginCapture_v2(stream, mode) }, 0);
}

fn end(stream: Handle) -> (u32, Handle) {
    let mut graph = std::ptr::dangling_mut();
    let status = unsafe { cuStreamEndCapture(stream, &mut graph) };
    (status, graph)
}

/// This thread's mode while `body` runs.
fn with_mode<T>(mode: u32, body: impl FnOnce() -> T) -> T {
    let mut exchanged = mode;
    assert_eq!(unsafe { cuThreadExchangeStreamCaptureMode(&mut exchanged) }, 0);
    let result = body();
    assert_eq!(unsafe { cuThreadExchangeStreamCaptureMode(&mut exchanged) }, 0);
    assert_eq!(exchanged, mode);
    result
}

#[test]
fn a_graph_runs_what_was_captured_on_two_streams() {
    let _turn = turn();
    let (first, second, fork, join) = (stream(1), stream(1), event(), event());
    let (memory, copy) = (device_memory(64), device_memory(64));
    unsafe {
        begin(first, GLOBAL);
        assert_eq!(cuMemsetD8Async(memory, 6, 64, first), 0);
        assert_eq!(cuEventRecord(fork, first), 0);
        assert_eq!(cuStreamWaitEvent(second, fork, 0), 0);
        assert_eq!(cuMemcpyDtoDAsync_v2(copy, memory, 64, second), 0);
        let mut status = 9;
        assert_eq!((cuStreamIsCapturing(second, &mut status), status), (0, 1));
        assert_eq!(cuEventRecord(join, second), 0);
        assert_eq!(cuStreamWaitEvent(first, join, 0), 0);
        let (status, graph) = end(first);
        assert_eq!(status, 0);
        assert_eq!(bytes_at(memory, 1, first), [0xC5], "nothing has run");
        let mut executable = null();
        assert_eq!(cuGraphInstantiateWithFlags(&mut executable, graph, 0), 0);
        assert_eq!(cuGraphDestroy(graph), 0);
        for value in 1..3 {
            assert_eq!(cuMemsetD8Async(copy, value, 64, second), 0);
            assert_eq!(cuStreamSynchronize(second), 0);
            assert_eq!(cuGraphLaunch(executable, first), 0);
            assert_eq!(bytes_at(copy, 1, first), [6]);
        }
        assert_eq!(cuGraphExecDestroy(executable), 0);
        assert_eq!(live("graphs"), 0);
        assert_eq!(cuGraphLaunch(executable, first), 1);

        // A stream that joined has to be joined back.
        begin(first, RELAXED);
        assert_eq!(cuEventRecord(fork, first), 0);
        assert_eq!(cuStreamWaitEvent(second, fork, 0), 0);
        assert_eq!(cuMemsetD8Async(memory, 1, 64, second), 0);
        assert_eq!(end(first), (904, null()));
        assert_eq!([cuEventQuery(fork), cuStreamWaitEvent(second, fork, 0)], [1; 2], "it never happened");
        begin(first, RELAXED);
        assert_eq!(cuEventRecord(fork, first), 0);
        assert_eq!(cuStreamWaitEvent(second, fork, 0), 0);
        assert_eq!(end(second), (903, null()));
        assert_eq!(end(first), (901, null()));
        assert_eq!(end(first), (401, null()));
    }
}

#[test]
fn unsafe_calls_fail_and_invalidate() {
    let _turn = turn();
    let (stream, recorded) = (stream(1), event());
    let memory = device_memory(64);
    let mut address = 0;
    let mut allocate = || unsafe { cuMemAlloc_v2(&mut address, 64) };
    for mode in [GLOBAL, THREAD_LOCAL] {
        begin(stream, mode);
        assert_eq!(allocate(), 900);
        unsafe {
            let mut status = 9;
            assert_eq!((cuStreamIsCapturing(stream, &mut status), status), (0, 2));
            assert_eq!(cuMemsetD8Async(memory, 1, 64, stream), 901);
        }
        assert_eq!(end(stream), (901, null()));
    }
    let (other, unrelated) = (super::stream(1), event());
    let calls: [(&str, u32, &dyn Fn() -> u32); 12] = unsafe {
        [
            ("cuStreamQuery of another", 900, &|| cuStreamQuery(other)),
            ("cuStreamSynchronize of another", 900, &|| cuStreamSynchronize(other)),
            ("cuEventQuery of another", 900, &|| cuEventQuery(unrelated)),
            ("cuEventSynchronize of another", 900, &|| cuEventSynchronize(unrelated)),
            ("cuMemAllocAsync on another", 900, &|| cuMemAllocAsync(&mut 0, 64, other)),
            ("cuStreamSynchronize", 900, &|| cuStreamSynchronize(stream)),
            ("cuStreamQuery", 900, &|| cuStreamQuery(stream)),
            ("cuCtxSynchronize", 900, &|| cuCtxSynchronize()),
            ("cuEventQuery", 907, &|| cuEventQuery(recorded)),
            ("cuEventSynchronize", 907, &|| cuEventSynchronize(recorded)),
            ("cuMemFree_v2", 900, &|| cuMemFree_v2(memory)),
            ("cuMemHostAlloc", 900, &|| cuMemHostAlloc(&mut null(), 64, 0)),
        ]
    };
    for (name, status, call) in calls {
        begin(stream, GLOBAL);
        unsafe { assert_eq!(cuEventRecord(recorded, stream), 0) };
        assert_eq!(call(), status, "{name}");
        assert_eq!(end(stream), (901, null()), "{name}");
    }
    // Legal all the same.
    begin(stream, GLOBAL);
    unsafe {
        let (mut free, mut total, mut kind) = (0, 0, 0_u32);
        assert_eq!(cuMemGetInfo_v2(&mut free, &mut total), 0);
        let mut place = (&raw mut kind).cast();
        assert_eq!(cuPointerGetAttributes(1, &2, &mut place, memory), 0);
        assert_eq!(cuPointerGetAttribute(place, 2, memory), 0);
        assert_eq!(cuMemsetD8Async(memory, 1, 64, other), 0);
        assert_eq!(cuEventRecord(unrelated, other), 0);
    }
    let (status, graph) = end(stream);
    assert_eq!(status, 0);
    unsafe { assert_eq!(cuGraphDestroy(graph), 0) };
}

#[test]
fn modes_say_whose_calls_are_unsafe() {
    let turn = turn();
    let stream = stream(1);
    let context = turn.context as usize;
    let here = || {
        let mut address = 0;
        let status = unsafe { cuMemAlloc_v2(&mut address, 64) };
        if status == 0 {
            with_mode(RELAXED, || assert_eq!(unsafe { cuMemFree_v2(address) }, 0));
        }
        status
    };
    let elsewhere = |mode| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                assert_eq!(unsafe { cuCtxPushCurrent_v2(context as Handle) }, 0);
                with_mode(mode, here)
            });
            thread.join().unwrap()
        })
    };
    // The capture's mode, whether the call is made elsewhere, the mode there, what it returns.
    for (mode, other, theirs, expected) in [
        (GLOBAL, true, GLOBAL, 900),
        (GLOBAL, true, THREAD_LOCAL, 0),
        (GLOBAL, true, RELAXED, 0),
        (GLOBAL, false, RELAXED, 0),
        (GLOBAL, false, THREAD_LOCAL, 900),
        (THREAD_LOCAL, true, GLOBAL, 0),
        (THREAD_LOCAL, false, GLOBAL, 900),
        (THREAD_LOCAL, false, RELAXED, 0),
        (RELAXED, true, GLOBAL, 0),
        (RELAXED, false, GLOBAL, 0),
    ] {
        begin(stream, mode);
        let status = if other { elsewhere(theirs) } else { with_mode(theirs, here) };
        assert_eq!(status, expected, "{mode} {other} {theirs}");
        let (ended, graph) = end(stream);
        assert_eq!(ended, if expected == 0 { 0 } else { 901 });
        if ended == 0 {
            unsafe { assert_eq!(cuGraphDestroy(graph), 0) };
        }
    }
}

#[test]
fn the_nameless_stream_can_not_be_drawn_in() {
    let _turn = turn();
    let (blocking, free, outside) = (stream(0), stream(1), event());
    let memory = device_memory(64);
    unsafe {
        assert_eq!(cuStreamBeginCapture_v2(null(), RELAXED), 900);
        begin(blocking, RELAXED);
        assert_eq!(cuMemsetD8Async(memory, 1, 64, null()), 906);
        assert_eq!(end(blocking), (901, null()));
        begin(free, RELAXED);
        assert_eq!(cuMemsetD8Async(memory, 1, 64, null()), 0);
        assert_eq!(cuEventRecord(outside, null()), 0);
        assert_eq!(cuStreamWaitEvent(free, outside, 0), 905);
        assert_eq!(end(free), (901, null()));
    }
}
