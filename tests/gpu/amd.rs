//! What AMD's runtime alone does, asked of it beside the crate.

use std::ffi::{c_int, c_void};

use device_arena::backend::AnyBackend;

use crate::driver::{self, Handle, ok, symbol};
use crate::simulated::simulated;
use crate::turn::{Turn, turn};
use crate::vendor;

/// A test's turn with AMD's runtime, and its version.
pub(crate) struct Amd {
    pub(crate) turn: Turn,
    /// The major and the minor number.
    pub(crate) version: (u32, u32),
}

/// None on another vendor's driver; the skip is printed.
pub(crate) fn amd() -> Option<Amd> {
    if vendor::is_nvidia() {
        println!("skipped: AMD's alone");
        return None;
    }
    let turn = turn()?;
    let AnyBackend::Rocm(rocm) = turn.backend() else { panic!("another backend") };
    let number = rocm.version();
    Some(Amd { turn, version: (number / 10_000_000, number / 100_000 % 100) })
}

impl Amd {
    /// Whether this is the runtime of that version or a later one.
    pub(crate) fn is_since(&self, major: u32, minor: u32) -> bool {
        self.version >= (major, minor)
    }
}

/// What only the simulated runtime does, by a function that it has for it; the skip is printed.
fn steer(name: &str, address: *const u8, bytes: usize) -> bool {
    if simulated().is_none() {
        println!("skipped: needs the simulated driver");
        return false;
    }
    type Steer = unsafe extern "C" fn(*const c_void, usize);
    // SAFETY: the type is that of the simulated runtime's README.
    let function = unsafe { symbol::<Steer>(name) }.expect("the simulated runtime's own function");
    // SAFETY: nothing is read there.
    unsafe { function(address.cast(), bytes) };
    true
}

/// Lets the runtime take a range for a variable that it manages.
pub(crate) fn declare_managed(bytes: &[u8]) -> bool {
    steer("device_arena_simulated_declare_managed", bytes.as_ptr(), bytes.len())
}

/// Lets the runtime take a range for memory that another user of the hardware has made.
pub(crate) fn declare_foreign(bytes: &[u8]) -> bool {
    steer("device_arena_simulated_declare_foreign", bytes.as_ptr(), bytes.len())
}

/// Forgets both.
pub(crate) fn forget(bytes: &[u8]) {
    steer("device_arena_simulated_declare_managed", bytes.as_ptr(), 0);
    steer("device_arena_simulated_declare_foreign", bytes.as_ptr(), 0);
}

fn function<F: Copy>(name: &str) -> F {
    // SAFETY: the callers name functions of these types.
    unsafe { symbol(name) }.unwrap_or_else(|| panic!("no {name}"))
}

/// The thread's last error, which stays.
pub(crate) fn peek() -> u32 {
    // SAFETY: it takes nothing.
    unsafe { function::<unsafe extern "C" fn() -> u32>("hipPeekAtLastError")() }
}

/// The thread's last error, which is forgotten.
pub(crate) fn take() -> u32 {
    // SAFETY: it takes nothing.
    unsafe { function::<unsafe extern "C" fn() -> u32>("hipGetLastError")() }
}

/// Leaves an error on the thread, and answers which.
pub(crate) fn leave_an_error() -> u32 {
    // SAFETY: any number is taken.
    let code = unsafe { function::<unsafe extern "C" fn(c_int) -> u32>("hipSetDevice")(99) };
    assert_ne!(code, 0);
    assert_eq!(peek(), code);
    code
}

/// The address by which the device knows registered pages.
pub(crate) fn device_address(pages: *const u8) -> *const u8 {
    type Get = unsafe extern "C" fn(*mut Handle, Handle, u32) -> u32;
    let mut address = std::ptr::null_mut();
    // SAFETY: the runtime writes one address.
    ok(unsafe { function::<Get>("hipHostGetDevicePointer")(&raw mut address, pages.cast_mut().cast(), 0) });
    address.cast()
}

/// `hipIpcMemHandle_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct IpcHandle([u8; 64]);

/// Opens memory as another process's.
pub(crate) fn open_from_another_process(amd: &Amd, memory: *const u8) -> Handle {
    // The one flag that there is has had another number up to 5.
    let lazy_peer_access = u32::from(amd.is_since(6, 0));
    let (mut handle, mut opened) = (IpcHandle([0; 64]), std::ptr::null_mut());
    type Get = unsafe extern "C" fn(*mut IpcHandle, *const c_void) -> u32;
    // SAFETY: the runtime writes one handle.
    ok(unsafe { function::<Get>("hipIpcGetMemHandle")(&raw mut handle, memory.cast()) });
    type Open = unsafe extern "C" fn(*mut Handle, IpcHandle, u32) -> u32;
    // SAFETY: the runtime writes one address.
    ok(unsafe { function::<Open>("hipIpcOpenMemHandle")(&raw mut opened, handle, lazy_peer_access) });
    opened
}

pub(crate) fn close_from_another_process(opened: Handle) {
    // SAFETY: it was opened before.
    ok(unsafe { function::<unsafe extern "C" fn(Handle) -> u32>("hipIpcCloseMemHandle")(opened) });
}

/// Makes a device current, and the first one again when it is dropped.
pub(crate) struct Current(());

impl Current {
    pub(crate) fn device(ordinal: i32) -> Self {
        // SAFETY: any number is taken.
        ok(unsafe { driver::set_device(ordinal) });
        Self(())
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { driver::set_device(0) };
    }
}
