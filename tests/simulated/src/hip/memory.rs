//! Memory of devices and of the host.

use std::ffi::c_void;

use super::{Handle, cu, done, enter, known, pointer, write};
use crate::core::status::{Result, Status};

/// Memory of some kind. No bytes have no address.
unsafe fn allocate(place: *mut Handle, bytes: usize, how: impl FnOnce(*mut u64) -> u32) -> Result<()> {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let mut address = 0;
    if bytes > 0 {
        done(how(&mut address))?;
        known::lock().taken(address, bytes as u64);
    }
    unsafe { write(place, std::ptr::with_exposed_provenance_mut(address as usize)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMalloc(place: *mut Handle, bytes: usize) -> u32 {
    enter("hipMalloc", || unsafe { allocate(place, bytes, |address| cu::cuMemAlloc_v2(address, bytes)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMallocManaged(place: *mut Handle, bytes: usize, flags: u32) -> u32 {
    enter("hipMallocManaged", || {
        // Global or host: who may touch it first.
        if !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        unsafe { allocate(place, bytes, |address| cu::cuMemAllocManaged(address, bytes, flags)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMallocAsync(place: *mut Handle, bytes: usize, stream: Handle) -> u32 {
    enter("hipMallocAsync", || {
        let stream = super::stream::given(stream)?;
        unsafe { allocate(place, bytes, |address| cu::cuMemAllocAsync(address, bytes, stream)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFree(address: Handle) -> u32 {
    enter("hipFree", || {
        let address = address.addr() as u64;
        let freed = pointer::behind(address)?.filter(|behind| behind.pool);
        done(unsafe { cu::cuMemFree_v2(address) })?;
        known::lock().freed_to_pool(freed);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFreeAsync(address: Handle, stream: Handle) -> u32 {
    enter("hipFreeAsync", || {
        let stream = super::stream::given(stream)?;
        let address = address.addr() as u64;
        let freed = pointer::behind(address)?;
        done(unsafe { cu::cuMemFreeAsync(address, stream) })?;
        known::lock().freed_to_pool(freed);
        Ok(())
    })
}

const PORTABLE: u32 = 1;
const MAPPED: u32 = 2;
const WRITE_COMBINED: u32 = 4;
const OF_NUMA_NODE: u32 = 0x2000_0000;
const COHERENT: u32 = 0x4000_0000;
const NON_COHERENT: u32 = 0x8000_0000;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostMalloc(place: *mut Handle, bytes: usize, flags: u32) -> u32 {
    enter("hipHostMalloc", || {
        let shared_with_cuda = PORTABLE | MAPPED | WRITE_COMBINED;
        let known = shared_with_cuda | OF_NUMA_NODE | COHERENT | NON_COHERENT;
        let both = COHERENT | NON_COHERENT;
        if flags & !known != 0 || flags & both == both {
            return Err(Status::INVALID_VALUE);
        }
        let flags = flags & shared_with_cuda;
        unsafe {
            allocate(place, bytes, |address| {
                let mut host = std::ptr::null_mut();
                let status = cu::cuMemHostAlloc(&mut host, bytes, flags);
                *address = host.expose_provenance() as u64;
                status
            })
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostFree(address: *mut c_void) -> u32 {
    enter("hipHostFree", || {
        if address.is_null() {
            return Ok(());
        }
        done(unsafe { cu::cuMemFreeHost(address) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostRegister(address: *mut c_void, bytes: usize, flags: u32) -> u32 {
    enter("hipHostRegister", || {
        if address.is_null() || bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuMemHostRegister_v2(address, bytes, flags & (PORTABLE | MAPPED)) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostUnregister(address: *mut c_void) -> u32 {
    enter("hipHostUnregister", || {
        if address.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuMemHostUnregister(address) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostGetDevicePointer(place: *mut Handle, host: *mut c_void, flags: u32) -> u32 {
    enter("hipHostGetDevicePointer", || {
        if place.is_null() || host.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let mut device = 0;
        done(unsafe { cu::cuMemHostGetDevicePointer_v2(&mut device, host, flags) })?;
        unsafe { write(place, std::ptr::with_exposed_provenance_mut(device as usize)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> u32 {
    enter("hipMemGetInfo", || {
        let mut found = [0; 2];
        let [left, whole] = &mut found;
        done(unsafe { cu::cuMemGetInfo_v2(left, whole) })?;
        unsafe {
            write(free, found[0])?;
            write(total, found[1])
        }
    })
}
