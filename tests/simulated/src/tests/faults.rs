//! Failures on purpose, counters, and a device that is lost.

use super::*;

fn calls(function: &str) -> u64 {
    let function = CString::new(function).unwrap();
    unsafe { device_arena_simulated_calls(function.as_ptr()) }
}

#[test]
fn the_nth_call_fails() {
    let _turn = turn();
    let function = c"cuMemAlloc_v2";
    let before = calls("cuMemAlloc_v2");
    unsafe { device_arena_simulated_fail(function.as_ptr(), 1, 2, 2) };
    let mut address = 0;
    let mut allocate = || unsafe {
        let status = cuMemAlloc_v2(&mut address, 64);
        if status == 0 {
            assert_eq!(cuMemFree_v2(address), 0);
        }
        status
    };
    assert_eq!([allocate(), allocate(), allocate(), allocate()], [0, 2, 2, 0]);
    unsafe { device_arena_simulated_fail(function.as_ptr(), 0, 0, 46) };
    assert_eq!([allocate(), allocate(), allocate()], [46; 3]);
    device_arena_simulated_clear();
    assert_eq!(allocate(), 0);
    assert_eq!(calls("cuMemAlloc_v2") - before, 8);
    assert_eq!(calls("no such function"), 0);
    let all = unsafe { device_arena_simulated_calls(std::ptr::null()) };
    unsafe { assert_eq!(cuStreamSynchronize(null()), 0) };
    assert_eq!(unsafe { device_arena_simulated_calls(std::ptr::null()) }, all + 1);
}

#[test]
fn a_lost_device_stays_lost() {
    let _turn = turn();
    let (stream, memory) = (stream(1), device_memory(64));
    unsafe extern "C" fn must_not_run(_: *mut c_void) {
        std::process::abort();
    }
    occupy(stream);
    unsafe {
        assert_eq!(cuLaunchHostFunc(stream, Some(must_not_run), null()), 0);
        device_arena_simulated_lose_device(0);
        let mut address = 0;
        assert_eq!(cuStreamSynchronize(stream), 719);
        assert_eq!(cuMemAlloc_v2(&mut address, 64), 719);
        assert_eq!(cuMemFree_v2(memory), 719);
        assert_eq!(cuCtxSynchronize(), 719);
        let mut kind = 0_u32;
        let mut place = (&raw mut kind).cast();
        // As measured on a device whose context is broken: these answer all the same.
        assert_eq!((cuPointerGetAttributes(1, &2, &mut place, memory), kind), (0, 2));
        let mut ordinal = 9;
        assert_eq!((cuCtxGetDevice(&mut ordinal), ordinal), (0, 0));
        open(1);
        assert_eq!(cuCtxSynchronize(), 0);
    }
    // What was queued is dropped before the device is found again.
    while lock().streams.values().any(|stream| stream.completed < stream.queued) {
        std::thread::yield_now();
    }
}

#[test]
fn settings_are_read_strictly() {
    let mut settings = Settings::from_environment();
    assert!(settings.set("CAPABILITY", "8.6") && settings.capability == (8, 6));
    assert!(settings.set("LATE_MS", "0") && settings.patience.is_none());
    for (name, value) in
        [("LATE", "yes"), ("DEVICES", ""), ("VERSION", "13.0"), ("LATER", "1"), ("CAPABILITY", "9")]
    {
        assert!(!settings.set(name, value), "{name}={value}");
    }
}

#[test]
fn errors_have_names() {
    let mut text = std::ptr::null();
    for (status, name) in
        [(0, c"CUDA_SUCCESS"), (2, c"CUDA_ERROR_OUT_OF_MEMORY"), (719, c"CUDA_ERROR_LAUNCH_FAILED")]
    {
        unsafe {
            assert_eq!(cuGetErrorName(status, &mut text), 0);
            assert_eq!(std::ffi::CStr::from_ptr(text), name);
            assert_eq!(cuGetErrorString(status, &mut text), 0);
        }
    }
    assert_eq!(unsafe { cuGetErrorName(12345, &mut text) }, 1);
}
