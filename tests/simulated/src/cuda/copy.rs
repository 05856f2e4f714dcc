//! Copies and fills.

use std::ffi::c_void;

use super::{Handle, number};
use crate::core::memory::Kind;
use crate::core::status::{Result, Status};
use crate::core::stream::wait_for;
use crate::core::work::Work;
use crate::core::{Locked, State, enter};

/// The kind of memory that a range lies in, all of it. None is memory of the process that the driver doesn't know.
fn kind_of(state: &State, address: usize, bytes: usize) -> Result<Option<Kind>> {
    match state.memory.find(address) {
        Some(found) if found.holds(address, bytes) && found.reachable() => Ok(Some(found.kind)),
        // A range over mappings that lie side by side.
        Some(found) if found.kind == Kind::Virtual && found.reachable() => {
            let known = found.start + found.bytes - address;
            if known >= bytes {
                return Err(Status::INVALID_VALUE);
            }
            match kind_of(state, address + known, bytes - known)? {
                Some(Kind::Virtual) => Ok(Some(Kind::Virtual)),
                _ => Err(Status::INVALID_VALUE),
            }
        }
        Some(_) => Err(Status::INVALID_VALUE),
        None if state.memory.is_reserved(address) => Err(Status::INVALID_VALUE),
        None => Ok(None),
    }
}

fn copy(mut state: Locked, to: u64, from: u64, bytes: usize, stream: Handle) -> Result<()> {
    let stream = state.stream(number(stream))?;
    if bytes == 0 {
        return Ok(());
    }
    if to == 0 || from == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let (to, from) = (to as usize, from as usize);
    let target = kind_of(&state, to, bytes)?;
    let source = kind_of(&state, from, bytes)?;
    let context = state.streams[&stream].context;
    // Pageable memory is read before the call returns, and written before it returns. A graph reads it when it runs.
    let staged = source.is_none() && target.is_some() && !state.is_capturing(stream);
    let work = if staged {
        // SAFETY: the caller says that these bytes are readable.
        let bytes =
            unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(from), bytes) };
        Work::Staged { to, bytes: bytes.into() }
    } else {
        Work::Copy { to, from, bytes }
    };
    let point = state.submit(stream, work)?;
    match point.filter(|_| target.is_none()) {
        Some(point) => wait_for(state, point).whole(context),
        None => Ok(()),
    }
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle) -> u32 {
    enter("cuMemcpyAsync", |state| copy(state, to, from, bytes, stream))
}

/// Fails where an address is not the device's to use.
fn of_device(state: &State, address: u64, bytes: usize) -> Result<()> {
    match kind_of(state, address as usize, bytes)? {
        None if bytes > 0 => Err(Status::INVALID_VALUE),
        _ => Ok(()),
    }
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const c_void,
    bytes: usize,
    stream: Handle,
) -> u32 {
    enter("cuMemcpyHtoDAsync_v2", |state| {
        state.current()?;
        of_device(&state, to, bytes)?;
        copy(state, to, from.expose_provenance() as u64, bytes, stream)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: u64,
    bytes: usize,
    stream: Handle,
) -> u32 {
    enter("cuMemcpyDtoHAsync_v2", |state| {
        state.current()?;
        of_device(&state, from, bytes)?;
        copy(state, to.expose_provenance() as u64, from, bytes, stream)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) -> u32 {
    enter("cuMemcpyDtoDAsync_v2", |state| {
        state.current()?;
        of_device(&state, to, bytes)?;
        of_device(&state, from, bytes)?;
        copy(state, to, from, bytes, stream)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    to_context: Handle,
    from: u64,
    from_context: Handle,
    bytes: usize,
    stream: Handle,
) -> u32 {
    enter("cuMemcpyPeerAsync", |state| {
        state.current()?;
        for (address, context) in [(to, to_context), (from, from_context)] {
            state.contexts.get(&number(context)).ok_or(Status::INVALID_CONTEXT)?;
            state.whole(number(context))?;
            of_device(&state, address, bytes)?;
        }
        copy(state, to, from, bytes, stream)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: Handle) -> u32 {
    enter("cuMemsetD8Async", |mut state| {
        let stream = state.stream(number(stream))?;
        if bytes == 0 {
            return Ok(());
        }
        of_device(&state, address, bytes)?;
        state.submit(stream, Work::Fill { to: address as usize, value, bytes }).map(|_| ())
    })
}
