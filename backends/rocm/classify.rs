//! What the runtime says of a pointer. The structure of its answer has been the same since 5.2, but the numbers in it have
//! not, and neither has the answer for memory that it does not know: the version that the runtime names decides.

use std::ffi::c_int;

use super::{RocmDriver, Version};
use crate::backend::Vendor;
use crate::backends::gpu::devices;
use crate::backends::gpu::driver::{self, Driver};
use crate::error::{Error, Result};
use crate::pointer::{AllocationOrigin, MemoryKind, PointerInfo};

/// `hipPointerAttribute_t`, as every version from 5.2 on lays it out.
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
struct Answer {
    memory_type: c_int,
    device: c_int,
    device_pointer: usize,
    host_pointer: usize,
    is_managed: c_int,
    allocation_flags: u32,
}

const _: () = assert!(size_of::<Answer>() == 32 && align_of::<Answer>() == 8);

/// Room for a structure that a later version may have made longer.
#[derive(Debug, Default)]
#[repr(C)]
struct Room {
    answer: Answer,
    _later: [u64; 28],
}

const INVALID_VALUE: u32 = 1;
const NOT_FOUND: u32 = 500;

/// The number of the attribute that tells allocations apart.
const BUFFER_ID: u32 = 7;
/// That of the attribute that tells where an allocation begins.
const RANGE_START: u32 = 11;

/// What a memory type means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Unregistered,
    Host,
    Device,
    Managed,
}

/// A memory type by the runtime's version: 1 is a device's up to 5, and the host's from 6 on. None for arrays, which have no
/// addresses, and for numbers that no version has.
fn class_of(version: Version, memory_type: c_int, is_managed: bool) -> Option<Class> {
    let class = if version < Version::new(6, 0) {
        match memory_type {
            0 => Class::Host,
            1 => Class::Device,
            // Unified; managed, from 5.5 on.
            3 | 4 => Class::Managed,
            _ => return None,
        }
    } else {
        match memory_type {
            0 => Class::Unregistered,
            1 => Class::Host,
            2 => Class::Device,
            // Managed; unified.
            3 | 11 => Class::Managed,
            _ => return None,
        }
    };
    // Up to 5.6 managed memory is the host's, and this alone tells it.
    Some(if is_managed && class != Class::Unregistered { Class::Managed } else { class })
}

impl RocmDriver {
    /// # Safety
    ///
    /// As [`crate::backend::Backend::classify`].
    pub(super) unsafe fn classify_pointer(&self, pointer: *const u8) -> Result<PointerInfo> {
        // Versions answer differently for null, which is nobody's memory.
        if pointer.is_null() {
            return Ok(PointerInfo::UNREGISTERED);
        }
        let address = pointer.addr();
        self.first.beside(|| self.ask(std::ptr::without_provenance(address)))?
    }

    fn ask(&self, pointer: *const u8) -> Result<PointerInfo> {
        let mut room = Room::default();
        let function = self.own.pointer_attributes;
        // SAFETY: the runtime writes one structure, for which there is more than enough room; the pointer is not followed.
        match unsafe { (function.call)((&raw mut room).cast(), pointer.cast()) } {
            0 => {}
            // What is not the runtime's is an error of the question up to 5, and an answer from 6 on.
            INVALID_VALUE if self.version < Version::new(6, 0) => return Ok(self.unregistered()),
            code => return Err(driver::error(self, function.name, code)),
        }
        let answer = room.answer;
        let Some(class) = class_of(self.version, answer.memory_type, answer.is_managed != 0) else {
            return Err(self.senseless(&answer, "a type of memory that has no addresses"));
        };
        // Registered host pages can have a second address, which is a device's alone: the host must not follow it.
        let (own, host) = (pointer.addr(), answer.host_pointer);
        let is_of_device = class == Class::Host && host != own;
        if is_of_device && answer.device_pointer != own {
            return Err(self.senseless(&answer, "an address of neither the host nor the current device"));
        }
        let kind = match class {
            _ if is_of_device => MemoryKind::Device { ordinal: self.ordinal(&answer)? },
            Class::Unregistered => return Ok(self.unregistered()),
            Class::Host => MemoryKind::PinnedHost,
            Class::Device => MemoryKind::Device { ordinal: self.ordinal(&answer)? },
            Class::Managed => MemoryKind::Managed { ordinal: self.ordinal(&answer).ok() },
        };
        let allocation = self.range(pointer, host)?;
        if let (Class::Device, Some(Range::Endless)) = (class, allocation) {
            // Whose it is, the runtime does not know: it says the first device of any such memory. Up to 5.6 that can be
            // pageable memory, where devices reach it.
            return Err(self.senseless(&answer, "memory that this runtime has not made"));
        }
        let allocation = match allocation {
            Some(Range::Of(start, bytes)) => Some((start, bytes)),
            _ => None,
        };
        Ok(PointerInfo {
            kind,
            vendor: Some(Vendor::Rocm),
            allocation,
            buffer_id: self.buffer_id(pointer),
            // The runtime says nothing of pools, of other processes and of how memory was mapped.
            origin: AllocationOrigin::Unknown,
            is_device_accessible: true,
            ..PointerInfo::UNREGISTERED
        })
    }

