//! Memory of devices and of the host.

use std::ffi::c_void;

use super::{Handle, number, write};
use crate::core::memory::Kind;
use crate::core::status::{Result, Status};
use crate::core::work::Work;
use crate::core::{Locked, enter, stream};

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
    enter("cuMemGetInfo_v2", |state| {
        state.current()?;
        let used = state.memory.used[state.current_ordinal()? as usize];
        unsafe {
            write(free, (state.memory.capacity - used) as usize)?;
            write(total, state.memory.capacity as usize)
        }
    })
}

/// Memory of a kind, of the current context.
fn allocate(mut state: Locked, kind: Kind, bytes: usize) -> Result<usize> {
    let context = state.current()?;
    state.unsafe_in_captures()?;
    let ordinal = state.contexts[&context].ordinal;
    state.memory.allocate(kind, bytes, ordinal, context)
}

/// Frees without waiting for queued work, unless the settings say so.
fn free(mut state: Locked, start: usize, kinds: &[Kind]) -> Result<()> {
    state.unsafe_in_captures()?;
    if start == 0 {
        return Ok(());
    }
    if let Some(owner) =
        state.memory.find(start).map(|allocation| allocation.context).filter(|&owner| owner != 0)
    {
        state.whole(owner)?;
        if state.settings.free_waits {
            state = stream::wait_for_context(state, owner);
            state.whole(owner)?;
        }
    }
    state.memory.free(start, kinds)
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> u32 {
    enter("cuMemAlloc_v2", |state| unsafe { write(address, allocate(state, Kind::Device, bytes)? as u64) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemFree_v2(address: u64) -> u32 {
    enter("cuMemFree_v2", |state| free(state, address as usize, &[Kind::Device, Kind::Pool, Kind::Managed]))
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemAllocManaged(address: *mut u64, bytes: usize, flags: u32) -> u32 {
    enter("cuMemAllocManaged", |state| {
        // Global or host: who may touch it first.
        if !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        unsafe { write(address, allocate(state, Kind::Managed, bytes)? as u64) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: Handle) -> u32 {
    enter("cuMemAllocAsync", |mut state| {
        let stream = state.stream(number(stream))?;
        state.not_implicit(stream, true)?;
        if state.is_capturing(stream) {
            return Err(Status::NOT_SUPPORTED);
        }
        state.unsafe_in_captures()?;
        let ordinal = state.contexts[&state.streams[&stream].context].ordinal;
        unsafe { write(address, state.memory.allocate(Kind::Pool, bytes, ordinal, 0)? as u64) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemFreeAsync(address: u64, stream: Handle) -> u32 {
    enter("cuMemFreeAsync", |mut state| {
        let stream = state.stream(number(stream))?;
        let start = address as usize;
        if state.memory.allocations.get(&start).is_none_or(|allocation| allocation.kind != Kind::Pool) {
            return Err(Status::INVALID_VALUE);
        }
        if state.is_capturing(stream) {
            return Err(Status::NOT_SUPPORTED);
        }
        state.unsafe_in_captures()?;
        state.submit(stream, Work::Free(start)).map(|_| ())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: u32) -> u32 {
    enter("cuMemHostAlloc", |state| {
        // Portable, mapped, write-combined.
        if flags & !7 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if bytes == 0 {
            state.current()?;
            return unsafe { write(address, std::ptr::null_mut()) };
        }
        unsafe { write(address, allocate(state, Kind::Pinned, bytes)? as *mut c_void) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemFreeHost(address: *mut c_void) -> u32 {
    enter("cuMemFreeHost", |state| free(state, address.addr(), &[Kind::Pinned]))
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    device: *mut u64,
    host: *mut c_void,
    flags: u32,
) -> u32 {
    enter("cuMemHostGetDevicePointer_v2", |state| {
        state.current()?;
        let found = state
            .memory
            .find(host.addr())
            .filter(|found| matches!(found.kind, Kind::Pinned | Kind::Registered));
        let found = found.filter(|_| flags == 0).ok_or(Status::INVALID_VALUE)?;
        // One address space, as a rule: the device sees host memory where the host does.
        let (_, there) = found.host_and_device(host.addr());
        unsafe { write(device, there as u64) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemHostRegister_v2(address: *mut c_void, bytes: usize, _flags: u32) -> u32 {
    enter("cuMemHostRegister_v2", |mut state| {
        let context = state.current()?;
        state.unsafe_in_captures()?;
        let ordinal = state.contexts[&context].ordinal;
        let aliased = state.settings.register_alias;
        state.memory.register(address.addr(), bytes, ordinal, context, aliased)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemHostUnregister(address: *mut c_void) -> u32 {
    enter("cuMemHostUnregister", |mut state| {
        state.unsafe_in_captures()?;
        state.memory.free(address.addr(), &[Kind::Registered]).map_err(|_| Status::HOST_MEMORY_NOT_REGISTERED)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, address: u64) -> u32 {
    enter("cuMemGetAddressRange_v2", |state| {
        state.current()?;
        let found = state.memory.find(address as usize).filter(|found| found.reachable());
        let found = found.ok_or(Status::NOT_FOUND)?;
        unsafe {
            if !base.is_null() {
                write(base, found.start as u64)?;
            }
            if !bytes.is_null() {
                write(bytes, found.bytes)?;
            }
        }
        Ok(())
    })
}
