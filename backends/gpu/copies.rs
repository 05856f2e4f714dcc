//! Copies and rewinds: as kernels over lists of ranges, and as the driver's own calls where those are enough.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::blocks;
use super::driver::call;
use super::event::GpuEvent;
use super::kernel::{Kernel, Shape};
use super::stream::{GpuStream, Queueing};
use crate::backend::{Block, CopyRange, Placement, RoomReset, ScrubRange};
use crate::backends::kernels::{
    self, COPY_LIST, CopyList, CopyRange as KernelCopy, FILL_LIST, FillList, FillRange as KernelFill,
};
use crate::error::{Error, Result};
use crate::pointer::MemoryKind;

/// Blocks of a launch for each multiprocessor, at most: enough to keep its memory busy. Measured on an H200, as are the
/// threads below.
pub(super) const BLOCKS_EACH: u32 = 32;

/// Threads of a block, by what a block moves at a time. Where tiles are small, more threads have nothing to do and keep
/// other blocks away; a range that overlaps itself has one block alone.
pub(super) const THREADS: u32 = 256;
pub(super) const THREADS_OF_SMALL_TILES: u32 = 64;
const THREADS_OF_OVERLAPS: u32 = 1024;

/// Bytes of a tile below which it counts as small.
pub(super) const SMALL_TILE: u64 = 8 << 10;

/// A single range of this size or more is the driver's to copy, which is a little faster than the kernel then: by 5% at
/// 1 GiB on an H200.
const LARGE: usize = 64 << 20;

/// Ranges of one list in pinned memory.
const LONG_LIST: usize = 4096;

/// Lists that can be on their way at once.
const LISTS: usize = 4;

/// Pinned memory that holds long lists until their launch has passed.
#[derive(Debug, Default)]
pub(super) struct Lists(Mutex<Vec<List>>);

#[derive(Debug)]
struct List {
    block: Block,
    /// Behind the launch that reads the list.
    event: GpuEvent,
}

impl Lists {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<List>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the lists, each once its launch has passed: a capture of the stream that began behind that has nothing to say to
    /// it. A list that can't be waited for is left to the driver, which may read it still.
    pub(super) fn free(&self) {
        let lists = std::mem::take(&mut *self.lock());
        for list in lists {
            if list.event.wait(None).is_err_and(|error| !error.is_of_lost_device()) {
                continue;
            }
            // SAFETY: the list was taken out, and the launch that read it has passed, or its device is lost.
            let _ = unsafe { blocks::free(None, list.block) };
        }
    }

    /// A list that no launch reads any more.
    fn take(&self, stream: &GpuStream) -> Result<List> {
        let mut lists = self.lock();
        let mut free = None;
        for (at, list) in lists.iter().enumerate() {
            if list.event.has_passed()? {
                free = Some(at);
                break;
            }
        }
        if free.is_none() && lists.len() >= LISTS {
            // The first was launched first.
            lists.first().map_or(Ok(true), |list| list.event.wait(None))?;
            free = Some(0);
        }
        if let Some(at) = free {
            return Ok(lists.remove(at));
        }
        drop(lists);
        let event = GpuEvent::new(stream.device())?;
        let bytes = LONG_LIST * size_of::<KernelCopy>();
        Ok(List { block: blocks::allocate(stream.device(), Placement::HostCoherent, bytes)?, event })
    }
}

/// Whether both ends are devices' memory: a copy between two places of the host's is one that the driver makes the host
/// wait for.
fn is_on_devices(stream: &GpuStream, range: &CopyRange) -> Result<bool> {
    let is_device = |pointer| {
        // SAFETY: the range is live by the copy's caller.
        let info = unsafe { stream.driver().classify(pointer) }?;
        Ok::<_, Error>(matches!(info.kind, MemoryKind::Device { .. }))
    };
    Ok(is_device(range.destination.cast_const())? && is_device(range.source)?)
}

