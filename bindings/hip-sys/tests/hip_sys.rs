//! HIP's streams, buffers and device pointers. The runtime is linked, and may be one over host memory, or have no device.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use device_arena::backend::{Rocm, Vendor};
use device_arena::{Arena, Error, Executor, View};
use device_arena_hip_sys::{HipCall, HipExecutor, HipGuard, HipOutput, adopt};
use hip_sys::hiprt::*;

static TURNS: Mutex<()> = Mutex::new(());

/// Whether there is a device, one test at a time; none where there is not, which is printed, or a failure where
/// `DEVICE_ARENA_REQUIRE` names it.
fn turn() -> Option<MutexGuard<'static, ()>> {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    match Rocm::load() {
        Ok(_) => Some(turn),
        Err(error) => {
            let required = std::env::var("DEVICE_ARENA_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "rocm"), "rocm is required: {error}");
            println!("backend skipped: rocm ({error})");
            None
        }
    }
}

#[track_caller]
fn ok(code: hipError_t) {
    assert_eq!(code, hipError_t::hipSuccess);
}

/// A stream of HIP's, destroyed by whoever drops it last.
struct Owned(hipStream_t);

// SAFETY: a stream belongs to no thread.
unsafe impl Send for Owned {}
// SAFETY: as above; HIP takes work for one stream from several threads.
unsafe impl Sync for Owned {}

impl Owned {
    fn new() -> Arc<Self> {
        let mut stream = null_mut();
        // SAFETY: the runtime writes one handle.
        ok(unsafe { hipStreamCreateWithFlags(&raw mut stream, hipStreamNonBlocking) });
        Arc::new(Self(stream))
    }

    fn executor(self: &Arc<Self>) -> Executor {
        // SAFETY: the stream lives as long as its owner.
        unsafe { adopt(self.0, Box::new(Arc::clone(self))) }.unwrap()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: nobody else has the stream any more.
        ok(unsafe { hipStreamDestroy(self.0) });
    }
}

/// A buffer of HIP's.
struct Buffer(hipDeviceptr_t);

impl Buffer {
    fn of(bytes: &[u8]) -> Self {
        let (mut address, from) = (null_mut(), bytes.as_ptr().cast());
        // SAFETY: the runtime writes one address, of as many bytes as are copied there, and the copy is waited for.
        unsafe {
            ok(hipMalloc(&raw mut address, bytes.len()));
            ok(hipMemcpyAsync(address, from, bytes.len(), hipMemcpyKind::hipMemcpyDefault, null_mut()));
            ok(hipStreamSynchronize(null_mut()));
        }
        Self(address)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the tests have waited for what uses it.
        ok(unsafe { hipFree(self.0) });
    }
}

/// What is at an address of the device's, in a stream's order.
///
/// # Safety
///
/// There are as many bytes.
unsafe fn bytes_at(address: *const u8, bytes: usize, stream: hipStream_t) -> Vec<u8> {
    let mut copy = vec![0u8; bytes];
    // SAFETY: both ends are that long, and the stream is waited for.
    unsafe {
        ok(hipMemcpyAsync(
            copy.as_mut_ptr().cast(),
            address.cast(),
            bytes,
            hipMemcpyKind::hipMemcpyDefault,
            stream,
        ));
        ok(hipStreamSynchronize(stream));
    }
    copy
}

fn counting(len: u32) -> Vec<u32> {
    (0..len).collect()
}

/// A view of `0, 1, 2` and so on.
fn counted(executor: &Executor, arena: &Arena, len: u32) -> View<u32> {
    let call = executor.begin(arena).unwrap();
    let view = call.output_from_slice(&counting(len)).unwrap().publish();
    call.finish().unwrap();
    view
}

/// Without a device this is all that can be said, and it has to be said.
#[test]
fn the_crate_and_hip_sys_agree_on_whether_there_is_a_device() {
    let mut count: c_int = -1;
    // SAFETY: the runtime writes one number.
    let code = unsafe { hipGetDeviceCount(&raw mut count) };
    println!("hipGetDeviceCount: {code:?}, {count}");
    if code == hipError_t::hipSuccess && count > 0 {
        assert!(Rocm::load().is_ok());
        return;
    }
    let owner = Arc::new(());
    // SAFETY: no runtime with a device is there to use the handle.
    let refused = unsafe { adopt(null_mut(), Box::new(Arc::clone(&owner))) }.unwrap_err();
    assert!(matches!(refused.error, Error::Unavailable { vendor: Vendor::Rocm, .. }), "{}", refused.error);
    assert_eq!(Arc::strong_count(&owner), 2, "the owner comes back");
    assert!(Rocm::if_present().unwrap().is_none());
    println!("{}", refused.error);
}

#[test]
fn the_runtime_that_is_linked_is_the_one_that_the_crate_finds() {
    use libloading::os::unix::{Library, RTLD_NOW};
    let Some(_turn) = turn() else { return };
    type Query = unsafe extern "C" fn(hipStream_t) -> hipError_t;
    // SAFETY: the runtime is open already; its function is compared, not called.
    let found = unsafe { Library::open(Some(Rocm::load().unwrap().library()), RTLD_NOW) }.unwrap();
    // SAFETY: as above.
    let (found, linked) = unsafe {
        (
            *found.get::<Query>(b"hipStreamQuery\0").unwrap(),
            *Library::this().get::<Query>(b"hipStreamQuery\0").unwrap(),
        )
    };
    assert_eq!(found as usize, linked as usize);
}

