//! A list of ranges as the copy kernels read it, and how they are launched over it.

use super::copies::as_argument;
use super::device::{CopyKernels, Kernels, Limits};
use super::kernel::Shape;
use super::stream::{GpuStream, Queueing};
use crate::backend::CopyRange;
use crate::backends::kernels::{
    COPY_LIST, COPY_THREADS, CopyList, CopyRange as KernelCopy, SHORT_THREADS, TEAM, TileCount, TileKind,
    Tiling,
};
use crate::error::Result;

/// Threads of a block that moves a tile: it holds half a tile at once. Measured on an H200, with a block for each tile.
const THREADS: u32 = 128;

/// What came of a list: its length, and how its ranges are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    count: u64,
    tiling: Tiling,
}

/// Words of 64 bits that a range takes in a list in memory: its own, and one for the tiles before it.
pub(super) const RANGE_WORDS: usize = size_of::<KernelCopy>() / size_of::<u64>() + 1;

impl Listed {
    /// Writes the ranges, and how many tiles there are before each unless all have as many. There are places for all.
    fn write<Count: TileCount>(
        places: &mut [KernelCopy],
        first_tiles: &mut [Count],
        ranges: &[CopyRange],
    ) -> Self {
        let ranges = ranges.iter().map(|range| KernelCopy {
            destination: range.destination.addr() as u64,
            source: range.source.addr() as u64,
            bytes: range.bytes as u64,
        });
        Self { count: ranges.len() as u64, tiling: Tiling::write(places, first_tiles, ranges) }
    }

    /// Writes a list for memory that the device reads: [`RANGE_WORDS`] for each range at most.
    pub(super) fn write_words(words: &mut [u64], ranges: &[CopyRange]) -> Self {
        debug_assert!(words.len() >= ranges.len() * RANGE_WORDS);
        let own = ranges.len() * (RANGE_WORDS - 1);
        let (places, first_tiles) = words.split_at_mut(own.min(words.len()));
        Self::write(bytemuck::cast_slice_mut(places), first_tiles, ranges)
    }

    /// Bytes of a list in memory.
    pub(super) fn bytes(&self) -> usize {
        let words = if self.is_looked_for() { RANGE_WORDS } else { RANGE_WORDS - 1 };
        self.count as usize * words * size_of::<u64>()
    }

    /// Whether there are no bytes in any range.
    pub(super) fn is_empty(&self) -> bool {
        self.tiling.tiles == 0
    }

    /// Whether a range overlaps itself.
    pub(super) fn has_overlaps(&self) -> bool {
        self.tiling.kind == TileKind::Overlapping
    }

    /// Whether the device has to look for the range that a tile is of, by the tiles before each.
    fn is_looked_for(&self) -> bool {
        self.tiling.each == 0
    }

    fn kernels_of<'a>(&self, kernels: &'a Kernels) -> &'a CopyKernels {
        match self.tiling.kind {
            TileKind::Short => &kernels.copy_short,
            TileKind::Long | TileKind::Overlapping => &kernels.copy,
        }
    }

    /// Whether the device reads the list once a tile, and there are no more tiles than that.
    pub(super) fn is_read_in_few_trips(&self, tiles: u64) -> bool {
        !self.is_looked_for() && self.tiling.tiles <= tiles
    }

    /// Launches the kernel for a list in memory that the device reads, by its address.
    ///
    /// # Safety
    ///
    /// The list stays as it is until the stream has passed; its ranges are as for [`copies::copy`](super::copies::copy).
    pub(super) unsafe fn launch(
        &self,
        stream: &GpuStream,
        queueing: &Queueing<'_>,
        list: usize,
    ) -> Result<()> {
        let Tiling { tiles, each, .. } = &self.tiling;
        let mut arguments =
            [as_argument(&list), as_argument(&self.count), as_argument(tiles), as_argument(each)];
        let device = stream.device();
        let (kernel, shape) = (&self.kernels_of(device.kernels()?).of_lists, self.shape(&device.limits));
        // SAFETY: the arguments are as the kernel declares them; list and ranges are the caller's promise.
        unsafe { kernel.launch_queued(stream, queueing, shape, &mut arguments) }
    }

    /// A block for each tile, or a team for each short one: in small blocks where there are few, so that every
    /// multiprocessor has some. Each loops where a grid can't be so long.
    fn shape(&self, limits: &Limits) -> Shape {
        let tiles = self.tiling.tiles;
        let (threads, at_once) = match self.tiling.kind {
            TileKind::Short => {
                let each = tiles.div_ceil(u64::from(limits.multiprocessors.max(1)));
                let most = SHORT_THREADS.min(limits.block_threads) / TEAM;
                let teams = u32::try_from(each).unwrap_or(u32::MAX).clamp(1, most.max(1));
                (teams * TEAM, u64::from(teams))
            }
            TileKind::Long => (THREADS, 1),
            // One block alone moves the whole range.
            TileKind::Overlapping => (COPY_THREADS, 1),
        };
        let threads = threads.min(limits.block_threads).max(1);
        let most = Limits::blocks_of(threads);
        let blocks = u32::try_from(tiles.div_ceil(at_once)).unwrap_or(u32::MAX).clamp(1, most);
        Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }
    }
}

