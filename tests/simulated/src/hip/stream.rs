//! Streams, and functions of the host that run on them.

use std::ffi::c_void;

use super::{Handle, cu, done, enter};
use crate::core::status::{Result, Status};

/// Null, the legacy one and the thread's own are no handles of anything.
fn is_default(stream: Handle) -> bool {
    stream.addr() <= 2
}

/// The stream that a caller gave. One that there is not is an error before 7.0, and the end of the process from then
/// on: here it is still an error, and a line that says so.
#[cfg(not(forward))]
pub(super) fn given(stream: Handle) -> Result<Handle> {
    let is_there = is_default(stream) || {
        let state = crate::core::lock();
        state.streams.get(&(stream.addr() as u64)).is_some_and(|stream| stream.named && !stream.destroyed)
    };
    if is_there {
        return Ok(stream);
    }
    if super::settings::version().is_at_least(7, 0) {
        eprintln!("simulated HIP: {stream:?} is no stream, and using it ends the process from ROCm 7.0 on");
    }
    Err(Status::INVALID_HANDLE)
}

#[cfg(forward)]
pub(super) fn given(stream: Handle) -> Result<Handle> {
    Ok(stream)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamCreateWithFlags(place: *mut Handle, flags: u32) -> u32 {
    enter("hipStreamCreateWithFlags", || {
        if place.is_null() || flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuStreamCreate(place, flags) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamDestroy(stream: Handle) -> u32 {
    enter("hipStreamDestroy", || {
        if is_default(stream) {
            return Err(Status::INVALID_HANDLE);
        }
        done(unsafe { cu::cuStreamDestroy_v2(given(stream)?) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamQuery(stream: Handle) -> u32 {
    enter("hipStreamQuery", || done(unsafe { cu::cuStreamQuery(given(stream)?) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamSynchronize(stream: Handle) -> u32 {
    enter("hipStreamSynchronize", || done(unsafe { cu::cuStreamSynchronize(given(stream)?) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamWaitEvent(stream: Handle, event: Handle, flags: u32) -> u32 {
    enter("hipStreamWaitEvent", || {
        let stream = given(stream)?;
        if event.is_null() {
            return Err(Status::INVALID_HANDLE);
        }
        // As a node of its own in a graph is not simulated.
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuStreamWaitEvent(stream, event, flags) })
    })
}

#[cfg_attr(not(feature = "hip-5-2"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipLaunchHostFunc(
    stream: Handle,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
) -> u32 {
    enter("hipLaunchHostFunc", || {
        if function.is_none() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuLaunchHostFunc(given(stream)?, function, argument) })
    })
}

type Callback = unsafe extern "C" fn(Handle, u32, *mut c_void);

struct Called {
    callback: Callback,
    stream: Handle,
    data: *mut c_void,
}

unsafe extern "C" fn call(called: *mut c_void) {
    // SAFETY: a box of `hipStreamAddCallback`, which is called once, since it is in no graph.
    let called = unsafe { Box::from_raw(called.cast::<Called>()) };
    // SAFETY: the caller said that it may be called with these.
    unsafe { (called.callback)(called.stream, 0, called.data) };
}

/// Waits for the callback before later work, as a function of the host does. What is dropped with a broken device is
/// never called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamAddCallback(
    stream: Handle,
    callback: Option<Callback>,
    data: *mut c_void,
    flags: u32,
) -> u32 {
    enter("hipStreamAddCallback", || {
        let stream = given(stream)?;
        let callback = callback.filter(|_| flags == 0).ok_or(Status::INVALID_VALUE)?;
        let mut capturing = 0;
        done(unsafe { cu::cuStreamIsCapturing(stream, &mut capturing) })?;
        if capturing != 0 {
            // Refused, and the end of the capture, as a question for the stream is.
            return done(unsafe { cu::cuStreamQuery(stream) });
        }
        let called = Box::into_raw(Box::new(Called { callback, stream, data }));
        let queued = done(unsafe { cu::cuLaunchHostFunc(stream, Some(call), called.cast()) });
        if queued.is_err() {
            // SAFETY: nobody was given it.
            drop(unsafe { Box::from_raw(called) });
        }
        queued
    })
}