#[test]
fn a_stream_of_hips_is_an_executor_and_lives_as_long() {
    let Some(_turn) = turn() else { return };
    let stream = Owned::new();
    let executor = stream.executor();
    assert_eq!(executor.hip_stream().unwrap(), stream.0);
    assert_eq!(executor, stream.executor());
    let arena = Arena::new(&executor);
    for round in 1..4 {
        assert_eq!(counted(&executor, &arena, 9000 * round).to_vec().unwrap(), counting(9000 * round));
    }
    drop(executor);
    assert!(Arc::strong_count(&stream) > 1, "the arena keeps it");
    drop(arena);
    assert_eq!(Arc::strong_count(&stream), 1);
}

#[test]
fn a_default_stream_is_refused_and_the_owner_comes_back() {
    let Some(_turn) = turn() else { return };
    let owner = Arc::new(());
    // SAFETY: handles of default streams are refused, not used.
    let refused = unsafe { adopt(null_mut(), Box::new(Arc::clone(&owner))) }.unwrap_err();
    assert!(
        matches!(refused.error, Error::WrongVendor { operation: "adopt_stream", .. }),
        "{}",
        refused.error
    );
    drop(refused);
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
fn an_executor_of_the_host_has_no_stream_of_hips() {
    let refused = Executor::host().unwrap().hip_stream();
    assert!(matches!(refused, Err(Error::WrongVendor { operation: "hip_stream", .. })), "{refused:?}");
}

#[test]
fn a_buffer_of_hips_is_a_tape() {
    let Some(_turn) = turn() else { return };
    let stream = Owned::new();
    let executor = stream.executor();
    let buffer = Buffer::of(b"onetwothree");
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    // SAFETY: the buffer has 11 bytes, and is freed when the stream has passed.
    let tape = unsafe { call.stage_hip(buffer.0, 11, &[0u32, 3, 6, 11]) }.unwrap();
    assert_eq!(tape.bytes_ptr().addr(), buffer.0.addr(), "used where it is");
    // SAFETY: the tape has 11 bytes and 4 offsets.
    let (bytes, offsets) = unsafe {
        (bytes_at(tape.bytes_ptr(), 11, stream.0), bytes_at(tape.offsets_ptr().cast(), 32, stream.0))
    };
    assert_eq!(bytes, b"onetwothree");
    let offsets: Vec<u64> =
        offsets.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    assert_eq!(offsets, [0, 3, 6, 11]);
    // SAFETY: nothing is staged: the offsets are refused, and so are bytes past the buffer's end.
    let refused = unsafe { call.stage_hip(buffer.0, 11, &[0u32, 12]) }.map(drop);
    assert!(matches!(refused, Err(Error::Tape { index: 1, .. })), "{refused:?}");
    // SAFETY: as above.
    let refused = unsafe { call.stage_hip(buffer.0, 1 << 30, &[0u32, 3]) }.map(drop);
    assert!(matches!(refused, Err(Error::OutOfAllocation { .. })), "{refused:?}");
    call.finish().unwrap();
    let host = Arena::host();
    let call = host.begin().unwrap();
    // SAFETY: as above.
    let refused = unsafe { call.stage_hip(buffer.0, 11, &[0u32, 3]) }.map(drop);
    assert!(matches!(refused, Err(Error::WrongVendor { operation: "stage_hip", .. })), "{refused:?}");
    executor.synchronize().unwrap();
}

#[test]
fn views_and_outputs_are_device_pointers_of_hips() {
    let Some(_turn) = turn() else { return };
    let (stream, other) = (Owned::new(), Owned::new());
    let (executor, reader) = (stream.executor(), other.executor());
    let (first, second) = (Arena::new(&executor), Arena::new(&reader));
    for len in [1000u32, 3000, 500] {
        let view = counted(&executor, &first, len);
        let guard = view.read_on(&reader).unwrap();
        let call = reader.begin(&second).unwrap();
        let mut output = call.output::<u32>(len as usize).unwrap();
        let (to, bytes) = (output.hip_ptr().unwrap(), len as usize * 4);
        assert_eq!(guard.hip_ptr().addr(), guard.device_ptr().addr());
        // SAFETY: both ends are as long, and the reader's stream orders the copy.
        ok(unsafe { hipMemcpyAsync(to, guard.hip_ptr(), bytes, hipMemcpyKind::hipMemcpyDefault, other.0) });
        drop(guard);
        let copy = output.publish();
        call.finish().unwrap();
        assert_eq!(copy.to_vec().unwrap(), counting(len));
    }
    let host = Arena::host();
    let call = host.begin().unwrap();
    let refused = call.output::<u32>(4).unwrap().hip_ptr();
    assert!(matches!(refused, Err(Error::HostMemory { .. })), "{refused:?}");
}
