//! Copies and rewinds: as kernels over lists of ranges, and as the driver's own calls where those are enough.

use std::ffi::c_void;

use super::driver::call;
use super::kernel::Shape;
use super::list;
use super::long_lists::{self, LONG_LIST};
use super::moves::{self, is_long_move};
use super::stream::{GpuStream, Queueing};
use crate::backend::{CopyRange, RoomReset, ScrubRange};
use crate::backends::kernels::{self, COPY_LIST, FILL_LIST, FillList, FillRange as KernelFill};
use crate::error::{Error, Result};
use crate::pointer::MemoryKind;

/// Threads of a block that writes a whole tile.
pub(super) const THREADS: u32 = 256;

/// A single range of this size or more is the driver's to copy, which is a little faster than the kernel then: by 5% at
/// 1 GiB on an H200.
const LARGE: usize = 64 << 20;

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

pub(super) fn overlaps(range: &CopyRange) -> bool {
    let (destination, source) = (range.destination.addr() as u64, range.source.addr() as u64);
    kernels::overlaps_itself(destination, source, range.bytes as u64)
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
    for part in ranges.chunks(LONG_LIST) {
        // SAFETY: the caller's promise is the same.
        unsafe { copy_part(stream, part) }?;
    }
    Ok(())
}

/// # Safety
///
/// As [`copy`]; there are no more ranges than a long list holds.
unsafe fn copy_part(stream: &GpuStream, ranges: &[CopyRange]) -> Result<()> {
    // The memory of a long list, and of a long move, is used again, so that a graph which reads it would read another's.
    let is_short = ranges.len() <= COPY_LIST;
    if is_short && !ranges.iter().any(is_long_move) || stream.is_capturing()? {
        return ranges.chunks(COPY_LIST).try_for_each(|few| {
            // SAFETY: the caller's promise is the same.
            unsafe { list::copy_few(stream, few) }
        });
    }
    if !is_short {
        let has_none_in_parts = || {
            let least = moves::least_in_parts(ranges);
            least == 0 || !ranges.iter().any(|range| moves::is_in_parts(range, least))
        };
        // SAFETY: as above.
        if unsafe { long_lists::copy(stream, ranges, has_none_in_parts) }? {
            return Ok(());
        }
    }
    let least = moves::least_in_parts(ranges);
    let is_in_parts = |range: &CopyRange| moves::is_in_parts(range, least);
    for part in ranges.split_inclusive(is_in_parts) {
        let (long, rest) = match part.split_last() {
            Some((last, rest)) if is_in_parts(last) => (Some(last), rest),
            _ => (None, part),
        };
        if rest.len() <= COPY_LIST {
            // SAFETY: as above.
            unsafe { list::copy_few(stream, rest) }?;
        } else {
            // SAFETY: as above.
            unsafe { long_lists::copy(stream, rest, || true) }?;
        }
        if let Some(long) = long {
            // SAFETY: as above.
            unsafe { moves::copy(stream, long) }?;
        }
    }
    Ok(())
}

pub(super) fn as_argument<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
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
        let places = list.ranges.iter_mut().zip(&mut list.first_tiles);
        for ((place, first_tile), range) in places.zip(part.iter().filter(|range| range.bytes != 0)) {
            let (address, bytes) = (range.address.addr() as u64, range.bytes as u64);
            *place = KernelFill { address, bytes, value: u64::from(range.value) };
            *first_tile = tiles;
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
        let limits = stream.device().limits;
        let blocks = u32::try_from(tiles).unwrap_or(u32::MAX).clamp(1, limits.looping_blocks());
        let shape =
            Shape { grid: [blocks, 1, 1], block: [THREADS.min(limits.block_threads), 1, 1], shared_bytes: 0 };
        // SAFETY: the arguments are as the kernel declares them; room and ranges are the caller's.
        unsafe { kernel.launch(stream, shape, &mut arguments) }?;
    }
    Ok(())
}

/// The error for work without a stream, which a device does not take.
pub(super) fn needs_stream() -> Error {
    Error::Option { option: "stream", reason: "a device works in the order of a stream alone" }
}
