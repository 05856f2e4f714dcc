//! Contexts.

use std::ffi::c_int;

use super::{Handle, handle, number, write};
use crate::core::context::{self, pop, push, top};
use crate::core::status::Status;
use crate::core::{enter, stream};

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> u32 {
    enter("cuDevicePrimaryCtxRetain", |mut state| unsafe { write(context, handle(state.retain(device)?)) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> u32 {
    enter("cuDevicePrimaryCtxRelease_v2", |state| context::release(state, device))
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut u32,
    active: *mut c_int,
) -> u32 {
    enter("cuDevicePrimaryCtxGetState", |state| {
        let retained = state.primaries[state.ordinal(device)? as usize].retained;
        unsafe {
            write(flags, 0)?;
            write(active, c_int::from(retained > 0))
        }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxCreate_v2(context: *mut Handle, _flags: u32, device: c_int) -> u32 {
    enter("cuCtxCreate_v2", |mut state| unsafe { write(context, handle(state.create_context(device)?)) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxDestroy_v2(context: Handle) -> u32 {
    enter("cuCtxDestroy_v2", |state| {
        let context = number(context);
        if state.contexts.get(&context).is_none_or(|found| found.primary) {
            return Err(Status::INVALID_CONTEXT);
        }
        if top() == Some(context) {
            pop();
        }
        drop(context::destroy(state, context));
        Ok(())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxPushCurrent_v2(context: Handle) -> u32 {
    enter("cuCtxPushCurrent_v2", |state| {
        if !state.contexts.contains_key(&number(context)) {
            return Err(Status::INVALID_CONTEXT);
        }
        push(number(context));
        Ok(())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut Handle) -> u32 {
    enter("cuCtxPopCurrent_v2", |_| {
        let popped = pop().ok_or(Status::INVALID_CONTEXT)?;
        if !context.is_null() {
            unsafe { write(context, handle(popped)) }?;
        }
        Ok(())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxSetCurrent(context: Handle) -> u32 {
    enter("cuCtxSetCurrent", |state| {
        if !context.is_null() && !state.contexts.contains_key(&number(context)) {
            return Err(Status::INVALID_CONTEXT);
        }
        // Replaces the top of the stack; null takes it away.
        pop();
        if !context.is_null() {
            push(number(context));
        }
        Ok(())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut Handle) -> u32 {
    enter("cuCtxGetCurrent", |_| unsafe { write(context, handle(top().unwrap_or(0))) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> u32 {
    enter("cuCtxGetDevice", |state| unsafe { write(device, state.current_ordinal()?) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxSynchronize() -> u32 {
    enter("cuCtxSynchronize", |mut state| {
        let context = state.current()?;
        state.context_not_capturing(context)?;
        stream::wait_for_context(state, context).whole(context)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuCtxEnablePeerAccess(peer: Handle, flags: u32) -> u32 {
    enter("cuCtxEnablePeerAccess", |mut state| {
        let own = state.current()?;
        let peer = state.contexts.get(&number(peer)).ok_or(Status::INVALID_CONTEXT)?.ordinal;
        let allowed = state.settings.peers;
        let context = state.contexts.get_mut(&own).unwrap();
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if context.ordinal == peer {
            return Err(Status::INVALID_DEVICE);
        }
        if !allowed {
            return Err(Status::PEER_ACCESS_UNSUPPORTED);
        }
        if context.peers.insert(peer) { Ok(()) } else { Err(Status::PEER_ACCESS_ALREADY_ENABLED) }
    })
}
