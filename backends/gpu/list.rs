//! A list of ranges as the copy kernels read it, and how they are launched over it.

use std::ffi::c_void;

use super::copies::as_argument;
use super::device::{Kernels, Limits};
use super::kernel::{Kernel, Shape};
use super::stream::{GpuStream, Queueing};
use crate::backend::CopyRange;
use crate::backends::kernels::{
    COPY_LIST, COPY_THREADS, CopyList, CopyRange as KernelCopy, SHORT_THREADS, TEAM, TileKind, Tiling,
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

impl Listed {
    /// Writes the ranges that are not empty.
    pub(super) fn write(places: &mut [KernelCopy], ranges: &[CopyRange]) -> Self {
        let ranges = ranges.iter().filter(|range| range.bytes != 0).map(|range| KernelCopy {
            destination: range.destination.addr() as u64,
            source: range.source.addr() as u64,
            bytes: range.bytes as u64,
            first_tile: 0,
        });
        let (count, tiling) = Tiling::write(places, ranges);
        Self { count: count as u64, tiling }
    }

    /// Ranges that are not empty.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether the device has to look for the range that a tile is of.
    pub(super) fn is_looked_for(&self) -> bool {
        self.tiling.each == 0
    }

    /// For a list in memory that the device reads.
    pub(super) fn kernel<'a>(&self, kernels: &'a Kernels) -> &'a Kernel {
        match self.tiling.kind {
            TileKind::Short => &kernels.copy_short,
            TileKind::Long | TileKind::Overlapping => &kernels.copy,
        }
    }

    /// For a list that travels with the launch.
    fn kernel_of_few<'a>(&self, kernels: &'a Kernels) -> &'a Kernel {
        match self.tiling.kind {
            TileKind::Short => &kernels.copy_few_short,
            TileKind::Long | TileKind::Overlapping => &kernels.copy_few,
        }
    }

    /// Of either kernel: `list` is a [`CopyList`], or the address of a list.
    pub(super) fn arguments<T>(&self, list: &T) -> [*mut c_void; 4] {
        let Tiling { tiles, each, .. } = &self.tiling;
        [as_argument(list), as_argument(&self.count), as_argument(tiles), as_argument(each)]
    }

    /// A block for each tile, or a team for each short one: in small blocks where there are few, so that every
    /// multiprocessor has some. Each loops where a grid can't be so long.
    pub(super) fn shape(&self, limits: &Limits) -> Shape {
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
    let listed = Listed::write(&mut list.ranges, ranges);
    let device = stream.device();
    let (kernel, shape) = (listed.kernel_of_few(device.kernels()?), listed.shape(&device.limits));
    // SAFETY: the arguments are as the kernel declares them; the ranges are the caller's promise.
    unsafe { kernel.launch_queued(stream, queueing, shape, &mut listed.arguments(&list)) }
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

    #[test]
    fn ranges_without_bytes_are_not_listed() {
        let range = |destination, bytes| CopyRange {
            destination: std::ptr::without_provenance_mut(destination),
            source: std::ptr::without_provenance(1 << 20),
            bytes,
        };
        let mut places = [KernelCopy::default(); 3];
        let listed =
            Listed::write(&mut places, &[range(0, 0), range(1 << 30, 5), range(0, 0), range(1 << 31, 7)]);
        assert_eq!((listed.count(), listed.tiling.tiles, listed.tiling.each), (2, 2, 1));
        assert_eq!(places.map(|place| place.bytes), [5, 7, 0]);
    }
}
