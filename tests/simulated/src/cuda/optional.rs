//! Functions that a loader has to do without where the driver lacks them.

use super::module::bring;
use super::{Handle, handle, number, write};
use crate::core::capture::{self, Mode};
use crate::core::enter;
use crate::core::status::Status;

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamGetCtx(stream: Handle, context: *mut Handle) -> u32 {
    enter("cuStreamGetCtx", |mut state| {
        let stream = state.stream(number(stream))?;
        unsafe { write(context, handle(state.streams[&stream].context)) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuFuncLoad(function: Handle) -> u32 {
    enter("cuFuncLoad", |state| bring(state, number(function)).map(drop))
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamIsCapturing(stream: Handle, status: *mut u32) -> u32 {
    enter("cuStreamIsCapturing", |mut state| {
        let stream = state.stream(number(stream))?;
        unsafe { write(status, state.capture_status(stream)?) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) -> u32 {
    enter("cuThreadExchangeStreamCaptureMode", |_| {
        if mode.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the caller's, and not null.
        let wanted = Mode::from_number(unsafe { mode.read() })?;
        unsafe { write(mode, capture::exchange(wanted) as u32) }
    })
}
