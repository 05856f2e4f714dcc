//! The last error of each thread, and the names of errors.

use std::cell::Cell;
use std::ffi::c_char;

use super::settings::version;
use super::{attempt, device, enter_without_device, names, write};
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

/// What `hipGetLastError` was before 7.0.
#[cfg_attr(any(feature = "hip-6-4", feature = "hip-7-2"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipExtGetLastError() -> u32 {
    let kept = if version().is_at_least(7, 0) { &RECENT } else { &LAST };
    answer("hipExtGetLastError", || kept.replace(0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorName(error: u32) -> *const c_char {
    attempt("hipGetErrorName", || Ok(()));
    names::find(error).unwrap_or(&names::UNKNOWN).name.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorString(error: u32) -> *const c_char {
    attempt("hipGetErrorString", || Ok(()));
    names::find(error).unwrap_or(&names::UNKNOWN).text(version()).as_ptr()
}

/// Of an error that there is not it gives a name too, and fails.
#[cfg_attr(not(feature = "hip-5-2"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipDrvGetErrorName(error: u32, name: *mut *const c_char) -> u32 {
    enter_without_device("hipDrvGetErrorName", || {
        let found = names::find(error);
        unsafe { write(name, found.unwrap_or(&names::UNKNOWN).name.as_ptr()) }?;
        found.map(|_| ()).ok_or(Status::INVALID_VALUE)
    })
}
