//! Reserved addresses and what is mapped there. The structures are CUDA's.

use std::ffi::c_void;

use super::settings::version;
use super::{Handle, cu, device, done, enter, write};
use crate::core::status::{Result, Status};
use crate::structures::{AccessDescription, AllocationProperties, Location};

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

/// Memory of a device, as CUDA is asked for it.
fn placed_on(ordinal: i32) -> AllocationProperties {
    const ON_DEVICE: u32 = 1;
    const PINNED: u32 = 1;
    let location = Location { kind: ON_DEVICE, id: ordinal };
    AllocationProperties { kind: PINNED, handle_types: 0, location, win32: 0, flags: [0; 8] }
}

/// What is no multiple of the granularity is an error of memory before 7.0.
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
        let properties = placed_on(device::current());
        let mut granule = 0;
        done(unsafe { cu::cuMemGetAllocationGranularity(&mut granule, &properties, 0) })?;
        if bytes == 0 || !bytes.is_multiple_of(granule) || !(alignment == 0 || alignment.is_power_of_two()) {
            let failed =
                if version().is_at_least(7, 0) { Status::INVALID_VALUE } else { Status::OUT_OF_MEMORY };
            return Err(failed);
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
        // SAFETY: null or the caller's.
        let wanted = unsafe { properties.as_ref() }.ok_or(Status::INVALID_VALUE)?;
        if memory.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        if wanted.handle_types != 0 {
            can_share()?;
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

/// Whether so many bytes are those of the first mappings of a reservation, in the order in which they were made. Some
/// versions compare with these whatever the address is, so that of memory that grew only parts like the first open.
#[cfg(not(forward))]
fn is_as_long_as_the_first(address: usize, bytes: usize) -> bool {
    let state = crate::core::lock();
    let Some(reservation) = state.memory.reservation(address) else { return true };
    let inside = state.memory.allocations.range(reservation.start..reservation.start + reservation.bytes);
    let mut mappings: Vec<(u64, usize)> = inside.map(|(_, mapping)| (mapping.id, mapping.bytes)).collect();
    mappings.sort_unstable();
    let mut sum = 0;
    mappings.into_iter().any(|(_, mapped)| {
        sum += mapped;
        sum == bytes
    })
}

#[cfg(forward)]
fn is_as_long_as_the_first(_address: usize, _bytes: usize) -> bool {
    true
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemSetAccess(
    address: Handle,
    bytes: usize,
    descriptions: *const AccessDescription,
    count: usize,
) -> u32 {
    enter("hipMemSetAccess", || {
        let counts_from_the_start = version().is_at_least(7, 0) && !version().is_at_least(7, 14);
        if counts_from_the_start && !is_as_long_as_the_first(address.addr(), bytes) {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuMemSetAccess(address.addr() as u64, bytes, descriptions, count) })
    })
}

/// A file's descriptor.
const FILE: u32 = 1;

/// Memory was not shared by handles before 6.0.
fn can_share() -> Result<()> {
    if version().is_at_least(6, 0) { Ok(()) } else { Err(Status::NOT_SUPPORTED) }
}

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
        can_share()?;
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
        if memory.is_null() || shared.is_null() || kind != FILE {
            return Err(Status::INVALID_VALUE);
        }
        can_share()?;
        done(unsafe { cu::cuMemImportFromShareableHandle(memory, shared, kind) })
    })
}