    /// Pageable memory is no runtime's, but there are devices that reach it.
    fn unregistered(&self) -> PointerInfo {
        let is_device_accessible = devices::reaches_pageable_memory(self);
        PointerInfo { is_device_accessible, ..PointerInfo::UNREGISTERED }
    }

    fn ordinal(&self, answer: &Answer) -> Result<u32> {
        let count = devices::described(self)?.len();
        let ordinal = u32::try_from(answer.device).ok().filter(|&ordinal| (ordinal as usize) < count);
        ordinal.ok_or_else(|| self.senseless(answer, "memory of a device that there is not"))
    }

    /// An answer that must not be believed.
    #[cold]
    fn senseless(&self, answer: &Answer, name: &'static str) -> Error {
        let (operation, code) = (self.own.pointer_attributes.name, i64::from(answer.memory_type));
        Error::Driver { vendor: Vendor::Rocm, operation, code, name }
    }

    /// The allocation around a pointer that the host may know by another address. The attributes that would say the same hold no more than 32 bits of its size.
    fn range(&self, pointer: *const u8, host: usize) -> Result<Option<Range>> {
        let (mut start, mut bytes) = (0, 0);
        let function = self.table().address_range;
        // SAFETY: the runtime writes one address and one size. Versions before 7.13 do not check that there is room.
        match unsafe { (function.call)(&raw mut start, &raw mut bytes, pointer.addr() as u64) } {
            0 => {}
            NOT_FOUND => return Ok(None),
            code => return Err(driver::error(self, function.name, code)),
        }
        if bytes > isize::MAX as usize {
            return Ok(Some(Range::Endless));
        }
        // Of registered memory the start can be null, or that by the other address.
        let offset = |start: usize| {
            let offsets = [pointer.addr(), host].map(|at| at.checked_sub(start));
            offsets.into_iter().flatten().find(|&offset| start != 0 && offset < bytes)
        };
        let offset = offset(start as usize).or_else(|| offset(self.range_start(pointer)?));
        let start = offset.and_then(|offset| pointer.addr().checked_sub(offset));
        Ok(start.map(|start| Range::Of(start, bytes)))
    }

    /// Where an allocation begins; of registered memory, by the host's address.
    fn range_start(&self, pointer: *const u8) -> Option<usize> {
        let function = self.own.pointer_attribute?;
        let mut start = 0usize;
        // SAFETY: the runtime writes one address.
        let code = unsafe { (function.call)((&raw mut start).cast(), RANGE_START, pointer.addr() as u64) };
        (code == 0).then_some(start)
    }

    /// The allocation's own number. The runtime writes 32 bits of it.
    fn buffer_id(&self, pointer: *const u8) -> Option<u64> {
        let function = self.own.pointer_attribute?;
        let mut id = 0u64;
        // SAFETY: the attribute takes four bytes at most, and there is room for eight.
        let code = unsafe { (function.call)((&raw mut id).cast(), BUFFER_ID, pointer.addr() as u64) };
        (code == 0 && id != 0).then_some(id)
    }
}

/// What the runtime says of where an allocation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    /// Its start and its size in bytes.
    Of(usize, usize),
    /// The whole address space: what stands for memory that other users of the hardware have made.
    Endless,
}

#[cfg(test)]
mod tests {
    use super::*;

    const V5_2: Version = Version::new(5, 2);
    const V5_7: Version = Version::new(5, 7);
    const V6_0: Version = Version::new(6, 0);
    const V10_0: Version = Version::new(10, 0);

    #[test]
    fn one_is_a_device_up_to_5_and_the_host_from_6_on() {
        for version in [V5_2, V5_7, Version(59_999_999)] {
            assert_eq!(class_of(version, 1, false), Some(Class::Device));
            assert_eq!(class_of(version, 0, false), Some(Class::Host));
        }
        for version in [V6_0, Version(60_241_134), Version(70_226_015), V10_0] {
            assert_eq!(class_of(version, 1, false), Some(Class::Host));
            assert_eq!(class_of(version, 2, false), Some(Class::Device));
            assert_eq!(class_of(version, 0, false), Some(Class::Unregistered));
        }
    }

    #[test]
    fn managed_memory_is_known_in_each_of_its_spellings() {
        assert_eq!(class_of(V5_2, 0, true), Some(Class::Managed));
        assert_eq!(class_of(V5_7, 4, true), Some(Class::Managed));
        assert_eq!(class_of(V5_7, 4, false), Some(Class::Managed));
        assert_eq!(class_of(V6_0, 3, true), Some(Class::Managed));
        assert_eq!(class_of(V10_0, 3, false), Some(Class::Managed));
        assert_eq!(class_of(V10_0, 1, true), Some(Class::Managed));
    }

    #[test]
    fn arrays_and_unknown_numbers_are_no_class() {
        for (version, numbers) in [(V5_2, [2, 5, 10, -1]), (V6_0, [4, 10, 12, -2])] {
            for number in numbers {
                assert_eq!(class_of(version, number, false), None, "{version:?} {number}");
            }
        }
    }
}