fn overlaps(range: &CopyRange) -> bool {
    range.destination.addr().abs_diff(range.source.addr()) < range.bytes
}

/// # Safety
///
/// As [`crate::backend::Backend::copy`].
pub(super) unsafe fn copy(stream: &GpuStream, ranges: &[CopyRange]) -> Result<()> {
    if let [range] = ranges
        && range.bytes >= LARGE
        && !overlaps(range)
        && is_on_devices(stream, range)?
    {
        let queueing = stream.queue("copy")?;
        // SAFETY: the caller's promise is the same.
        return unsafe { transfer(stream, &queueing, *range) };
    }
    // The memory of a long list is used again, so that a graph which reads it would read another's.
    if ranges.len() > 4 * COPY_LIST && !stream.is_capturing()? {
        for part in ranges.chunks(LONG_LIST) {
            // SAFETY: the caller's promise is the same.
            unsafe { copy_long(stream, part) }?;
        }
        return Ok(());
    }
    for part in ranges.chunks(COPY_LIST) {
        let mut list = CopyList::default();
        let Written { count, tiles, threads } = write_list(&mut list.ranges, part);
        let kernel = &stream.device().kernels()?.copy_few;
        let mut arguments = [as_argument(&list), as_argument(&count), as_argument(&tiles)];
        // SAFETY: the arguments are as the kernel declares them; the ranges are the caller's promise.
        unsafe { launch(kernel, stream, tiles, threads, &mut arguments) }?;
    }
    Ok(())
}

/// # Safety
///
/// As [`copy`]; there are no more ranges than a long list holds.
unsafe fn copy_long(stream: &GpuStream, ranges: &[CopyRange]) -> Result<()> {
    debug_assert!(ranges.len() <= LONG_LIST);
    let kernel = &stream.device().kernels()?.copy;
    let list = stream.lists.take(stream)?;
    // SAFETY: the block holds as many ranges, the host reaches it, and no launch reads it.
    let places = unsafe {
        std::slice::from_raw_parts_mut(list.block.address.as_ptr().cast::<KernelCopy>(), LONG_LIST)
    };
    let Written { count, tiles, threads } = write_list(places, ranges);
    let address = list.block.address.as_ptr().addr();
    let mut arguments = [as_argument(&address), as_argument(&count), as_argument(&tiles)];
    let shape = shape(stream, tiles, threads);
    // Held until the event is recorded: a capture that began in between would take it.
    let queueing = stream.queue_outside_captures("copy");
    let launched = queueing.and_then(|queueing| {
        // SAFETY: the arguments are as the kernel declares them; the list stays as it is until the event has passed.
        unsafe { kernel.launch_queued(stream, &queueing, shape, &mut arguments) }?;
        // Where no event says when the list is free again, the stream does.
        Ok(list.event.record(stream).or_else(|_| stream.wait_for_borrowed(queueing)).is_ok())
    });
    // One that was refused is free: its event has passed.
    let (noted, launched) = launched.map_or_else(|error| (true, Err(error)), |noted| (noted, Ok(())));
    if noted {
        stream.lists.lock().push(list);
    }
    launched
}

/// What came of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) count: u64,
    pub(super) tiles: u64,
    /// Of a block of its launch.
    pub(super) threads: u32,
}

/// Writes the ranges that are not empty, and where their tiles begin.
pub(super) fn write_list(places: &mut [KernelCopy], ranges: &[CopyRange]) -> Written {
    let (mut count, mut tiles, mut total, mut overlap) = (0, 0, 0u64, false);
    let filled = ranges.iter().filter(|range| range.bytes != 0);
    for (place, range) in places.iter_mut().zip(filled) {
        let (destination, source) = (range.destination.addr() as u64, range.source.addr() as u64);
        let bytes = range.bytes as u64;
        *place = KernelCopy { destination, source, bytes, first_tile: tiles };
        tiles += kernels::copy_tiles(destination, source, bytes);
        total = total.saturating_add(bytes);
        overlap |= overlaps(range);
        count += 1;
    }
    let threads = if overlap {
        THREADS_OF_OVERLAPS
    } else if total / tiles.max(1) < SMALL_TILE {
        THREADS_OF_SMALL_TILES
    } else {
        THREADS
    };
    Written { count, tiles, threads }
}

