//! Reserved addresses and what is mapped there. The structures are CUDA's.

use std::ffi::c_void;

use super::{Handle, cu, done, enter, write};
use crate::core::status::Status;
use crate::structures::{AccessDescription, AllocationProperties};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemGetAllocationGranularity(
    bytes: *mut usize,
    properties: *const AllocationProperties,
    option: u32,
) -> u32 {
    enter("hipMemGetAllocationGranularity", || {
        if bytes.is_null() || properties.is_null() || option > 1 {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuMemGetAllocationGranularity(bytes, properties, option) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemAddressReserve(
    place: *mut Handle,
    bytes: usize,
    alignment: usize,
    hint: Handle,
    flags: u64,
) -> u32 {
    enter("hipMemAddressReserve", || {
        if place.is_null() || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let mut address = 0;
        let hint = hint.addr() as u64;
        done(unsafe { cu::cuMemAddressReserve(&mut address, bytes, alignment, hint, flags) })?;
        unsafe { write(place, std::ptr::with_exposed_provenance_mut(address as usize)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemAddressFree(address: Handle, bytes: usize) -> u32 {
    enter("hipMemAddressFree", || done(unsafe { cu::cuMemAddressFree(address.addr() as u64, bytes) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemCreate(
    memory: *mut u64,
    bytes: usize,
    properties: *const AllocationProperties,
    flags: u64,
) -> u32 {
    enter("hipMemCreate", || {
        if memory.is_null() || properties.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuMemCreate(memory, bytes, properties, flags) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemRelease(memory: u64) -> u32 {
    enter("hipMemRelease", || done(unsafe { cu::cuMemRelease(memory) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemMap(
    address: Handle,
    bytes: usize,
    offset: usize,
    memory: u64,
    flags: u64,
) -> u32 {
    enter("hipMemMap", || done(unsafe { cu::cuMemMap(address.addr() as u64, bytes, offset, memory, flags) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemUnmap(address: Handle, bytes: usize) -> u32 {
    enter("hipMemUnmap", || done(unsafe { cu::cuMemUnmap(address.addr() as u64, bytes) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemSetAccess(
    address: Handle,
    bytes: usize,
    descriptions: *const AccessDescription,
    count: usize,
) -> u32 {
    enter("hipMemSetAccess", || {
        done(unsafe { cu::cuMemSetAccess(address.addr() as u64, bytes, descriptions, count) })
    })
}

/// A file's descriptor.
const FILE: u32 = 1;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemExportToShareableHandle(
    place: *mut c_void,
    memory: u64,
    kind: u32,
    flags: u64,
) -> u32 {
    enter("hipMemExportToShareableHandle", || {
        if place.is_null() || flags != 0 || kind != FILE {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuMemExportToShareableHandle(place, memory, kind, flags) })
    })
}

/// The memory counts as the thread's device's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemImportFromShareableHandle(
    memory: *mut u64,
    shared: *mut c_void,
    kind: u32,
) -> u32 {
    enter("hipMemImportFromShareableHandle", || {
        if memory.is_null() || kind != FILE {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuMemImportFromShareableHandle(memory, shared, kind) })
    })
}
