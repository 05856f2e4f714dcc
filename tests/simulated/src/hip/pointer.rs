//! What the runtime says of an address.

use std::ffi::{c_int, c_void};

use super::known::{self, Known};
use super::settings::{self, Version, version};
use super::{Handle, cu, device, done, enter, write};
use crate::core::status::{Result, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Device,
    Host,
    Managed,
}

/// What is behind an address that the runtime knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    pub kind: Kind,
    pub ordinal: i32,
    pub start: u64,
    pub bytes: u64,
    pub id: u64,
    /// Where the host sees it, and the device. Zero where one does not.
    pub host: u64,
    pub device: u64,
    pub pool: bool,
    /// A mapped part of a reservation.
    pub mapped: bool,
}

/// Where the one allocation begins that all of a foreign client's memory is taken for.
const ARENA: u64 = 0x100;

/// What is behind an address. None is memory that the runtime does not know.
pub(super) fn behind(address: u64) -> Result<Option<Behind>> {
    if address == 0 {
        return Ok(None);
    }
    let entry = known::lock().find(address);
    // The runtime's own memory comes before what a pool once had there.
    if let Some((start, entry)) = entry.filter(|(_, entry)| entry.what != Known::Pooled) {
        return Ok(Some(of_entry(address, start, entry)));
    }
    if let Some(found) = of_driver(address)? {
        return Ok(Some(found));
    }
    let settings = settings::lock().clone();
    let everything = settings.xnack && settings.target.has_xnack && !settings.version.is_at_least(5, 7);
    Ok(match entry {
        Some((start, entry)) => Some(of_entry(address, start, entry)),
        None if everything => Some(foreign(address)),
        None => None,
    })
}

fn foreign(address: u64) -> Behind {
    Behind {
        kind: Kind::Device,
        ordinal: 0,
        start: ARENA,
        bytes: u64::MAX,
        id: 0,
        host: 0,
        device: address,
        pool: false,
        mapped: false,
    }
}

fn of_entry(address: u64, start: u64, entry: known::Entry) -> Behind {
    let device = Behind { start, bytes: entry.bytes, ordinal: entry.ordinal, ..foreign(address) };
    match entry.what {
        Known::Foreign => foreign(address),
        Known::Pooled | Known::Opened => device,
        // Taken for memory of the host before 7.14.
        Known::Managed => {
            let kind = if version().is_at_least(7, 14) { Kind::Managed } else { Kind::Host };
            Behind { kind, host: address, ..device }
        }
    }
}

/// What the CUDA driver says.
fn of_driver(address: u64) -> Result<Option<Behind>> {
    // By cuda.h: type, managed, ordinal, id, device's and host's address, pool, context.
    let ids = [2, 8, 9, 7, 3, 4, 17, 1, 11, 12];
    let mut slots = [0_u64; 10];
    let mut places = slots.each_mut().map(|slot| std::ptr::from_mut(slot).cast());
    // SAFETY: a slot as wide as any attribute for each.
    done(unsafe { cu::cuPointerGetAttributes(10, ids.as_ptr(), places.as_mut_ptr(), address) })?;
    let [kind, managed, ordinal, id, device, host, pool, context, start, bytes] = slots;
    if kind == 0 {
        return Ok(None);
    }
    let kind = if managed != 0 {
        Kind::Managed
    } else if kind == 1 {
        Kind::Host
    } else {
        Kind::Device
    };
    let mapped = kind == Kind::Device && context == 0 && pool == 0;
    let (mut start, mut bytes) = (start, bytes);
    let (mut part, mut part_bytes) = (0, 0);
    // What is mapped is a part of what is reserved. Nothing else is asked so: while a free waits for a stream, a real driver
    // lets this question wait for the free.
    let ask = || {
        // SAFETY: places of our own.
        done(unsafe { cu::cuMemGetAddressRange_v2(&mut part, &mut part_bytes, address) })
    };
    // By the device that it is mapped on: another one may not know it.
    if mapped && device::with_device(ordinal as u32 as i32, ask).is_ok() {
        (start, bytes) = (part, part_bytes as u64);
    }
    let host = if kind == Kind::Device { 0 } else { host };
    let ordinal = ordinal as u32 as i32;
    Ok(Some(Behind { kind, ordinal, start, bytes, id, host, device, pool: pool != 0, mapped }))
}

/// `hipPointerAttribute_t`, whose layout never changed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    pub kind: u32,
    pub device: c_int,
    pub device_pointer: u64,
    pub host_pointer: u64,
    pub is_managed: c_int,
    pub flags: u32,
}

const NOWHERE: c_int = -2;

const UNREGISTERED: Attributes =
    Attributes { kind: 0, device: NOWHERE, device_pointer: 0, host_pointer: 0, is_managed: 0, flags: 0 };

/// `hipMemoryType`, whose values were numbered anew with 6.0. Managed memory has one of its own from 5.7 on.
fn memory_type(kind: Kind, version: Version) -> u32 {
    let renumbered = u32::from(version.is_at_least(6, 0));
    match kind {
        Kind::Host => renumbered,
        Kind::Device => 1 + renumbered,
        Kind::Managed if version.is_at_least(6, 0) => 3,
        Kind::Managed if version.is_at_least(5, 7) => 4,
        Kind::Managed => 0,
    }
}

