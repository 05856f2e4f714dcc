//! Device memory between processes.

use std::ffi::{c_int, c_void};

use super::write;
use crate::core::enter;
use crate::core::status::Status;
use crate::structures::SharedMemory;

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuIpcGetMemHandle(handle: *mut SharedMemory, address: u64) -> u32 {
    enter("cuIpcGetMemHandle", |mut state| {
        state.current()?;
        unsafe { write(handle, SharedMemory { bytes: state.memory.export(address as usize)? }) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuIpcOpenMemHandle_v2(address: *mut u64, handle: SharedMemory, flags: u32) -> u32 {
    enter("cuIpcOpenMemHandle_v2", |mut state| {
        state.current()?;
        // Peer access is made when it is needed, and there is no other choice.
        if flags != 1 || address.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let foreign = state.settings.ipc_foreign;
        unsafe { write(address, state.memory.open_exported(&handle.bytes, foreign)? as u64) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuIpcCloseMemHandle(address: u64) -> u32 {
    enter("cuIpcCloseMemHandle", |mut state| {
        state.current()?;
        state.memory.close_opened(address as usize)
    })
}

/// A file's descriptor.
const FILE: u32 = 1;

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemExportToShareableHandle(
    place: *mut c_void,
    memory: u64,
    kind: u32,
    flags: u64,
) -> u32 {
    enter("cuMemExportToShareableHandle", |state| {
        if kind != FILE || flags != 0 || place.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        unsafe { write(place.cast::<c_int>(), state.memory.export_physical(memory)?) }
    })
}

/// The memory counts as the current context's device's.
#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuMemImportFromShareableHandle(
    memory: *mut u64,
    shared: *mut c_void,
    kind: u32,
) -> u32 {
    enter("cuMemImportFromShareableHandle", |mut state| {
        state.current()?;
        if kind != FILE || memory.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let ordinal = state.current_ordinal()?;
        let handle = state.handle();
        state.memory.import_physical(shared.addr() as c_int, ordinal, handle)?;
        unsafe { write(memory, handle) }
    })
}
