//! Errors: which stay, what they are called, failures on purpose, and a device that is lost.

use super::*;

#[test]
fn what_is_kept_of_a_call() {
    let _turn = turn();
    let mut count = 0;
    for version in VERSIONS {
        set_version(version);
        let renewed = version >= 70_000_000;
        unsafe {
            hipGetLastError();
            assert_eq!(hipSetDevice(9), 101);
            assert_eq!([hipPeekAtLastError(), hipPeekAtLastError()], [101; 2]);
            // Success takes a failure away, before 7.0.
            assert_eq!(hipGetDeviceCount(&mut count), 0);
            let kept = if renewed { 101 } else { 0 };
            assert_eq!(
                [hipPeekAtLastError(), hipGetLastError(), hipGetLastError()],
                [kept, kept, 0],
                "{version}"
            );

            let (stream, event) = (stream(), event());
            occupy(stream);
            assert_eq!(hipEventRecord(event, stream), 0);
            assert_eq!(hipEventQuery(event), 600);
            // Not ready is a failure like others, before 7.0.
            assert_eq!(hipGetLastError(), if renewed { 0 } else { 600 });
            assert_eq!(hipStreamQuery(stream), 600);
            assert_eq!(hipExtGetLastError(), 600);
            assert_eq!(hipEventSynchronize(event), 0);
            // Each thread has its own.
            assert_eq!(hipSetDevice(9), 101);
            std::thread::spawn(|| assert_eq!(hipGetLastError(), 0)).join().unwrap();
            assert_eq!(hipGetLastError(), 101);
            assert_eq!(hipEventDestroy(event), 0);
            assert_eq!(hipEventDestroy(event), 709);
            assert_eq!(hipStreamDestroy(stream), 0);
            hipGetLastError();
        }
    }
}

#[test]
fn errors_have_names() {
    let _turn = turn();
    unsafe fn text<'a>(text: *const std::ffi::c_char) -> &'a CStr {
        unsafe { CStr::from_ptr(text) }
    }
    let mut name = std::ptr::null();
    unsafe {
        hipSetDevice(9);
        for (error, expected) in [
            (0, c"hipSuccess"),
            (1, c"hipErrorInvalidValue"),
            (2, c"hipErrorOutOfMemory"),
            (600, c"hipErrorNotReady"),
            (719, c"hipErrorLaunchFailure"),
            (900, c"hipErrorStreamCaptureUnsupported"),
        ] {
            assert_eq!(text(hipGetErrorName(error)), expected);
        }
        // None of that was a call that leaves an error.
        assert_eq!(hipGetLastError(), 101);
        assert_eq!(text(hipGetErrorName(12345)), c"hipErrorUnknown");
        assert_eq!((hipDrvGetErrorName(1, &mut name), text(name)), (0, c"hipErrorInvalidValue"));
        assert_eq!((hipDrvGetErrorName(12345, &mut name), text(name)), (1, c"hipErrorUnknown"));
        set_version(50_221_153);
        assert_eq!(text(hipGetErrorString(1)), c"hipErrorInvalidValue");
        set_version(50_731_921);
        assert_eq!(text(hipGetErrorString(1)), c"invalid argument");
    }
}

#[test]
fn the_nth_call_fails() {
    let _turn = turn();
    let before = calls("hipMalloc");
    unsafe { device_arena_simulated_fail(c"hipMalloc".as_ptr(), 1, 2, 2) };
    let mut address = null();
    let mut allocate = || unsafe {
        let status = hipMalloc(&mut address, 64);
        if status == 0 {
            assert_eq!(hipFree(address), 0);
        } else {
            assert_eq!(hipGetLastError(), status);
        }
        status
    };
    assert_eq!([allocate(), allocate(), allocate(), allocate()], [0, 2, 2, 0]);
    assert_eq!(calls("hipMalloc") - before, 4);
    // What it is made of is not counted.
    assert_eq!(calls("cuMemAlloc_v2"), 0);
    let all = unsafe { device_arena_simulated_calls(std::ptr::null()) };
    unsafe { assert_eq!(hipStreamSynchronize(null()), 0) };
    assert_eq!(unsafe { device_arena_simulated_calls(std::ptr::null()) }, all + 1);
}

#[test]
fn a_lost_device_stays_lost() {
    let _turn = turn();
    let (stream, memory) = (stream(), device_memory(64));
    unsafe extern "C" fn must_not_run(_: *mut c_void) {
        std::process::abort();
    }
    occupy(stream);
    let mut address = null();
    unsafe {
        assert_eq!(hipLaunchHostFunc(stream, Some(must_not_run), null()), 0);
        device_arena_simulated_lose_device(0);
        assert_eq!(hipStreamSynchronize(stream), 719);
        assert_eq!(hipMalloc(&mut address, 64), 719);
        assert_eq!(hipDeviceSynchronize(), 719);
        // What only asks is answered, but by the newest runtimes.
        for (all, status) in [("0", 0), ("1", 719)] {
            set("ERROR_IS_ALL", all);
            assert_eq!([attributes(memory).0, range(memory).0], [status; 2], "{all}");
        }
        assert_eq!(hipSetDevice(1), 0);
        assert_eq!(hipDeviceSynchronize(), 0);
        assert_eq!(hipSetDevice(0), 0);
    }
    while lock().streams.values().any(|stream| stream.completed < stream.queued) {
        std::thread::yield_now();
    }
    device_arena_simulated_clear();
    unsafe {
        assert_eq!(hipFree(memory), 0);
        assert_eq!(hipStreamDestroy(stream), 0);
    }
}

#[test]
fn settings_are_read_strictly() {
    let _turn = turn();
    let refused = |name: &str, value: &str| {
        let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
        unsafe { device_arena_simulated_set(name.as_ptr(), value.as_ptr()) == 1 }
    };
    for (name, value) in [
        ("HIP_VERSION", "6.4"),
        ("HIP_VERSION", "13000"),
        ("GFX", "gfx90"),
        ("GFX", "gfx11-generic"),
        ("XNACK", "yes"),
        ("REGISTER_ALIAS", "on"),
    ] {
        assert!(refused(name, value), "{name}={value}");
    }
}
