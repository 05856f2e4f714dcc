//! The vendors' structures that CUDA and HIP have alike.

use std::ffi::c_int;

/// Where memory is: the kind of place, and its number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    pub kind: u32,
    pub id: c_int,
}

/// What memory is asked for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocationProperties {
    pub kind: u32,
    pub handle_types: u32,
    pub location: Location,
    pub win32: usize,
    pub flags: [u8; 8],
}

/// Who may touch memory, and how.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AccessDescription {
    pub location: Location,
    pub flags: u32,
}

/// A handle of device memory for another process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory {
    pub bytes: [u8; 64],
}
