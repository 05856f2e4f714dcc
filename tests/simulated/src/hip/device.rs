//! The runtime itself, its devices, and which of them is a thread's.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::settings::version;
use super::{Handle, cu, done, enter, enter_without_device, write};
use crate::core::status::{Result, Status};

thread_local! {
    static ORDINAL: Cell<i32> = const { Cell::new(0) };
}

/// How many devices there are, once the driver has said so.
static DEVICES: AtomicI32 = AtomicI32::new(0);

/// Primary contexts that are retained, by their ordinals.
static PRIMARIES: Mutex<Vec<Option<usize>>> = Mutex::new(Vec::new());

/// How many devices there are. The first call is the driver's first as well.
fn devices() -> Result<i32> {
    let known = DEVICES.load(Relaxed);
    if known > 0 {
        return Ok(known);
    }
    let mut found = 0;
    // SAFETY: a place of our own.
    done(unsafe { cu::cuInit(0) }).and_then(|()| done(unsafe { cu::cuDeviceGetCount(&mut found) }))?;
    if found <= 0 {
        return Err(Status::NO_DEVICE);
    }
    DEVICES.store(found, Relaxed);
    Ok(found)
}

/// An ordinal that there is. Where there are no devices at all, none is.
pub(super) fn valid(ordinal: c_int) -> Result<c_int> {
    match devices() {
        Ok(count) if (0..count).contains(&ordinal) => Ok(ordinal),
        Ok(_) | Err(Status::NO_DEVICE) => Err(Status::INVALID_DEVICE),
        Err(status) => Err(status),
    }
}

/// The thread's device.
pub(super) fn current() -> c_int {
    ORDINAL.get()
}

/// The primary context of a device.
pub(super) fn context(ordinal: c_int) -> Result<Handle> {
    let index = valid(ordinal)? as usize;
    let mut primaries = PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner);
    if primaries.len() <= index {
        primaries.resize(index + 1, None);
    }
    if let Some(context) = primaries[index] {
        return Ok(std::ptr::with_exposed_provenance_mut(context));
    }
    let mut context = std::ptr::null_mut();
    // SAFETY: a place of our own.
    done(unsafe { cu::cuDevicePrimaryCtxRetain(&mut context, ordinal) })?;
    primaries[index] = Some(context.expose_provenance());
    Ok(context)
}

/// The device whose primary context this is.
pub(super) fn of_context(context: Handle) -> Option<c_int> {
    let primaries = PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner);
    primaries.iter().position(|primary| *primary == Some(context.addr())).map(|index| index as c_int)
}

/// Takes the current context away when a call ends, however it does.
struct Pop;

impl Drop for Pop {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: a place of our own; what is popped was pushed by the same call.
        unsafe { cu::cuCtxPopCurrent_v2(&mut popped) };
    }
}

/// Runs a call with the context of the thread's device current.
pub(super) fn with_current(body: impl FnOnce() -> Result<()>) -> Result<()> {
    with_device(current(), body)
}

pub(super) fn with_device(ordinal: c_int, body: impl FnOnce() -> Result<()>) -> Result<()> {
    let context = context(ordinal)?;
    // SAFETY: a context that is never released.
    done(unsafe { cu::cuCtxPushCurrent_v2(context) })?;
    let _pop = Pop;
    #[cfg(not(forward))]
    if super::settings::lock().error_is_all {
        crate::core::lock().whole(context.addr() as u64)?;
    }
    body()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipInit(flags: u32) -> u32 {
    enter("hipInit", || if flags == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipRuntimeGetVersion(place: *mut c_int) -> u32 {
    enter_without_device("hipRuntimeGetVersion", || unsafe { write(place, version().0) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDriverGetVersion(place: *mut c_int) -> u32 {
    enter_without_device("hipDriverGetVersion", || unsafe { write(place, version().0) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDeviceCount(place: *mut c_int) -> u32 {
    enter_without_device("hipGetDeviceCount", || {
        let count = devices();
        unsafe { write(place, *count.as_ref().unwrap_or(&0)) }?;
        count.map(|_| ())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipSetDevice(ordinal: c_int) -> u32 {
    enter_without_device("hipSetDevice", || {
        ORDINAL.set(valid(ordinal)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDevice(place: *mut c_int) -> u32 {
    enter_without_device("hipGetDevice", || unsafe { write(place, valid(current())?) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGet(place: *mut c_int, ordinal: c_int) -> u32 {
    enter_without_device("hipDeviceGet", || unsafe { write(place, valid(ordinal)?) })
}

/// Writes a text and its last zero byte where there is room for so many bytes.
pub(super) unsafe fn write_text(place: *mut c_char, room: c_int, text: &str) -> Result<()> {
    if place.is_null() || room <= 0 {
        return Err(Status::INVALID_VALUE);
    }
    let kept = text.len().min(room as usize - 1);
    // SAFETY: the caller has room for so many bytes.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), kept);
        place.add(kept).write(0);
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetName(place: *mut c_char, room: c_int, ordinal: c_int) -> u32 {
    enter("hipDeviceGetName", || {
        let ordinal = valid(ordinal)?;
        if place.is_null() || room <= 0 {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuDeviceGetName(place, room, ordinal) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceTotalMem(bytes: *mut usize, ordinal: c_int) -> u32 {
    enter("hipDeviceTotalMem", || {
        let ordinal = valid(ordinal)?;
        if bytes.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuDeviceTotalMem_v2(bytes, ordinal) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetPCIBusId(place: *mut c_char, room: c_int, ordinal: c_int) -> u32 {
    enter("hipDeviceGetPCIBusId", || {
        let ordinal = valid(ordinal)?;
        let mut numbers = [0; 3];
        // Domain, bus and device, by cuda.h.
        for (number, attribute) in numbers.iter_mut().zip([50, 33, 34]) {
            done(unsafe { cu::cuDeviceGetAttribute(number, attribute, ordinal) })?;
        }
        let [domain, bus, device] = numbers;
        unsafe { write_text(place, room, &format!("{domain:04x}:{bus:02x}:{device:02x}.0")) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceSynchronize() -> u32 {
    enter("hipDeviceSynchronize", || done(unsafe { cu::cuCtxSynchronize() }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceCanAccessPeer(can: *mut c_int, ordinal: c_int, peer: c_int) -> u32 {
    enter("hipDeviceCanAccessPeer", || {
        let (ordinal, peer) = (valid(ordinal)?, valid(peer)?);
        if can.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuDeviceCanAccessPeer(can, ordinal, peer) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceEnablePeerAccess(peer: c_int, flags: u32) -> u32 {
    enter("hipDeviceEnablePeerAccess", || {
        let peer = context(peer)?;
        done(unsafe { cu::cuCtxEnablePeerAccess(peer, flags) })
    })
}
