//! What is behind a pointer, in the words of the driver that was asked.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use arenas::{AllocationOrigin, PointerInfo, classify, classify_range};

use crate::border::{Answer, cross, needed};
use crate::library::{device_arena_library_t, device_arena_vendor_t, library_of};
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::tape::device_arena_memory_t;

/// How a driver came to memory, where it says.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum device_arena_origin_t {
    /// The driver does not say.
    DEVICE_ARENA_ORIGIN_UNKNOWN = 0,
    /// An allocation of its own.
    DEVICE_ARENA_ORIGIN_DIRECT = 1,
    /// A pool of stream-ordered allocations.
    DEVICE_ARENA_ORIGIN_POOL = 2,
    /// Memory that was mapped into reserved addresses.
    DEVICE_ARENA_ORIGIN_VIRTUAL = 3,
}

/// The answer to a classification.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_pointer_info_t {
    /// The class of the memory.
    pub memory: device_arena_memory_t,
    /// Whose driver claims it; the host where none does.
    pub vendor: device_arena_vendor_t,
    /// The ordinal of the device that the memory belongs to; -1 for none.
    pub device: i32,
    /// How the driver came to the memory.
    pub origin: device_arena_origin_t,
    /// Whether the host can read through the pointer, given that it is live: 1 or 0.
    pub is_host_accessible: u32,
    /// Whether a device's kernels can: 1 or 0.
    pub is_device_accessible: u32,
    /// The address of the allocation that the pointer lies in; 0 where the driver does not say.
    pub allocation: u64,
    /// The allocation's size in bytes; 0 where the driver does not say.
    pub allocation_bytes: u64,
    /// The allocation's identity: a later one of the same address has another. 0 where `has_buffer_id` is 0.
    pub buffer_id: u64,
    /// Whether the driver has given the allocation an identity: 1 or 0.
    pub has_buffer_id: u32,
    /// Zero.
    pub reserved: u32,
}

fn described(info: &PointerInfo) -> Answer<device_arena_pointer_info_t> {
    use device_arena_origin_t::*;
    let (allocation, allocation_bytes) = info.allocation.unwrap_or((0, 0));
    Ok(device_arena_pointer_info_t {
        memory: device_arena_memory_t::of(info.kind)?,
        vendor: info.vendor.map_or(device_arena_vendor_t::DEVICE_ARENA_VENDOR_HOST, Into::into),
        device: info.ordinal().map_or(-1, |ordinal| i32::try_from(ordinal).unwrap_or(i32::MAX)),
        origin: match info.origin {
            AllocationOrigin::Direct => DEVICE_ARENA_ORIGIN_DIRECT,
            AllocationOrigin::Pool => DEVICE_ARENA_ORIGIN_POOL,
            AllocationOrigin::Virtual => DEVICE_ARENA_ORIGIN_VIRTUAL,
            _ => DEVICE_ARENA_ORIGIN_UNKNOWN,
        },
        is_host_accessible: info.is_host_accessible().into(),
        is_device_accessible: info.is_device_accessible.into(),
        allocation: allocation as u64,
        allocation_bytes: allocation_bytes as u64,
        buffer_id: info.buffer_id.unwrap_or(0),
        has_buffer_id: info.buffer_id.is_some().into(),
        reserved: 0,
    })
}

/// Asks the drivers what a pointer is. What none claims is unregistered: pageable host memory, null, and also freed pointers.
/// The pointer is not read through. A query that fails is DRIVER, never a guess.
///
/// # Safety
///
/// The memory stays allocated while the answer is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_pointer_classify(
    library: device_arena_library_t,
    pointer: *const c_void,
    info_out: Option<&mut MaybeUninit<device_arena_pointer_info_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("info_out", info_out)?;
        library_of(library)?;
        // SAFETY: the caller's promise is the same.
        let info = unsafe { classify(pointer.cast()) }?;
        out.write(described(&info)?);
        Ok(())
    })
}

/// As `device_arena_pointer_classify`, of so many bytes: INVALID_ARGUMENT where they leave the allocation that they begin in,
/// and for null. Nothing is asked for 0 bytes.
///
/// # Safety
///
/// As `device_arena_pointer_classify`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_pointer_classify_range(
    library: device_arena_library_t,
    pointer: *const c_void,
    bytes: u64,
    info_out: Option<&mut MaybeUninit<device_arena_pointer_info_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("info_out", info_out)?;
        library_of(library)?;
        let bytes = raw::len::<u8>("bytes", bytes)?;
        // SAFETY: the caller's promise is the same.
        let info = unsafe { classify_range(pointer.cast(), bytes) }?;
        out.write(described(&info)?);
        Ok(())
    })
}
