//! Devices of threads and of streams, functions of the host, captures and graphs.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::*;

#[test]
fn a_device_of_each_thread() {
    let _turn = turn();
    let mut device = 77;
    unsafe {
        assert_eq!(hipSetDevice(1), 0);
        std::thread::spawn(|| {
            let mut device = 77;
            assert_eq!((hipGetDevice(&mut device), device), (0, 0));
        })
        .join()
        .unwrap();
        assert_eq!((hipGetDevice(&mut device), device), (0, 1));
        let there = stream();
        assert_eq!(hipSetDevice(0), 0);
        let here = stream();
        assert_eq!(
            [device_of(there), device_of(here), device_of(null()), device_of(2 as Handle)],
            [1, 0, 0, 0]
        );
        // A stream of another device than the thread's is fine, and an event of another than the stream's is not.
        assert_eq!(hipStreamSynchronize(there), 0);
        let event = event();
        assert_eq!(hipEventRecord(event, there), 400);
        assert_eq!(hipEventRecord(event, here), 0);
        assert_eq!(hipStreamWaitEvent(there, event, 0), 0);
        assert_eq!(hipStreamWaitEvent(there, null(), 0), 400);
        for stream in [here, there] {
            assert_eq!(hipStreamDestroy(stream), 0);
            // Before 7.0 an error, and from then on what ends the process.
            assert_eq!(hipStreamQuery(stream), 400);
        }
        assert_eq!(hipStreamDestroy(null()), 400);
        assert_eq!(hipEventDestroy(event), 0);
    }
}

#[test]
fn devices_say_what_they_are() {
    let _turn = turn();
    let mut name = [0_u8; 64];
    let attribute = |id| {
        let mut value = 77;
        assert_eq!(unsafe { hipDeviceGetAttribute(&mut value, id, 1) }, 0);
        value
    };
    assert_eq!(attribute(87), 64);
    assert_eq!((attribute(23), attribute(61)), (9, 0));
    set("GFX", "gfx1100");
    assert_eq!(attribute(87), 32);
    assert_eq!((attribute(23), attribute(61)), (11, 0));
    assert_eq!([attribute(24), attribute(63), attribute(67), attribute(88)], [1, 2, 2, 1]);
    let mut value = 77;
    let architecture = |oldest: bool| {
        let mut properties = vec![0x55_u8; 4096];
        let ask = if oldest { hipGetDeviceProperties } else { hipGetDevicePropertiesR0600 };
        assert_eq!(unsafe { ask(properties.as_mut_ptr(), 0) }, 0);
        let (at, end) = if oldest { (396, 792) } else { (1160, 1472) };
        // It is as long as the structure of that name, and no longer.
        assert!(properties[end - 1] != 0x55 && properties[end] == 0x55);
        CStr::from_bytes_until_nul(&properties[at..]).unwrap().to_str().unwrap().to_owned()
    };
    for (target, xnack, full) in [
        ("gfx900", "0", "gfx900:xnack-"),
        ("gfx90a", "0", "gfx90a:sramecc+:xnack-"),
        ("gfx90a", "1", "gfx90a:sramecc+:xnack+"),
        ("gfx942", "0", "gfx942:sramecc+:xnack-"),
        ("gfx1030", "1", "gfx1030"),
        ("gfx1201", "0", "gfx1201"),
    ] {
        set("GFX", target);
        set("XNACK", xnack);
        assert_eq!([architecture(true), architecture(false)], [full; 2]);
    }
    unsafe {
        assert_eq!(hipDeviceGetPCIBusId(name.as_mut_ptr().cast(), 64, 1), 0);
        assert_eq!(CStr::from_bytes_until_nul(&name).unwrap(), c"0000:02:00.0");
        assert_eq!(hipDeviceGetAttribute(&mut value, 87, 2), 101);
        assert_eq!(hipDeviceCanAccessPeer(&mut value, 0, 1), 0);
        assert_eq!(value, 1);
        let enabled = hipDeviceEnablePeerAccess(1, 0);
        assert!(matches!(enabled, 0 | 704));
        assert_eq!(hipDeviceEnablePeerAccess(1, 0), 704);
        assert_eq!(hipDeviceEnablePeerAccess(0, 0), 101);
        assert_eq!(hipDeviceEnablePeerAccess(2, 0), 101);
    }
}

