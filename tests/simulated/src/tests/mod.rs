//! What the driver promises, asked of its own functions. There is one driver in the process, so tests take turns.

mod captures;
mod faults;
mod kernels;
mod memory;
mod order;
mod pointers;
mod sharing;

use std::ffi::{CString, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::context::pop;
use crate::core::settings::Settings;
use crate::core::{faults as planned, lock};
use crate::cuda::*;
use crate::steer::*;

static TURNS: Mutex<()> = Mutex::new(());

/// A turn with the driver: the first device's own context is current, and at the end nothing may be left.
struct Turn {
    context: Handle,
    _turn: MutexGuard<'static, ()>,
}

fn turn() -> Turn {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let defaults = Settings {
        version: 13000,
        machine_code: true,
        peers: true,
        register_alias: false,
        ipc_foreign: false,
        late: false,
        capability: (9, 0),
        ..Settings::from_environment()
    };
    lock().settings = Settings { devices: 2, memory: 1 << 30, ..defaults };
    Turn { context: open(0), _turn: turn }
}

/// Retains an ordinal's context and makes it current.
fn open(ordinal: i32) -> Handle {
    let mut context = null();
    unsafe {
        assert_eq!(cuInit(0), 0);
        assert_eq!(cuDevicePrimaryCtxRetain(&mut context, ordinal), 0);
        assert_eq!(cuCtxPushCurrent_v2(context), 0);
    }
    context
}

impl Drop for Turn {
    fn drop(&mut self) {
        planned::lock().clear();
        device_arena_simulated_clear();
        set("LATE", "0");
        while pop().is_some() {}
        for ordinal in 0..2 {
            while unsafe { cuDevicePrimaryCtxRelease_v2(ordinal) } == 0 {}
        }
        if !std::thread::panicking() {
            for kind in ["device_bytes", "host_bytes", "streams", "events", "modules", "contexts"] {
                assert_eq!(live(kind), 0, "{kind} are left");
            }
        }
    }
}

fn null() -> Handle {
    std::ptr::null_mut()
}

fn live(kind: &str) -> u64 {
    let kind = CString::new(kind).unwrap();
    unsafe { device_arena_simulated_live(kind.as_ptr()) }
}

fn set(name: &str, value: &str) {
    let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
    assert_eq!(unsafe { device_arena_simulated_set(name.as_ptr(), value.as_ptr()) }, 0);
}

fn device_memory(bytes: usize) -> u64 {
    let mut address = 0;
    assert_eq!(unsafe { cuMemAlloc_v2(&mut address, bytes) }, 0);
    address
}

fn pinned(bytes: usize) -> *mut u8 {
    let mut address: *mut c_void = null();
    assert_eq!(unsafe { cuMemHostAlloc(&mut address, bytes, 0) }, 0);
    address.cast()
}

fn stream(flags: u32) -> Handle {
    let mut stream = null();
    assert_eq!(unsafe { cuStreamCreate(&mut stream, flags) }, 0);
    stream
}

fn event() -> Handle {
    let mut event = null();
    assert_eq!(unsafe { cuEventCreate(&mut event, 2) }, 0);
    event
}

/// What device memory holds, by way of a copy that waits.
fn bytes_at(address: u64, bytes: usize, stream: Handle) -> Vec<u8> {
    let mut read = vec![0; bytes];
    assert_eq!(unsafe { cuMemcpyDtoHAsync_v2(read.as_mut_ptr().cast(), address, bytes, stream) }, 0);
    read
}

/// Whether the process may read a byte.
fn is_readable(address: u64) -> bool {
    let mut ends = [0; 2];
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let written = libc::write(ends[1], address as *const c_void, 1);
        libc::close(ends[0]);
        libc::close(ends[1]);
        written == 1
    }
}

unsafe extern "C" fn sleep_a_little(_: *mut c_void) {
    std::thread::sleep(std::time::Duration::from_millis(30));
}

/// Keeps a stream busy for a little while.
fn occupy(stream: Handle) {
    assert_eq!(unsafe { cuLaunchHostFunc(stream, Some(sleep_a_little), null()) }, 0);
}
