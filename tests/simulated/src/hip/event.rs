//! Events.

use super::stream::given;
use super::{Handle, cu, done, enter};
use crate::core::status::{Result, Status};

fn event(event: Handle) -> Result<Handle> {
    if event.is_null() { Err(Status::INVALID_HANDLE) } else { Ok(event) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventCreateWithFlags(place: *mut Handle, flags: u32) -> u32 {
    enter("hipEventCreateWithFlags", || {
        // Blocking, without timing, between processes as in CUDA, and two ways to release memory to the system.
        const RELEASES: u32 = 0xC000_0000;
        if flags & RELEASES == RELEASES || place.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuEventCreate(place, flags & !RELEASES) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventRecord(recorded: Handle, stream: Handle) -> u32 {
    enter("hipEventRecord", || done(unsafe { cu::cuEventRecord(event(recorded)?, given(stream)?) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventQuery(asked: Handle) -> u32 {
    enter("hipEventQuery", || done(unsafe { cu::cuEventQuery(event(asked)?) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventSynchronize(awaited: Handle) -> u32 {
    enter("hipEventSynchronize", || done(unsafe { cu::cuEventSynchronize(event(awaited)?) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventDestroy(destroyed: Handle) -> u32 {
    enter("hipEventDestroy", || {
        match done(unsafe { cu::cuEventDestroy_v2(event(destroyed)?) }) {
            // So an event is that there is not any more.
            Err(Status::INVALID_HANDLE) => Err(Status::CONTEXT_IS_DESTROYED),
            outcome => outcome,
        }
    })
}
