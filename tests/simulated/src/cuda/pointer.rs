//! What the driver says of an address.

use std::ffi::{c_int, c_void};

use super::write;
use crate::core::State;
use crate::core::enter;
use crate::core::memory::Kind;
use crate::core::status::{Result, Status};
use crate::core::virtual_memory::GRANULE;

/// The ids that a version knows end before this one.
fn end_of_ids(version: i32) -> u32 {
    match version {
        ..12080 => 21,
        12080..13050 => 22,
        _ => 23,
    }
}

/// Writes one attribute in its own width.
unsafe fn attribute(state: &State, id: u32, address: u64, place: *mut c_void) -> Result<()> {
    let found = state.memory.find(address as usize);
    let kind = found.map(|found| found.kind);
    // Where it begins and how long it is: a reservation's for all that is mapped in it.
    let range =
        state.memory.reservation(address as usize).map(|reservation| (reservation.start, reservation.bytes));
    let range = range.or(found.map(|found| (found.start, found.bytes)));
    let on_host = matches!(kind, Some(Kind::Pinned | Kind::Registered | Kind::Alias));
    let on_device = found.is_some() && !on_host;
    let reachable = found.is_some_and(|found| found.reachable());
    let place_is_valid = !place.is_null();
    // Documented as a byte, and written as four of them by the driver that was measured.
    let flag = |set: bool| unsafe {
        if state.settings.version >= 13000 {
            write(place.cast(), u32::from(set))
        } else {
            write(place.cast(), u8::from(set))
        }
    };
    // SAFETY of the writes: the caller has room for each attribute's own width.
    unsafe {
        match id {
            1 => write(place.cast(), found.map_or(0_u64, |found| found.context)),
            2 => write(place.cast(), if on_device { 2_u32 } else { u32::from(on_host) }),
            3 => {
                let there = found.filter(|found| found.reachable());
                write(place.cast(), there.map_or(0, |found| found.host_and_device(address as usize).1))
            }
            // An unknown address may be the host's.
            4 => {
                let hidden = on_device && kind != Some(Kind::Managed);
                let here = found.map_or(address as usize, |found| found.host_and_device(address as usize).0);
                write(place.cast(), if hidden { 0 } else { here })
            }
            // Whether memory operations on it wait.
            6 => flag(on_device),
            7 => write(place.cast(), found.map_or(0_u64, |found| found.id)),
            8 => flag(kind == Some(Kind::Managed)),
            9 => write(place.cast(), found.map_or(-2, |found| found.ordinal) as c_int),
            10 => flag(kind == Some(Kind::Device)),
            // Left as they are where there is no range.
            11 if range.is_none() && place_is_valid => Ok(()),
            12 if range.is_none() && place_is_valid => Ok(()),
            11 => write(place.cast(), range.unwrap_or_default().0),
            12 => write(place.cast(), range.unwrap_or_default().1),
            13 => flag(found.is_some()),
            14 => write(place.cast(), 0_u64),
            15 => write(place.cast(), u32::from(kind == Some(Kind::Device))),
            // Read and write.
            16 => write(place.cast(), if reachable { 3_u32 } else { 0 }),
            17 => {
                let pool = found.filter(|found| found.kind == Kind::Pool);
                write(place.cast(), pool.map_or(0_u64, |found| 0x4_0000_0000 + 16 * found.ordinal as u64))
            }
            18 => write(place.cast(), found.map_or(0, |found| found.bytes.next_multiple_of(GRANULE))),
            19 => write(place.cast(), found.map_or(0, |found| found.start)),
            20 => write(place.cast(), found.map_or(0_u64, |found| found.id)),
            21 => flag(kind == Some(Kind::Device)),
            22 => write(place.cast(), -1 as c_int),
            // Tokens for peers (5) are not simulated, and are refused in a batch by the driver, too.
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

#[cfg(not(all(feature = "cuda", feature = "missing-required")))]
#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuPointerGetAttributes(
    count: u32,
    attributes: *const u32,
    places: *mut *mut c_void,
    address: u64,
) -> u32 {
    enter("cuPointerGetAttributes", |state| {
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
        if ids.iter().any(|id| !(1..end).contains(id) || *id == 5) {
            return Err(Status::INVALID_VALUE);
        }
        ids.iter().zip(places).try_for_each(|(&id, &place)| unsafe { attribute(&state, id, address, place) })
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuPointerGetAttribute(place: *mut c_void, id: u32, address: u64) -> u32 {
    enter("cuPointerGetAttribute", |state| {
        let known = state.memory.find(address as usize);
        if known.is_none_or(|found| match id {
            3 => !found.reachable(),
            4 => found.kind.on_device() && found.kind != Kind::Alias,
            _ => false,
        }) || !(1..end_of_ids(state.settings.version)).contains(&id)
        {
            return Err(Status::INVALID_VALUE);
        }
        unsafe { attribute(&state, id, address, place) }
    })
}