#[cfg_attr(not(feature = "missing-required"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipPointerGetAttributes(attributes: *mut Attributes, address: *const c_void) -> u32 {
    enter("hipPointerGetAttributes", || {
        let version = version();
        if attributes.is_null() || (address.is_null() && !version.is_at_least(7, 0)) {
            return Err(Status::INVALID_VALUE);
        }
        let Some(found) = behind(address.addr() as u64)? else {
            // Not an answer but a failure before 6.0.
            if !version.is_at_least(6, 0) {
                return Err(Status::INVALID_VALUE);
            }
            return unsafe { write(attributes, UNREGISTERED) };
        };
        let answer = Attributes {
            kind: memory_type(found.kind, version),
            device: found.ordinal,
            device_pointer: found.device,
            host_pointer: found.host,
            is_managed: c_int::from(found.kind == Kind::Managed),
            flags: 0,
        };
        unsafe { write(attributes, answer) }
    })
}

/// One attribute, in HIP's own width.
///
/// # Safety
///
/// `place` is null or has room for it.
pub(super) unsafe fn attribute(place: *mut c_void, id: u32, address: u64) -> Result<()> {
    if place.is_null() || address == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let version = version();
    let found = behind(address)?;
    let kind = found.map(|found| found.kind);
    let known = found.map(|_| ()).ok_or(Status::INVALID_VALUE);
    // SAFETY of the writes: by the caller's promise.
    unsafe {
        match id {
            // A context has an address from 6.4.2 on.
            1 if version.0 < 60_443_484 => Err(Status::NOT_SUPPORTED),
            1 => {
                let found = found.ok_or(Status::INVALID_VALUE)?;
                write(place.cast::<Handle>(), device::context(found.ordinal)?)
            }
            // Managed memory is the host's here.
            2 => {
                let kind = if kind == Some(Kind::Managed) { Some(Kind::Host) } else { kind };
                write(place.cast(), kind.map_or(0, |kind| memory_type(kind, version)))?;
                known
            }
            3 => {
                write(place.cast(), found.map_or(0, |found| found.device))?;
                known
            }
            4 => {
                let host = found.map_or(0, |found| found.host);
                write(place.cast(), host)?;
                if host == 0 { Err(Status::INVALID_VALUE) } else { Ok(()) }
            }
            // Whether memory operations on it wait, whether it is managed, whether it is mapped: a byte each.
            6 | 8 | 13 => {
                let answer = match id {
                    6 => false,
                    8 => kind == Some(Kind::Managed),
                    _ => found.is_some(),
                };
                write(place.cast::<u8>(), u8::from(answer))?;
                known
            }
            // Half as wide as CUDA's.
            7 => {
                write(place.cast::<u32>(), found.map_or(0, |found| found.id as u32))?;
                known
            }
            9 => {
                write(place.cast::<c_int>(), found.map_or(NOWHERE, |found| found.ordinal))?;
                known
            }
            10 if !version.is_at_least(7, 11) => Err(Status::NOT_SUPPORTED),
            10 => {
                let capable = kind == Some(Kind::Device) && !found.is_some_and(|found| found.mapped);
                write(place.cast::<c_int>(), c_int::from(capable))?;
                known
            }
            11 => {
                // The host's, of what both see.
                let start = found.map_or(0, |found| match found.kind {
                    Kind::Host => found.host - (address - found.start),
                    _ => found.start,
                });
                write(place.cast::<u64>(), start)?;
                known
            }
            // Cut to four bytes, and the others are left as they were.
            12 => {
                write(place.cast::<u32>(), found.map_or(0, |found| found.bytes as u32))?;
                known
            }
            16 => write(place.cast::<u32>(), 0),
            5 | 14 | 15 | 17 => Err(Status::NOT_SUPPORTED),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemGetAddressRange(base: *mut Handle, bytes: *mut usize, address: Handle) -> u32 {
    enter("hipMemGetAddressRange", || {
        let found = behind(address.addr() as u64)?.ok_or(Status::NOT_FOUND)?;
        // Registered memory that the device sees elsewhere has no base.
        let elsewhere = found.kind == Kind::Host && found.host != found.device;
        let start = if elsewhere { 0 } else { found.start };
        if (base.is_null() || bytes.is_null()) && !version().is_at_least(7, 13) {
            eprintln!(
                "simulated HIP: hipMemGetAddressRange ends the process over a null place before ROCm 7.13"
            );
        }
        unsafe {
            write(base, std::ptr::with_exposed_provenance_mut(start as usize))?;
            write(bytes, found.bytes as usize)
        }
    })
}

/// Tells the runtime of a variable that is `__managed__`.
#[cfg(not(forward))]
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_simulated_declare_managed(address: *mut c_void, bytes: u64) {
    let entry = known::Entry { what: Known::Managed, bytes, ordinal: device::current() };
    known::lock().add(address.expose_provenance() as u64, entry);
}

/// Tells the runtime of memory that another client of HSA has.
#[cfg(not(forward))]
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_simulated_declare_foreign(address: *mut c_void, bytes: u64) {
    let entry = known::Entry { what: Known::Foreign, bytes, ordinal: 0 };
    known::lock().add(address.expose_provenance() as u64, entry);
}