pub(super) fn as_argument<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

fn shape(stream: &GpuStream, tiles: u64, threads: u32) -> Shape {
    let limits = stream.device().limits;
    let blocks = limits.multiprocessors.saturating_mul(BLOCKS_EACH).max(1);
    let blocks = u32::try_from(tiles).unwrap_or(u32::MAX).clamp(1, blocks);
    let threads = threads.min(limits.block_threads);
    Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }
}

/// # Safety
///
/// As [`Kernel::launch`].
pub(super) unsafe fn launch(
    kernel: &Kernel,
    stream: &GpuStream,
    tiles: u64,
    threads: u32,
    arguments: &mut [*mut c_void],
) -> Result<()> {
    let shape = shape(stream, tiles, threads);
    // SAFETY: the caller's promise is the same.
    unsafe { kernel.launch(stream, shape, arguments) }
}

/// # Safety
///
/// As [`crate::backend::Backend::transfer`].
pub(super) unsafe fn transfer(stream: &GpuStream, _queueing: &Queueing<'_>, range: CopyRange) -> Result<()> {
    if range.bytes == 0 {
        return Ok(());
    }
    let (destination, source) = (range.destination.addr() as u64, range.source.addr() as u64);
    let _current = stream.device().enter("transfer")?;
    // SAFETY: both ends are live by the caller. The driver finds out itself what they are.
    unsafe { stream.driver().copy(destination, source, range.bytes, stream.raw()) }
}

/// # Safety
///
/// As [`crate::backend::Backend::rewind`].
pub(super) unsafe fn rewind(
    stream: &GpuStream,
    reset: Option<&RoomReset>,
    ranges: &[ScrubRange],
) -> Result<()> {
    if let (None, [range]) = (reset, ranges) {
        let _queueing = stream.queue("rewind")?;
        let _current = stream.device().enter("rewind")?;
        let (address, value) = (range.address.addr() as u64, range.value);
        // SAFETY: the caller holds the range.
        return unsafe { call!(stream.driver(), fill(address, value, range.bytes, stream.raw())) };
    }
    let kernel = &stream.device().kernels()?.rewind;
    let mut reset = reset;
    let mut rest = ranges;
    while reset.is_some() || !rest.is_empty() {
        let part;
        (part, rest) = rest.split_at(rest.len().min(FILL_LIST));
        let mut list = FillList::default();
        let (mut count, mut tiles) = (0u64, 0u64);
        for (place, range) in list.ranges.iter_mut().zip(part.iter().filter(|range| range.bytes != 0)) {
            let (address, bytes) = (range.address.addr() as u64, range.bytes as u64);
            *place = KernelFill { address, bytes, value: u64::from(range.value), first_tile: tiles };
            tiles += kernels::fill_tiles(address, bytes);
            count += 1;
        }
        let RoomReset { room, base, capacity, alignment, generation } =
            reset.take().copied().unwrap_or(RoomReset::NONE);
        let mut arguments = [
            as_argument(&room),
            as_argument(&base),
            as_argument(&capacity),
            as_argument(&alignment),
            as_argument(&generation),
            as_argument(&list),
            as_argument(&count),
            as_argument(&tiles),
        ];
        // SAFETY: the arguments are as the kernel declares them; room and ranges are the caller's.
        unsafe { launch(kernel, stream, tiles, THREADS, &mut arguments) }?;
    }
    Ok(())
}

/// The error for work without a stream, which a device does not take.
pub(super) fn needs_stream() -> Error {
    Error::Option { option: "stream", reason: "a device works in the order of a stream alone" }
}
