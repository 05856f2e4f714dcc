//! Blocks from a driver: device memory, and pinned host pages that the device reaches.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use super::device::Device;
use super::driver::{OutsideCaptures, call, error, status};
use super::stream::GpuStream;
use crate::backend::{Block, Origin, Placement};
use crate::error::{Error, Refused, Result};

/// The alignment that the drivers promise for every allocation, in bytes.
pub(super) const ALIGNMENT: usize = 256;

/// What frees a block.
#[derive(Debug)]
pub(crate) struct Allocation {
    device: Arc<Device>,
    placement: Placement,
}

pub(super) fn allocate(device: &Arc<Device>, placement: Placement, bytes: usize) -> Result<Block> {
    let operation = device.driver.table().mem_alloc.name;
    let rounded = bytes.checked_next_multiple_of(ALIGNMENT).filter(|&bytes| bytes <= isize::MAX as usize);
    let Some(rounded) = rounded else { return Err(out_of_memory(device, operation, bytes)) };
    let _current = device.enter("allocate")?;
    let _outside = OutsideCaptures::new(device.driver);
    let table = device.driver.table();
    let address = if placement == Placement::HostCoherent {
        let mut pages: *mut c_void = std::ptr::null_mut();
        // SAFETY: the driver writes one pointer.
        let code =
            unsafe { (table.host_alloc.call)(&raw mut pages, rounded, device.driver.coherent_flags()) };
        checked(device, table.host_alloc.name, code, bytes)?;
        check_one_address(device, pages).inspect_err(|_| {
            // SAFETY: the pages were just made, and nobody knows them.
            let _ = unsafe { call!(device.driver, host_free(pages)) };
        })?;
        pages.cast::<u8>()
    } else {
        let mut address = 0;
        // SAFETY: the driver writes one address.
        let code = unsafe { (table.mem_alloc.call)(&raw mut address, rounded) };
        checked(device, operation, code, bytes)?;
        std::ptr::with_exposed_provenance_mut(address as usize)
    };
    debug_assert!(address.addr().is_multiple_of(ALIGNMENT));
    let Some(address) = NonNull::new(address) else { return Err(out_of_memory(device, operation, bytes)) };
    let origin = Origin::Gpu(Allocation { device: Arc::clone(device), placement });
    Ok(Block { address, bytes: rounded, origin })
}

/// An error where the device knows host pages by another address than the host does: with unified addresses, which every
/// 64-bit system has, none does.
fn check_one_address(device: &Device, pages: *mut c_void) -> Result<()> {
    if device.address_of(pages.cast())? == pages.addr() as u64 {
        return Ok(());
    }
    Err(Error::Option { option: "placement", reason: "the device has an address of its own for host pages" })
}

fn checked(device: &Arc<Device>, operation: &'static str, code: u32, bytes: usize) -> Result<()> {
    match code {
        0 => Ok(()),
        status::OUT_OF_MEMORY => Err(out_of_memory(device, operation, bytes)),
        code => Err(error(device.driver, operation, code)),
    }
}

#[cold]
fn out_of_memory(device: &Device, operation: &'static str, requested: usize) -> Error {
    let memory = device.memory().ok();
    Error::OutOfMemory {
        vendor: device.driver.vendor(),
        operation,
        requested,
        free: memory.map(|(free, _)| free),
        total: memory.map(|(_, total)| total),
    }
}

/// # Safety
///
/// As [`crate::backend::Backend::free`].
pub(super) unsafe fn free(stream: Option<&GpuStream>, block: Block) -> Result<(), Refused<Block>> {
    let Origin::Gpu(allocation) = &block.origin else {
        let vendor = stream.map_or(crate::backend::Vendor::Host, |stream| stream.driver().vendor());
        return Err(Refused::new(crate::backend::wrong_vendor("free", "block", vendor), block));
    };
    match stream.map_or(Ok(()), GpuStream::synchronize).and_then(|()| free_at(allocation, &block)) {
        Ok(()) => Ok(()),
        Err(error) => Err(Refused::new(error, block)),
    }
}

fn free_at(allocation: &Allocation, block: &Block) -> Result<()> {
    let device = &allocation.device;
    let _current = device.enter("free")?;
    let _outside = OutsideCaptures::new(device.driver);
    let table = device.driver.table();
    let address = block.address.as_ptr();
    let (operation, code) = if allocation.placement == Placement::HostCoherent {
        // SAFETY: the block is the caller's alone, and was made by the twin of this function.
        (table.host_free.name, unsafe { (table.host_free.call)(address.cast()) })
    } else {
        // SAFETY: as above.
        (table.mem_free.name, unsafe { (table.mem_free.call)(address.addr() as u64) })
    };
    match code {
        0 | status::DEINITIALIZED => Ok(()),
        code => Err(error(device.driver, operation, code)),
    }
}
