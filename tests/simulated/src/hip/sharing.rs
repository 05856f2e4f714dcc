//! Device memory between processes.

use super::known::{self, Entry, Known};
use super::settings::version;
use super::{Handle, cu, device, done, enter, write};
use crate::core::status::Status;
use crate::structures::SharedMemory;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipIpcGetMemHandle(handle: *mut SharedMemory, address: Handle) -> u32 {
    enter("hipIpcGetMemHandle", || {
        if handle.is_null() || address.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuIpcGetMemHandle(handle, address.addr() as u64) })
    })
}

const INVALID_DEVICE_POINTER: Status = Status(17);

/// The flag that opens handles of other devices, whose number was nothing before 6.0. It has no effect in HIP.
const LAZY_PEER_ACCESS: u32 = 1;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipIpcOpenMemHandle(place: *mut Handle, handle: SharedMemory, flags: u32) -> u32 {
    enter("hipIpcOpenMemHandle", || {
        let version = version();
        let expected = if version.is_at_least(6, 0) { LAZY_PEER_ACCESS } else { 0 };
        if place.is_null() || flags != expected {
            return Err(Status::INVALID_VALUE);
        }
        let mut address = 0;
        match done(unsafe { cu::cuIpcOpenMemHandle_v2(&mut address, handle, LAZY_PEER_ACCESS) }) {
            Err(Status::MAP_FAILED) => return Err(INVALID_DEVICE_POINTER),
            opened => opened?,
        }
        // Nobody tells the runtime whose it is.
        let ordinal = if version.is_at_least(6, 1) { device::current() } else { 0 };
        let (mut start, mut bytes) = (0, 0);
        done(unsafe { cu::cuMemGetAddressRange_v2(&mut start, &mut bytes, address) })?;
        known::lock().add(start, Entry { what: Known::Opened, bytes: bytes as u64, ordinal });
        unsafe { write(place, std::ptr::with_exposed_provenance_mut(address as usize)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipIpcCloseMemHandle(address: Handle) -> u32 {
    enter("hipIpcCloseMemHandle", || {
        let address = address.addr() as u64;
        let opened = known::lock().find(address).filter(|(_, entry)| entry.what == Known::Opened);
        let (start, _) = opened.ok_or(Status::INVALID_VALUE)?;
        done(unsafe { cu::cuIpcCloseMemHandle(address) })?;
        // It may have been opened more than once.
        let (mut base, mut bytes) = (0, 0);
        if unsafe { cu::cuMemGetAddressRange_v2(&mut base, &mut bytes, start) } != 0 {
            known::lock().remove(start);
        }
        Ok(())
    })
}
