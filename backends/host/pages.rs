//! Blocks of host memory: zeroed pages straight from the operating system.

use std::ptr::NonNull;

use memmap2::{MmapOptions, MmapRaw};

use crate::backend::{Block, Origin, Vendor};
use crate::error::{Error, Result};

/// The alignment of blocks and the step of their sizes, in bytes: the smallest page of any system that the crate
/// runs on.
pub(super) const PAGE: usize = 4096;

/// The size of a huge page on x86-64 and on arm64 with 4 KiB pages. A block of this size or more starts at such
/// a boundary and asks for huge pages.
const HUGE_PAGE: usize = 2 << 20;

/// Blocks of this size or more are held against the memory that the system has available.
const LARGE: usize = 64 << 20;

pub(super) fn allocate(bytes: usize) -> Result<Block> {
    let out_of_memory = || Error::OutOfMemory {
        vendor: Vendor::Host,
        operation: "mmap",
        requested: bytes,
        free: free_bytes(),
        total: total_bytes(),
    };
    let bytes = bytes.checked_next_multiple_of(PAGE).ok_or_else(out_of_memory)?;
    // A system that overcommits grants what it does not have, and ends the process at the touch.
    if bytes >= LARGE && free_bytes().is_some_and(|free| bytes as u64 > free) {
        return Err(out_of_memory());
    }
    let slack = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 0 };
    let mapped = bytes.checked_add(slack).filter(|&mapped| mapped <= isize::MAX as usize);
    let mapped = mapped.ok_or_else(out_of_memory)?;
    let pages = MmapOptions::new().len(mapped).map_anon().map_err(|_| out_of_memory())?;
    let start = if slack == 0 { 0 } else { pages.as_ptr().align_offset(HUGE_PAGE) };
    if slack != 0 {
        prefer_huge_pages(&pages, start, bytes);
    }
    let pages = MmapRaw::from(pages);
    // SAFETY: `start` is below the slack, so `start + bytes` lies within the `mapped` bytes of the mapping.
    let address = unsafe { pages.as_mut_ptr().add(start) };
    let address = NonNull::new(address).ok_or_else(out_of_memory)?;
    // SAFETY: the `bytes` bytes from `address` are inside the fresh mapping, which nobody else knows yet.
    unsafe { touch(address, bytes) };
    Ok(Block { address, bytes, origin: Origin::Pages(pages) })
}

#[cfg(target_os = "linux")]
fn prefer_huge_pages(pages: &memmap2::MmapMut, start: usize, bytes: usize) {
    // A kernel without huge pages says no, and ordinary ones serve as well.
    let _ = pages.advise_range(memmap2::Advice::HugePage, start, bytes);
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages(_pages: &memmap2::MmapMut, _start: usize, _bytes: usize) {}

/// Writes one byte a page, so that the pages belong to the memory node of the calling thread (the first touch
/// decides) and a steady call takes no page fault.
///
/// # Safety
///
/// The caller holds the `bytes` bytes from `address` alone, and they are zero.
unsafe fn touch(address: NonNull<u8>, bytes: usize) {
    debug_assert!(bytes.is_multiple_of(PAGE));
    for offset in (0..bytes).step_by(PAGE) {
        // SAFETY: the offset is below `bytes`; volatile, so that writing a zero over a zero is not left out.
        unsafe { address.add(offset).write_volatile(0) };
    }
}

/// The memory that the system has available, where it says so in a file.
pub(super) fn free_bytes() -> Option<u64> {
    memory_line("MemAvailable:")
}

/// The memory of the machine, where the system says it in a file.
pub(super) fn total_bytes() -> Option<u64> {
    memory_line("MemTotal:")
}

/// A line of `/proc/meminfo`, which Linux has, in bytes.
fn memory_line(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