static CALLED: AtomicU32 = AtomicU32::new(0);
static REFUSED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn on_stream(stream: Handle, status: u32, data: *mut c_void) {
    assert_eq!((status, data.addr()), (0, 7));
    // The driver may not be called from here.
    REFUSED.store(unsafe { hipStreamQuery(stream) }, SeqCst);
    CALLED.fetch_add(1, SeqCst);
}

unsafe extern "C" fn on_host(_: *mut c_void) {
    let mut device = 0;
    REFUSED.store(unsafe { hipGetDevice(&mut device) }, SeqCst);
    CALLED.fetch_add(1, SeqCst);
}

#[test]
fn functions_of_the_host_may_not_call() {
    let _turn = turn();
    let stream = stream();
    CALLED.store(0, SeqCst);
    unsafe {
        assert_eq!(hipStreamAddCallback(stream, Some(on_stream), 7 as Handle, 0), 0);
        assert_eq!(hipStreamSynchronize(stream), 0);
        assert_eq!((CALLED.load(SeqCst), REFUSED.swap(0, SeqCst)), (1, 800));
        assert_eq!(hipLaunchHostFunc(stream, Some(on_host), null()), 0);
        assert_eq!(hipStreamSynchronize(stream), 0);
        assert_eq!((CALLED.load(SeqCst), REFUSED.swap(0, SeqCst)), (2, 800));
        assert_eq!(hipStreamAddCallback(stream, None, null(), 0), 1);
        assert_eq!(hipStreamAddCallback(stream, Some(on_stream), 7 as Handle, 1), 1);
        assert_eq!(hipStreamDestroy(stream), 0);
    }
}

#[test]
fn a_capture_becomes_a_graph() {
    let _turn = turn();
    let (stream, memory) = (stream(), device_memory(64));
    let (mut graph, mut executable, mut capturing) = (null(), null(), 9);
    let mut address = null();
    let local = 0_u8;
    CALLED.store(0, SeqCst);
    unsafe {
        assert_eq!(hipStreamBeginCapture(stream, 0), 0);
        assert_eq!((hipStreamIsCapturing(stream, &mut capturing), capturing), (0, 1));
        assert_eq!(hipMemsetD8Async(memory, 3, 64, stream), 0);
        assert_eq!(hipLaunchHostFunc(stream, Some(on_host), null()), 0);
        // What is asked of an address disturbs nothing.
        assert_eq!(attributes(memory).0, 0);
        attributes((&raw const local).cast_mut().cast());
        assert_eq!(range(memory).0, 0);
        let mut id = 0_u32;
        assert_eq!(hipPointerGetAttribute((&raw mut id).cast(), 7, memory), 0);
        assert_eq!(hipStreamEndCapture(stream, &mut graph), 0);
        assert_eq!(hipGraphInstantiateWithFlags(&mut executable, graph, 0), 0);
        for _ in 0..2 {
            assert_eq!(hipGraphLaunch(executable, stream), 0);
        }
        assert!(bytes_at(memory, 64, stream) == [3; 64]);
        assert_eq!(CALLED.load(SeqCst), 2);
        assert_eq!(hipGraphExecDestroy(executable), 0);
        assert_eq!(hipGraphDestroy(graph), 0);

        // What allocates ends a capture, and so does a callback.
        for spoil in 0..2 {
            assert_eq!(hipStreamBeginCapture(stream, 0), 0);
            let refused = match spoil {
                0 => hipMalloc(&mut address, 64),
                _ => hipStreamAddCallback(stream, Some(on_stream), 7 as Handle, 0),
            };
            assert_eq!(refused, 900);
            assert_eq!((hipStreamIsCapturing(stream, &mut capturing), capturing), (0, 2));
            assert_eq!(hipStreamEndCapture(stream, &mut graph), 901);
        }
        // In another mode of the thread it does not.
        let mut mode = 2;
        assert_eq!(hipStreamBeginCapture(stream, 0), 0);
        assert_eq!((hipThreadExchangeStreamCaptureMode(&mut mode), mode), (0, 0));
        assert_eq!(hipMalloc(&mut address, 64), 0);
        assert_eq!(hipThreadExchangeStreamCaptureMode(&mut mode), 0);
        assert_eq!(hipStreamEndCapture(stream, &mut graph), 0);
        assert_eq!(hipGraphDestroy(graph), 0);
        for memory in [memory, address] {
            assert_eq!(hipFree(memory), 0);
        }
        assert_eq!(hipStreamDestroy(stream), 0);
    }
}