/// # Safety
///
/// As [`copies::copy`](super::copies::copy); there are no more ranges than a [`CopyList`] holds.
pub(super) unsafe fn copy_few(stream: &GpuStream, ranges: &[CopyRange]) -> Result<()> {
    let queueing = stream.queue("copy")?;
    // SAFETY: the caller's promise is the same.
    unsafe { copy_few_queued(stream, &queueing, ranges) }
}

/// As [`copy_few`], for who keeps captures away for longer.
///
/// # Safety
///
/// As [`copy_few`].
pub(super) unsafe fn copy_few_queued(
    stream: &GpuStream,
    queueing: &Queueing<'_>,
    ranges: &[CopyRange],
) -> Result<()> {
    debug_assert!(ranges.len() <= COPY_LIST);
    let mut list = CopyList::default();
    let listed = Listed::write(&mut list.ranges, &mut list.first_tiles, ranges);
    let Tiling { tiles, each, .. } = &listed.tiling;
    if listed.is_empty() {
        return Ok(());
    }
    // More tiles than such a list can number, which no memory holds.
    if listed.is_looked_for() && *tiles >> 32 != 0 && ranges.len() > 1 {
        return ranges.iter().try_for_each(|range| {
            // SAFETY: the caller's promise is the same.
            unsafe { copy_few_queued(stream, queueing, std::slice::from_ref(range)) }
        });
    }
    let mut arguments =
        [as_argument(&list), as_argument(&listed.count), as_argument(tiles), as_argument(each)];
    let device = stream.device();
    let (kernel, shape) = (&listed.kernels_of(device.kernels()?).of_few, listed.shape(&device.limits));
    // SAFETY: the arguments are as the kernel declares them; the ranges are the caller's promise.
    unsafe { kernel.launch_queued(stream, queueing, shape, &mut arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(tiles: u64, kind: TileKind, limits: Limits) -> (u32, u32) {
        let listed = Listed { count: 1, tiling: Tiling { tiles, each: 0, kind } };
        let Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], .. } = listed.shape(&limits) else {
            unreachable!("a grid has one axis")
        };
        (blocks, threads)
    }

    const LARGE: Limits = Limits { block_threads: 1024, multiprocessors: 132 };

    #[test]
    fn every_tile_has_a_block_or_a_team() {
        assert_eq!(shape(0, TileKind::Short, LARGE), (1, 32));
        assert_eq!(shape(64, TileKind::Short, LARGE), (64, 32));
        assert_eq!(shape(133, TileKind::Short, LARGE), (67, 64));
        assert_eq!(shape(65536, TileKind::Short, LARGE), (8192, 256));
        assert_eq!(shape(65537, TileKind::Short, LARGE), (8193, 256));
        assert_eq!(shape(65536, TileKind::Long, LARGE), (65536, 128));
        assert_eq!(shape(3, TileKind::Overlapping, LARGE), (3, 512));
    }

    #[test]
    fn no_grid_is_longer_than_the_drivers_take_it() {
        for kind in [TileKind::Short, TileKind::Long, TileKind::Overlapping] {
            for block_threads in [1, 32, 64, 1024] {
                for multiprocessors in [0, 1, 132] {
                    for tiles in [0, 1, u64::from(u32::MAX) + 1, u64::MAX] {
                        let (blocks, threads) = shape(tiles, kind, Limits { block_threads, multiprocessors });
                        assert!(blocks.checked_mul(threads).is_some() && i32::try_from(blocks).is_ok());
                        assert!(threads <= block_threads.max(TEAM) && blocks > 0 && threads > 0);
                    }
                }
            }
        }
    }
}
