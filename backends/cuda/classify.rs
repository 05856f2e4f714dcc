//! What the driver says of a pointer. One batched query, never the singular one: that fails for memory that the driver
//! does not know, and takes several times as long on drivers from 580 on. No context is made or needed.

use std::ffi::{c_uint, c_void};

use cudarc::driver::sys::{CUmemorytype as MemoryType, CUpointer_attribute as Attribute};

use super::CudaDriver;
use super::attributes::{Answers, MOST};
use crate::backend::Vendor;
use crate::backends::gpu::devices;
use crate::backends::gpu::driver::{self, Driver, OutsideCaptures};
use crate::error::{Error, Result};
use crate::pointer::{AllocationOrigin, MemoryKind, PointerInfo};

impl CudaDriver {
    /// # Safety
    ///
    /// As [`crate::backend::Backend::classify`].
    #[inline]
    pub(super) unsafe fn classify_pointer(&self, pointer: *const u8) -> Result<PointerInfo> {
        if pointer.is_null() {
            return Ok(PointerInfo::UNREGISTERED);
        }
        let mut answers = Answers::default();
        let first = (&raw mut answers).cast::<u64>();
        let mut slots: [*mut c_void; MOST] = std::array::from_fn(|at| first.wrapping_add(at).cast());
        let ids = self.attributes.ids();
        let function = self.own.pointer_attributes;
        let count = self.attributes.count() as u32;
        // SAFETY: each attribute has a slot of eight bytes, and no attribute is wider. The driver takes the identifiers
        // through a pointer that its header lacks a `const` for.
        let code = unsafe { (function.call)(count, ids, slots.as_mut_ptr(), pointer.addr() as u64) };
        if code != 0 {
            return Err(driver::error(self, function.name, code));
        }
        self.decide(pointer, &answers)
    }

    /// The class by the driver's answers. Managed comes first: its memory has a type as well.
    #[inline]
    fn decide(&self, pointer: *const u8, answers: &Answers) -> Result<PointerInfo> {
        const UNREGISTERED: u32 = 0;
        const HOST: u32 = MemoryType::CU_MEMORYTYPE_HOST as u32;
        const DEVICE: u32 = MemoryType::CU_MEMORYTYPE_DEVICE as u32;
        const UNIFIED: u32 = MemoryType::CU_MEMORYTYPE_UNIFIED as u32;
        let memory_type = answers.memory_type();
        if memory_type == UNREGISTERED && !answers.is_managed() {
            return Ok(match answers.range() {
                None => self.unregistered(),
                Some(range) => PointerInfo {
                    kind: MemoryKind::Unmapped,
                    vendor: Some(Vendor::Cuda),
                    allocation: Some(range),
                    origin: AllocationOrigin::Virtual,
                    ..PointerInfo::UNREGISTERED
                },
            });
        }
        let origin = if answers.is_pooled() {
            AllocationOrigin::Pool
        } else if answers.context() != 0 || answers.is_managed() {
            AllocationOrigin::Direct
        } else {
            // No context, by design: memory that was mapped into reserved addresses.
            AllocationOrigin::Virtual
        };
        let no_ordinal = || Error::Driver {
            vendor: Vendor::Cuda,
            operation: self.own.pointer_attributes.name,
            code: i64::from(memory_type),
            name: "memory of a device without an ordinal",
        };
        let kind = match memory_type {
            _ if answers.is_managed() => MemoryKind::Managed { ordinal: answers.ordinal() },
            // A pool's memory, and mapped memory, can be called host memory and be a device's.
            HOST if origin == AllocationOrigin::Direct => MemoryKind::PinnedHost,
            HOST | DEVICE | UNIFIED => {
                MemoryKind::Device { ordinal: answers.ordinal().ok_or_else(no_ordinal)? }
            }
            _ => return Err(no_ordinal()),
        };
        let allocation = if origin == AllocationOrigin::Virtual {
            // The range that the query answers is the reservation, of which parts may not be mapped.
            self.mapped_range(pointer)
        } else {
            answers.range()
        };
        let (vendor, buffer_id) = (Some(Vendor::Cuda), answers.buffer_id());
        let context = answers.context();
        Ok(PointerInfo {
            kind,
            vendor,
            allocation,
            buffer_id,
            origin,
            context,
            is_device_accessible: true,
            ..PointerInfo::UNREGISTERED
        })
    }

    /// Pageable memory is no driver's, but there are devices that reach it.
    fn unregistered(&self) -> PointerInfo {
        PointerInfo {
            is_device_accessible: devices::reaches_pageable_memory(self),
            ..PointerInfo::UNREGISTERED
        }
    }

    /// The mapped part around a pointer, where the driver says: a newer one in a query of its own, which needs no context,
    /// an older one where a context is current.
    #[cold]
    fn mapped_range(&self, pointer: *const u8) -> Option<(usize, usize)> {
        let (mut start, mut bytes) = (0u64, 0u64);
        let mut ids = [
            Attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR as c_uint,
            Attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE as c_uint,
        ];
        let mut slots = [(&raw mut start).cast::<c_void>(), (&raw mut bytes).cast()];
        // SAFETY: each attribute has a slot of eight bytes.
        let code = unsafe {
            (self.own.pointer_attributes.call)(
                ids.len() as c_uint,
                ids.as_mut_ptr(),
                slots.as_mut_ptr(),
                pointer.addr() as u64,
            )
        };
        if code == 0 && bytes != 0 {
            return Some((start as usize, bytes as usize));
        }
        let _outside = OutsideCaptures::new(self);
        let (mut start, mut bytes) = (0, 0);
        // SAFETY: the driver writes one address and one size.
        let code = unsafe {
            (self.table().address_range.call)(&raw mut start, &raw mut bytes, pointer.addr() as u64)
        };
        (code == 0 && bytes != 0).then_some((start as usize, bytes))
    }
}
