//! Streams, and functions of the host that run on them.

use std::ffi::{c_int, c_void};

use super::{Handle, handle, number, write};
use crate::core::status::Status;
use crate::core::work::Work;
use crate::core::{enter, stream};

const NON_BLOCKING: u32 = 1;

fn create(function: &'static str, place: *mut Handle, flags: u32) -> u32 {
    enter(function, |mut state| {
        let context = state.current()?;
        if flags > NON_BLOCKING || place.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let created = state.create_stream(context, flags != NON_BLOCKING, true);
        unsafe { write(place, handle(created)) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut Handle, flags: u32) -> u32 {
    create("cuStreamCreate", stream, flags)
}

/// Priorities are taken and have no effect.
#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamCreateWithPriority(
    stream: *mut Handle,
    flags: u32,
    _priority: c_int,
) -> u32 {
    create("cuStreamCreateWithPriority", stream, flags)
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamDestroy_v2(stream: Handle) -> u32 {
    enter("cuStreamDestroy_v2", |mut state| {
        if number(stream) <= 2 {
            return Err(Status::INVALID_HANDLE);
        }
        let stream = state.stream(number(stream))?;
        state.stop_capturing(stream);
        state.destroy_stream(stream);
        Ok(())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamSynchronize(stream: Handle) -> u32 {
    enter("cuStreamSynchronize", |mut state| {
        let stream = state.stream(number(stream))?;
        state.not_capturing(stream)?;
        state.unsafe_in_captures()?;
        let (context, end) = (state.streams[&stream].context, state.end_of(stream));
        stream::wait_for(state, end).whole(context)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamQuery(stream: Handle) -> u32 {
    enter("cuStreamQuery", |mut state| {
        let stream = state.stream(number(stream))?;
        state.not_capturing(stream)?;
        state.unsafe_in_captures()?;
        let end = state.end_of(stream);
        state.query(end)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32) -> u32 {
    enter("cuStreamWaitEvent", |mut state| {
        let stream = state.stream(number(stream))?;
        if !state.events.contains_key(&number(event)) {
            return Err(Status::INVALID_HANDLE);
        }
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        state.wait_for_event(stream, number(event))
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuLaunchHostFunc(
    stream: Handle,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
) -> u32 {
    enter("cuLaunchHostFunc", |mut state| {
        let stream = state.stream(number(stream))?;
        let function = function.ok_or(Status::INVALID_VALUE)?;
        state.submit(stream, Work::Call(function, argument.expose_provenance())).map(|_| ())
    })
}
