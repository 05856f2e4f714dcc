//! Events.

use super::{Handle, handle, number, write};
use crate::core::status::{Result, Status};
use crate::core::stream::{Event, Mark, wait_for};
use crate::core::{State, enter};

/// The event that a handle means, which has to be there and of a whole context.
fn event(state: &State, event: Handle) -> Result<u64> {
    let found = state.events.get(&number(event)).ok_or(Status::INVALID_HANDLE)?;
    state.whole(found.context)?;
    Ok(number(event))
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuEventCreate(place: *mut Handle, flags: u32) -> u32 {
    enter("cuEventCreate", |mut state| {
        let context = state.current()?;
        // Blocking, without timing, between processes; the last needs the second.
        if flags > 7 || (flags & 4 != 0 && flags & 2 == 0) || place.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let id = state.handle();
        state.events.insert(id, Event { context, mark: Mark::Never });
        unsafe { write(place, handle(id)) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuEventRecord(recorded: Handle, stream: Handle) -> u32 {
    enter("cuEventRecord", |mut state| {
        let recorded = event(&state, recorded)?;
        let stream = state.stream(number(stream))?;
        if state.events[&recorded].context != state.streams[&stream].context {
            return Err(Status::INVALID_HANDLE);
        }
        state.record(recorded, stream)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuEventQuery(asked: Handle) -> u32 {
    enter("cuEventQuery", |mut state| {
        let asked = event(&state, asked)?;
        match state.ask(asked)? {
            Some(point) => state.query(point),
            None => Ok(()),
        }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuEventSynchronize(awaited: Handle) -> u32 {
    enter("cuEventSynchronize", |mut state| {
        let awaited = event(&state, awaited)?;
        let context = state.events[&awaited].context;
        match state.ask(awaited)? {
            Some(point) => wait_for(state, point).whole(context),
            None => Ok(()),
        }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuEventDestroy_v2(destroyed: Handle) -> u32 {
    enter("cuEventDestroy_v2", |mut state| {
        let destroyed = event(&state, destroyed)?;
        state.events.remove(&destroyed);
        Ok(())
    })
}
