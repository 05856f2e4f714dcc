//! The last error of each thread, and the names of errors.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use super::settings::version;
use super::{attempt, device, enter_without_device, write};
use crate::core::status::Status;

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
    /// What the last call returned, whatever it was.
    static RECENT: Cell<u32> = const { Cell::new(0) };
}

/// Keeps what a call returned. Before 7.0 all of it is kept, success too; from then on failures are, until somebody
/// takes them.
pub(super) fn record(status: u32) -> u32 {
    RECENT.set(status);
    let is_failure = status != 0 && status != Status::NOT_READY.0;
    if is_failure || !version().is_at_least(7, 0) {
        LAST.set(status);
    }
    status
}

/// Answers with a kept error, which is not itself recorded.
fn answer(function: &'static str, kept: impl FnOnce() -> u32) -> u32 {
    let mut found = 0;
    let status = attempt(function, || {
        device::with_current(|| {
            found = kept();
            Ok(())
        })
    });
    if status == 0 { found } else { status }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetLastError() -> u32 {
    answer("hipGetLastError", || LAST.replace(0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipPeekAtLastError() -> u32 {
    answer("hipPeekAtLastError", || LAST.get())
}

#[cfg_attr(any(feature = "hip-6-4", feature = "hip-7-2"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipExtGetLastError() -> u32 {
    answer("hipExtGetLastError", || RECENT.replace(0))
}

/// By hip_runtime_api.h. Of numbers with two names it has the one that the driver gives.
const NAMES: &[(u32, &CStr, &CStr)] = &[
    (0, c"hipSuccess", c"no error"),
    (1, c"hipErrorInvalidValue", c"invalid argument"),
    (2, c"hipErrorOutOfMemory", c"out of memory"),
    (3, c"hipErrorNotInitialized", c"initialization error"),
    (4, c"hipErrorDeinitialized", c"driver shutting down"),
    (9, c"hipErrorInvalidConfiguration", c"invalid configuration argument"),
    (13, c"hipErrorInvalidSymbol", c"invalid device symbol"),
    (17, c"hipErrorInvalidDevicePointer", c"invalid device pointer"),
    (21, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    (35, c"hipErrorInsufficientDriver", c"driver version is insufficient for runtime version"),
    (98, c"hipErrorInvalidDeviceFunction", c"invalid device function"),
    (100, c"hipErrorNoDevice", c"no ROCm-capable device is detected"),
    (101, c"hipErrorInvalidDevice", c"invalid device ordinal"),
    (200, c"hipErrorInvalidImage", c"device kernel image is invalid"),
    (201, c"hipErrorInvalidContext", c"invalid device context"),
    (205, c"hipErrorMapFailed", c"mapping of buffer object failed"),
    (209, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device"),
    (217, c"hipErrorPeerAccessUnsupported", c"peer access is not supported between these two devices"),
    (218, c"hipErrorInvalidKernelFile", c"invalid kernel file"),
    (400, c"hipErrorInvalidHandle", c"invalid resource handle"),
    (401, c"hipErrorIllegalState", c"the operation cannot be performed in the present state"),
    (500, c"hipErrorNotFound", c"named symbol not found"),
    (600, c"hipErrorNotReady", c"device not ready"),
    (700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered"),
    (701, c"hipErrorLaunchOutOfResources", c"too many resources requested for launch"),
    (702, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated"),
    (704, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is already enabled"),
    (705, c"hipErrorPeerAccessNotEnabled", c"peer access has not been enabled"),
    (709, c"hipErrorContextIsDestroyed", c"context is destroyed"),
    (710, c"hipErrorAssert", c"device-side assert triggered"),
    (712, c"hipErrorHostMemoryAlreadyRegistered", c"part or all of the requested memory range is already mapped"),
    (713, c"hipErrorHostMemoryNotRegistered", c"pointer does not correspond to a registered memory region"),
    (719, c"hipErrorLaunchFailure", c"unspecified launch failure"),
    (801, c"hipErrorNotSupported", c"operation not supported"),
    (900, c"hipErrorStreamCaptureUnsupported", c"operation not permitted when stream is capturing"),
    (901, c"hipErrorStreamCaptureInvalidated", c"operation failed due to a previous error during capture"),
    (902, c"hipErrorStreamCaptureMerge", c"operation would result in a merge of separate capture sequences"),
    (903, c"hipErrorStreamCaptureUnmatched", c"capture was not initiated in this stream"),
    (904, c"hipErrorStreamCaptureUnjoined", c"capturing stream has unjoined work"),
    (905, c"hipErrorStreamCaptureIsolation", c"dependency created on uncaptured work in another stream"),
    (906, c"hipErrorStreamCaptureImplicit", c"operation would make the legacy stream depend on a capturing blocking stream"),
    (907, c"hipErrorCapturedEvent", c"operation not permitted on an event last recorded in a capturing stream"),
    (908, c"hipErrorStreamCaptureWrongThread", c"attempt to terminate a thread-local capture sequence from another thread"),
    (910, c"hipErrorGraphExecUpdateFailure", c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"),
    (999, c"hipErrorUnknown", c"unknown error"),
    (1052, c"hipErrorRuntimeMemory", c"runtime memory call returned error"),
    (1053, c"hipErrorRuntimeOther", c"runtime call other than memory returned error"),
];

fn described(error: u32) -> Option<&'static (u32, &'static CStr, &'static CStr)> {
    NAMES.iter().find(|(number, ..)| *number == error)
}

const UNKNOWN: (u32, &CStr, &CStr) = (999, c"hipErrorUnknown", c"unknown error");

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorName(error: u32) -> *const c_char {
    attempt("hipGetErrorName", || Ok(()));
    described(error).unwrap_or(&UNKNOWN).1.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorString(error: u32) -> *const c_char {
    attempt("hipGetErrorString", || Ok(()));
    described(error).unwrap_or(&UNKNOWN).2.as_ptr()
}

#[cfg_attr(not(feature = "hip-5-2"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipDrvGetErrorName(error: u32, name: *mut *const c_char) -> u32 {
    enter_without_device("hipDrvGetErrorName", || unsafe {
        let found = described(error).ok_or(Status::INVALID_VALUE);
        write(name, found.map_or(std::ptr::null(), |found| found.1.as_ptr()))?;
        found.map(|_| ())
    })
}
