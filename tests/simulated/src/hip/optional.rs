//! Functions that a loader has to do without where the runtime lacks them.

use std::ffi::{c_int, c_void};

use super::stream::given;
use super::{Handle, attempt, cu, device, done, enter, pointer, write};
use crate::core::status::Status;

/// The device of a stream: for one of those without a handle, the thread's.
#[cfg_attr(not(any(feature = "missing-symbols", feature = "hip-5-2")), unsafe(no_mangle))]
pub unsafe extern "C" fn hipStreamGetDevice(stream: Handle, place: *mut c_int) -> u32 {
    enter("hipStreamGetDevice", || {
        let mut context = std::ptr::null_mut();
        done(unsafe { cu::cuStreamGetCtx(given(stream)?, &mut context) })?;
        let ordinal = device::of_context(context).ok_or(Status::INVALID_HANDLE)?;
        unsafe { write(place, ordinal) }
    })
}

/// As above, from before there was that: a number, or -1 for what is no stream. It leaves no error.
#[cfg_attr(not(feature = "missing-symbols"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipGetStreamDeviceId(stream: Handle) -> c_int {
    let mut ordinal = -1;
    attempt("hipGetStreamDeviceId", || {
        let mut context = std::ptr::null_mut();
        done(unsafe { cu::cuStreamGetCtx(given(stream)?, &mut context) })?;
        ordinal = device::of_context(context).ok_or(Status::INVALID_HANDLE)?;
        Ok(())
    });
    ordinal
}

#[cfg_attr(not(feature = "missing-symbols"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipStreamIsCapturing(stream: Handle, status: *mut u32) -> u32 {
    enter("hipStreamIsCapturing", || {
        if status.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuStreamIsCapturing(given(stream)?, status) })
    })
}

#[cfg_attr(not(feature = "missing-symbols"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipThreadExchangeStreamCaptureMode(mode: *mut u32) -> u32 {
    enter("hipThreadExchangeStreamCaptureMode", || {
        if mode.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuThreadExchangeStreamCaptureMode(mode) })
    })
}

#[cfg_attr(not(feature = "missing-symbols"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipPointerGetAttribute(place: *mut c_void, attribute: u32, address: Handle) -> u32 {
    enter("hipPointerGetAttribute", || unsafe { pointer::attribute(place, attribute, address.addr() as u64) })
}
