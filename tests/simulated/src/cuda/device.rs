//! The driver itself, its devices, and the names of errors.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};
use std::sync::LazyLock;

use super::write;
use crate::core::status::{Result, Status};
use crate::core::{enter, enter_before_initialisation};

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuInit(flags: u32) -> u32 {
    enter_before_initialisation("cuInit", |mut state| match flags {
        0 => state.initialise(),
        _ => Err(Status::INVALID_VALUE),
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> u32 {
    enter_before_initialisation("cuDriverGetVersion", |state| unsafe {
        write(version, state.settings.version)
    })
}

/// The names and the texts of errors, as C strings.
static ERRORS: LazyLock<HashMap<u32, (CString, CString)>> = LazyLock::new(|| {
    let all = Status::ALL.iter().map(|&(status, name, text)| (status.0, format!("CUDA_ERROR_{name}"), text));
    let all = all.chain([(0, "CUDA_SUCCESS".to_owned(), "no error")]);
    all.map(|(number, name, text)| (number, (CString::new(name).unwrap(), CString::new(text).unwrap())))
        .collect()
});

unsafe fn describe(
    error: u32,
    place: *mut *const c_char,
    which: fn(&(CString, CString)) -> &CString,
) -> Result<()> {
    let text = ERRORS.get(&error).map(|entry| which(entry).as_ptr());
    unsafe { write(place, text.unwrap_or(std::ptr::null())) }?;
    text.map(|_| ()).ok_or(Status::INVALID_VALUE)
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuGetErrorName(error: u32, name: *mut *const c_char) -> u32 {
    enter_before_initialisation("cuGetErrorName", |_| unsafe { describe(error, name, |entry| &entry.0) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuGetErrorString(error: u32, text: *mut *const c_char) -> u32 {
    enter_before_initialisation("cuGetErrorString", |_| unsafe { describe(error, text, |entry| &entry.1) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> u32 {
    enter("cuDeviceGetCount", |state| unsafe { write(count, state.primaries.len() as c_int) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> u32 {
    enter("cuDeviceGet", |state| unsafe { write(device, state.ordinal(ordinal)?) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> u32 {
    enter("cuDeviceGetName", |state| {
        let text = format!("Simulated Device {}", state.ordinal(device)?);
        if name.is_null() || length <= 0 {
            return Err(Status::INVALID_VALUE);
        }
        let kept = text.len().min(length as usize - 1);
        // SAFETY: the caller has room for `length` bytes.
        unsafe {
            name.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), kept);
            name.add(kept).write(0);
        }
        Ok(())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> u32 {
    enter("cuDeviceTotalMem_v2", |state| {
        state.ordinal(device)?;
        unsafe { write(bytes, state.memory.capacity as usize) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> u32 {
    enter("cuDeviceGetUuid_v2", |state| {
        let mut bytes = *b"simulated-device";
        bytes[15] = state.ordinal(device)? as u8;
        unsafe { write(uuid, bytes) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: u32, device: c_int) -> u32 {
    enter("cuDeviceGetAttribute", |state| {
        let ordinal = state.ordinal(device)?;
        let settings = &state.settings;
        // By cuda.h's numbers; those that are not here are zero.
        let answer = match attribute {
            1..=4 => 64,             // threads of a block, and its three dimensions
            5 => c_int::MAX,         // a grid's first dimension
            6 | 7 => 65535,          // its others
            8 | 81 | 97 => 48 << 10, // shared memory: a block's, a multiprocessor's, a block's on request
            9 => 64 << 10,           // constant memory
            10 => settings.warp,     // lanes of a warp
            11 => c_int::MAX,        // pitch
            12 | 82 => 64 << 10,     // registers: a block's, a multiprocessor's
            13 => 1_000_000,         // clock, kHz
            16 => 2,                 // multiprocessors
            39 => 128,               // threads of a multiprocessor
            33 => ordinal + 1,       // PCI bus
            15 | 19 | 31 | 41 => 1,  // overlap, mapped host memory, concurrent kernels, unified addresses
            40 => 1,                 // copy engines
            75 => settings.capability.0,
            76 => settings.capability.1,
            78 | 83 | 89 | 91 | 99 => 1, // priorities, managed and registered memory
            102 | 115 => 1,              // virtual memory, pools
            other if other != 0 && other <= 148 => 0,
            _ => return Err(Status::INVALID_VALUE),
        };
        unsafe { write(value, answer) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> u32 {
    enter("cuDeviceCanAccessPeer", |state| {
        let different = state.ordinal(device)? != state.ordinal(peer)?;
        unsafe { write(can, c_int::from(different && state.settings.peers)) }
    })
}
