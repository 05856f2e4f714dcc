//! What HIP promises, asked of its own functions. There is one driver in the process, so tests take turns.

mod errors;
mod images;
mod memory;
mod pointers;
mod sharing;
mod streams;

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::settings::Settings;
use crate::core::{faults as planned, lock};
use crate::hip::*;
use crate::steer::*;

type Handle = *mut c_void;

static TURNS: Mutex<()> = Mutex::new(());

/// A turn with the driver: the first device is the thread's, and at the end nothing may be left.
struct Turn {
    _turn: MutexGuard<'static, ()>,
}

fn turn() -> Turn {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    lock().settings = Settings {
        devices: 2,
        memory: 1 << 30,
        machine_code: true,
        peers: true,
        late: false,
        register_alias: false,
        ipc_foreign: false,
        free_waits: false,
        ..Settings::from_environment()
    };
    reset_settings();
    unsafe {
        assert_eq!(hipSetDevice(0), 0);
        hipGetLastError();
    }
    Turn { _turn: turn }
}

impl Drop for Turn {
    fn drop(&mut self) {
        planned::lock().clear();
        device_arena_simulated_clear();
        set("LATE", "0");
        if !std::thread::panicking() {
            for kind in ["device_bytes", "host_bytes", "streams", "events", "modules", "graphs"] {
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

fn calls(function: &str) -> u64 {
    let function = CString::new(function).unwrap();
    unsafe { device_arena_simulated_calls(function.as_ptr()) }
}

fn set(name: &str, value: &str) {
    let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
    assert_eq!(unsafe { device_arena_simulated_set(name.as_ptr(), value.as_ptr()) }, 0);
}

/// Every version that an object can be given, whatever its symbols are of.
const VERSIONS: [i32; 9] = [
    50_221_153,
    50_600_000,
    50_731_921,
    60_000_000,
    60_443_484,
    70_226_015,
    71_100_000,
    71_460_850,
    100_060_850,
];

fn set_version(version: i32) {
    set("HIP_VERSION", &version.to_string());
}

fn device_memory(bytes: usize) -> Handle {
    let mut address = null();
    assert_eq!(unsafe { hipMalloc(&mut address, bytes) }, 0);
    address
}

fn stream() -> Handle {
    let mut stream = null();
    assert_eq!(unsafe { hipStreamCreateWithFlags(&mut stream, 1) }, 0);
    stream
}

fn event() -> Handle {
    let mut event = null();
    assert_eq!(unsafe { hipEventCreateWithFlags(&mut event, 2) }, 0);
    event
}

const ANY_DIRECTION: u32 = 4;

/// What device memory holds, by way of a copy that waits.
fn bytes_at(address: Handle, bytes: usize, stream: Handle) -> Vec<u8> {
    let mut read = vec![0_u8; bytes];
    let place = read.as_mut_ptr().cast();
    assert_eq!(unsafe { hipMemcpyAsync(place, address, bytes, ANY_DIRECTION, stream) }, 0);
    read
}

unsafe extern "C" fn sleep_a_little(_: *mut c_void) {
    std::thread::sleep(std::time::Duration::from_millis(30));
}

/// Keeps a stream busy for a little while.
fn occupy(stream: Handle) {
    assert_eq!(unsafe { hipLaunchHostFunc(stream, Some(sleep_a_little), null()) }, 0);
}

fn attributes(address: Handle) -> (u32, Attributes) {
    let mut answer =
        Attributes { kind: 77, device: 77, device_pointer: 77, host_pointer: 77, is_managed: 77, flags: 77 };
    (unsafe { hipPointerGetAttributes(&mut answer, address) }, answer)
}

fn range(address: Handle) -> (u32, usize, usize) {
    let (mut base, mut bytes) = (null(), 77);
    let status = unsafe { hipMemGetAddressRange(&mut base, &mut bytes, address) };
    (status, base.addr(), bytes)
}

fn device_of(stream: Handle) -> c_int {
    let mut device = 77;
    assert_eq!(unsafe { hipStreamGetDevice(stream, &mut device) }, 0);
    device
}

/// Runs one test in a process of its own, with a variable set.
fn in_a_child(test: &str, variable: &str, value: &str) -> std::process::Output {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--ignored", "--exact", test]).env(variable, value).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("running 1 test"), "{said}");
    output
}
