//! Reserved addresses and what is mapped there.

use super::write;
use crate::core::State;
use crate::core::enter;
use crate::core::status::{Result, Status};
use crate::core::virtual_memory::GRANULE;
use crate::structures::{AccessDescription, AllocationProperties, Location};

const ON_DEVICE: u32 = 1;
const PINNED: u32 = 1;

fn ordinal_at(state: &State, location: Location) -> Result<i32> {
    if location.kind != ON_DEVICE {
        return Err(Status::NOT_SUPPORTED);
    }
    state.ordinal(location.id)
}

unsafe fn wanted(state: &State, properties: *const AllocationProperties) -> Result<i32> {
    // SAFETY: null or the caller's.
    let properties = unsafe { properties.as_ref() }.ok_or(Status::INVALID_VALUE)?;
    if properties.kind != PINNED {
        return Err(Status::INVALID_VALUE);
    }
    ordinal_at(state, properties.location)
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemGetAllocationGranularity(
    bytes: *mut usize,
    properties: *const AllocationProperties,
    _option: u32,
) -> u32 {
    enter("cuMemGetAllocationGranularity", |state| unsafe {
        wanted(&state, properties)?;
        write(bytes, GRANULE)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemAddressReserve(
    address: *mut u64,
    bytes: usize,
    alignment: usize,
    _hint: u64,
    flags: u64,
) -> u32 {
    enter("cuMemAddressReserve", |mut state| {
        state.not_broken()?;
        if flags != 0 || address.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        unsafe { write(address, state.memory.reserve(bytes, alignment)? as u64) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemAddressFree(address: u64, bytes: usize) -> u32 {
    enter("cuMemAddressFree", |mut state| state.memory.unreserve(address as usize, bytes))
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemCreate(
    memory: *mut u64,
    bytes: usize,
    properties: *const AllocationProperties,
    flags: u64,
) -> u32 {
    enter("cuMemCreate", |mut state| {
        state.not_broken()?;
        let ordinal = unsafe { wanted(&state, properties) }?;
        if flags != 0 || memory.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        if state.lost.contains(&ordinal) {
            return Err(Status::LAUNCH_FAILED);
        }
        let handle = state.handle();
        // SAFETY: not null, as was seen.
        let shareable = unsafe { (*properties).handle_types } == 1;
        state.memory.create(ordinal, bytes, shareable, handle)?;
        unsafe { write(memory, handle) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemRelease(memory: u64) -> u32 {
    enter("cuMemRelease", |mut state| state.memory.release(memory))
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemMap(address: u64, bytes: usize, offset: usize, memory: u64, flags: u64) -> u32 {
    enter("cuMemMap", |mut state| {
        state.not_broken()?;
        if offset != 0 || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        state.memory.map(address as usize, bytes, memory)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemUnmap(address: u64, bytes: usize) -> u32 {
    enter("cuMemUnmap", |mut state| state.memory.unmap(address as usize, bytes))
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemSetAccess(
    address: u64,
    bytes: usize,
    descriptions: *const AccessDescription,
    count: usize,
) -> u32 {
    enter("cuMemSetAccess", |mut state| {
        state.not_broken()?;
        if descriptions.is_null() || count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: as many as the caller says.
        for description in unsafe { std::slice::from_raw_parts(descriptions, count) } {
            let ordinal = ordinal_at(&state, description.location)?;
            // None, or read and write. Memory for reading alone is not simulated.
            let may = match description.flags {
                0 => false,
                3 => true,
                _ => return Err(Status::NOT_SUPPORTED),
            };
            state.memory.set_access(address as usize, bytes, ordinal, may)?;
        }
        Ok(())
    })
}
