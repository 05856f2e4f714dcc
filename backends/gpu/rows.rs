//! Copies of rows that are alike, as one launch.

use super::copies::{THREADS, as_argument};
use super::device::Limits;
use super::kernel::Shape;
use super::stream::GpuStream;
use crate::backend::{CopyRows, RowIndices};
use crate::backends::kernels::{self, ROW_THREADS, RowSide, Rows, WHOLE_BLOCK};
use crate::error::Result;

/// Threads of a block whose tiles are small: more would have nothing to do and keep other blocks away.
const THREADS_OF_SMALL_TILES: u32 = 64;

/// Bytes of a tile below which it counts as small.
const SMALL_TILE: u64 = 8 << 10;

/// Blocks along a grid's second axis, at most: as the drivers allow.
const ALONG_Y: u32 = 65535;

fn side(address: usize, stride: usize, rows: RowIndices) -> RowSide {
    let (rows, width) = match rows {
        RowIndices::InOrder => (0, 0),
        RowIndices::U32(rows) => (rows.addr(), size_of::<u32>()),
        RowIndices::U64(rows) => (rows.addr(), size_of::<u64>()),
    };
    RowSide { address: address as u64, stride: stride as u64, rows: rows as u64, width: width as u64 }
}

/// Whether every row overlaps itself, as far as that can be said here: rows by number may do so too.
fn overlap_themselves(destination: &RowSide, source: &RowSide, bytes: u64) -> bool {
    let are_in_step = destination.rows == 0 && source.rows == 0 && destination.stride == source.stride;
    are_in_step && kernels::overlaps_itself(destination.address, source.address, bytes)
}

/// # Safety
///
/// As [`crate::backend::Backend::copy_rows`].
pub(super) unsafe fn copy(stream: &GpuStream, rows: &CopyRows) -> Result<()> {
    if rows.bytes == 0 || rows.count == 0 {
        return Ok(());
    }
    let (rows, shape) = plan(rows, &stream.device().limits);
    let kernel = &stream.device().kernels()?.copy_rows;
    // SAFETY: the argument is as the kernel declares it; the rows are the caller's promise.
    unsafe { kernel.launch(stream, shape, &mut [as_argument(&rows)]) }
}

/// The kernel's argument, and the shape of its launch.
fn plan(rows: &CopyRows, limits: &Limits) -> (Rows, Shape) {
    let (bytes, count) = (rows.bytes as u64, rows.count as u64);
    let destination = side(rows.destination.addr(), rows.destination_stride, rows.destination_rows);
    let source = side(rows.source.addr(), rows.source_stride, rows.source_rows);
    let is_overlap = overlap_themselves(&destination, &source, bytes);
    // Threads that share a block with other rows can't wait for each other, so that one of them would have such a row alone.
    let lanes = if is_overlap { WHOLE_BLOCK } else { kernels::row_lanes(&destination, &source, bytes) };
    let is_short = lanes < WHOLE_BLOCK;
    let tiles = if is_short || is_overlap { 1 } else { kernels::row_tiles(&destination, bytes) };
    let threads = if is_short || bytes < SMALL_TILE { THREADS_OF_SMALL_TILES } else { THREADS };
    let threads = threads.min(ROW_THREADS).min(limits.block_threads).max(1);
    let rows_at_once = if is_short { u64::from(threads >> lanes).max(1) } else { 1 };
    let most_blocks = Limits::blocks_of(threads);
    let at_most = |blocks: u64, most: u32| u32::try_from(blocks).unwrap_or(u32::MAX).clamp(1, most.max(1));
    let along_x = at_most(tiles, most_blocks);
    let along_y = at_most(count.div_ceil(rows_at_once), (most_blocks / along_x).min(ALONG_Y));
    let shape = Shape { grid: [along_x, along_y, 1], block: [threads, 1, 1], shared_bytes: 0 };
    (Rows { destination, source, bytes, count, tiles, lanes }, shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: usize, count: usize) -> CopyRows {
        CopyRows {
            destination: std::ptr::without_provenance_mut(1 << 40),
            source: std::ptr::without_provenance(1 << 20),
            destination_stride: bytes,
            source_stride: bytes,
            bytes,
            count,
            destination_rows: RowIndices::InOrder,
            source_rows: RowIndices::InOrder,
        }
    }

    const LARGE: Limits = Limits { block_threads: 1024, multiprocessors: 132 };

    fn shape(rows: &CopyRows) -> ([u32; 2], u32) {
        let Shape { grid: [x, y, _], block: [threads, ..], .. } = plan(rows, &LARGE).1;
        ([x, y], threads)
    }

    #[test]
    fn short_rows_share_blocks_and_long_ones_have_a_block_a_tile() {
        assert_eq!(shape(&rows(16, 1000)), ([1, 16], 64));
        assert_eq!(shape(&rows(1024, 64)), ([1, 16], 64));
        assert_eq!(shape(&rows(1536, 65536)), ([1, 32768], 64));
        assert_eq!(shape(&rows(4096, 10)), ([1, 10], 64));
        assert_eq!(shape(&rows(32 << 10, 10)), ([1, 10], 256));
        assert_eq!(shape(&rows(100 << 10, 10)), ([4, 10], 256));
        // As far as a grid goes, and as many blocks as there may be.
        assert_eq!(shape(&rows(1 << 36, 10)), ([1 << 21, 7], 256));
        assert_eq!(shape(&rows(100 << 10, usize::MAX)), ([4, 65535], 256));
    }

    #[test]
    fn a_row_that_overlaps_itself_has_one_block() {
        let mut moved = rows(1000, 8);
        moved.source = moved.destination.wrapping_add(999);
        assert_eq!((plan(&moved, &LARGE).0.lanes, shape(&moved)), (WHOLE_BLOCK, ([1, 8], 64)));
        moved.bytes = 100 << 10;
        assert_eq!(shape(&moved), ([1, 8], 256));
        moved.bytes = 999;
        assert!(plan(&moved, &LARGE).0.lanes < WHOLE_BLOCK);
    }

    #[test]
    fn blocks_are_as_large_as_the_device_takes_them() {
        for block_threads in [32, 64, 1024] {
            for bytes in [1, 100, 2048, 4096, 1 << 20] {
                let (rows, shape) = plan(&rows(bytes, 100), &Limits { block_threads, ..LARGE });
                assert!(shape.block[0] <= block_threads);
                assert!(rows.lanes == WHOLE_BLOCK || shape.block[0] >> rows.lanes > 0);
            }
        }
    }
}
