//! What the driver says of an address.

use std::ffi::{c_int, c_void};

use super::write;
use crate::core::State;
use crate::core::context::top;
use crate::core::enter;
use crate::core::memory::Kind;
use crate::core::status::{Result, Status};

/// Ids that the batched query refuses, although the singular one knows them.
const SINGULAR_ALONE: [u32; 4] = [5, 18, 19, 20];

/// The ids that a version knows end before this one.
fn end_of_ids(version: i32) -> u32 {
    match version {
        ..12080 => 21,
        12080..13050 => 22,
        _ => 23,
    }
}

/// Writes one attribute in its own width. Whether the address is one of the driver's.
unsafe fn attribute(state: &State, id: u32, address: u64, place: *mut c_void) -> Result<bool> {
    let found = state.memory.find(address as usize);
    let reservation = state.memory.reservation(address as usize);
    let kind = found.map(|found| found.kind);
    if let Some(owner) = found {
        if state.lost.contains(&owner.ordinal) {
            return Err(Status::LAUNCH_FAILED);
        }
    }
    let start = found.map_or(0, |found| found.start as u64);
    let bytes = found.map_or(0, |found| found.bytes);
    let on_host = matches!(kind, Some(Kind::Pinned | Kind::Registered));
    // SAFETY of the writes: the caller has room for each attribute's own width.
    unsafe {
        match id {
            1 => write(place.cast(), found.map_or(0_u64, |found| found.context))?,
            2 => write(
                place.cast(),
                if found.is_none() {
                    0_u32
                } else if on_host {
                    1
                } else {
                    2
                },
            )?,
            3 => {
                top().ok_or(Status::INVALID_CONTEXT)?;
                write(place.cast(), if found.is_some() { address } else { 0 })?;
            }
            4 => write(place.cast(), if on_host || kind == Some(Kind::Managed) { address } else { 0 })?,
            // Tokens: two words.
            5 => return Err(Status::NOT_SUPPORTED),
            // Whether memory operations on it wait.
            6 => write(place.cast(), 0_u8)?,
            7 => write(place.cast(), found.map_or(0_u64, |found| found.id))?,
            8 => write(place.cast(), u8::from(kind == Some(Kind::Managed)))?,
            9 => write(place.cast(), found.map_or(-2, |found| found.ordinal) as c_int)?,
            10 => write(place.cast(), u8::from(kind == Some(Kind::Device)))?,
            11 => write(place.cast(), reservation.map_or(start, |reservation| reservation.start as u64))?,
            12 => write(place.cast(), reservation.map_or(bytes, |reservation| reservation.bytes))?,
            13 => write(place.cast(), u8::from(found.is_some()))?,
            14 => write(place.cast(), 0_u64)?,
            15 => write(place.cast(), u32::from(kind.is_some_and(Kind::on_device)))?,
            // Read and write.
            16 => write(place.cast(), if found.is_some() { 3_u32 } else { 0 })?,
            17 => {
                let pool = found.filter(|found| found.kind == Kind::Pool);
                write(place.cast(), pool.map_or(0_u64, |found| 0x4_0000_0000 + 16 * found.ordinal as u64))?;
            }
            18 => write(place.cast(), bytes)?,
            19 => write(place.cast(), start)?,
            20 => write(place.cast(), found.map_or(0_u64, |found| found.id))?,
            21 => write(place.cast(), 0_u8)?,
            22 => write(place.cast(), -1 as c_int)?,
            _ => return Err(Status::INVALID_VALUE),
        }
    }
    Ok(found.is_some())
}

#[cfg(not(feature = "missing-required"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttributes(
    count: u32,
    attributes: *const u32,
    places: *mut *mut c_void,
    address: u64,
) -> u32 {
    enter("cuPointerGetAttributes", |state| {
        state.not_broken()?;
        if count == 0 || attributes.is_null() || places.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let end = end_of_ids(state.settings.version);
        // SAFETY: as many of each as the caller says.
        let (ids, places) = unsafe {
            (
                std::slice::from_raw_parts(attributes, count as usize),
                std::slice::from_raw_parts(places, count as usize),
            )
        };
        // One that is unknown fails all, before any is written.
        if ids.iter().any(|id| !(1..end).contains(id) || SINGULAR_ALONE.contains(id)) {
            return Err(Status::INVALID_VALUE);
        }
        ids.iter()
            .zip(places)
            .try_for_each(|(&id, &place)| unsafe { attribute(&state, id, address, place) }.map(|_| ()))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttribute(place: *mut c_void, id: u32, address: u64) -> u32 {
    enter("cuPointerGetAttribute", |state| {
        state.not_broken()?;
        let reserved = matches!(id, 11 | 12) && state.memory.reservation(address as usize).is_some();
        let known = state.memory.find(address as usize).is_some() || reserved;
        if !known || !(1..end_of_ids(state.settings.version)).contains(&id) {
            return Err(Status::INVALID_VALUE);
        }
        unsafe { attribute(&state, id, address, place) }.map(|_| ())
    })
}
