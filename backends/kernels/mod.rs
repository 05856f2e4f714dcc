//! The images of the kernels in `arena.cu`, and what the host has to know to launch them: how arguments lie in memory,
//! and how many tiles a range has. `ci/kernels` makes the images, and `build.rs` holds them against their manifest.

#![allow(dead_code, reason = "a mirror of arena.cu, whole although one vendor may need a part of it")]

/// An image as a driver reads it in place.
#[repr(C, align(16))]
struct Aligned<T>(T);

// With the feature `cuda`:
// CUDA_PTX: text with a zero byte behind it, for any device from Volta on.
// CUDA_CUBINS: machine code by compute capability, major * 10 + minor. Each is aligned to 16 bytes.
// With the feature `rocm`:
// ROCM_CODE_OBJECTS: machine code by target, sorted by its name. A target that ends in `-generic` is a family, for those of
// its devices that are not named themselves. Each is aligned to 16 bytes.
include!(concat!(env!("OUT_DIR"), "/kernel_images.rs"));

/// The source for compilers at run time, as one text that includes no file. They take a C string: it ends with a zero byte.
#[cfg(feature = "rocm")]
pub(crate) const SOURCE: &str = concat!(
    include_str!("../../include/device_arena.h"),
    include_str!("prelude.h"),
    include_str!("arena.cu"),
    "\0"
);

/// Copies the ranges of a list in memory: its address, its length, the tiles of all, and those of each where all have as many
/// ([`Tiling::each`]). Where they don't, the tiles before each range are behind the ranges, as numbers of 64 bits. Its blocks
/// have [`COPY_THREADS`] threads at most.
pub(crate) const COPY: &str = "device_arena_copy";
/// Copies the ranges of a [`CopyList`]: that, by value, and its length and its tiles as for [`COPY`].
pub(crate) const COPY_FEW: &str = "device_arena_copy_few";
/// As [`COPY`], in tiles of [`SHORT_TILE`], for ranges that don't overlap themselves. Its blocks have [`SHORT_THREADS`] threads
/// at most, and each [`TEAM`] of them moves a tile.
pub(crate) const COPY_SHORT: &str = "device_arena_copy_short";
/// As [`COPY_FEW`], and otherwise as [`COPY_SHORT`].
pub(crate) const COPY_FEW_SHORT: &str = "device_arena_copy_few_short";
/// Copies the rows that a [`Rows`] describes: that, by value. Its blocks have [`ROW_THREADS`] threads at most. Rows go along
/// the grid's y, and the tiles of each along its x.
pub(crate) const COPY_ROWS: &str = "device_arena_copy_rows";
/// Resets a [`Room`] and fills the ranges of a [`FillList`]: the room's address or 0; its base, capacity, alignment and
/// generation; the list, its length, and the tiles of all.
pub(crate) const REWIND: &str = "device_arena_rewind";

/// Bytes of a tile. Tiles end at multiples of [`WORD`] in the destination.
pub(crate) const TILE: u64 = 32768;
/// Bytes of a tile that a [`TEAM`] moves.
pub(crate) const SHORT_TILE: u64 = 4096;
/// Threads that move a short tile together.
pub(crate) const TEAM: u32 = 32;
/// Threads of a block of [`COPY`] and [`COPY_FEW`], at most.
pub(crate) const COPY_THREADS: u32 = 512;
/// Threads of a block of [`COPY_SHORT`] and [`COPY_FEW_SHORT`], at most.
pub(crate) const SHORT_THREADS: u32 = 256;
/// Bytes that a thread moves at once.
pub(crate) const WORD: u64 = 16;
/// Ranges of a [`CopyList`].
pub(crate) const COPY_LIST: usize = 128;
/// Ranges of a [`FillList`].
pub(crate) const FILL_LIST: usize = 16;
/// Threads of a block of [`COPY_ROWS`], at most.
pub(crate) const ROW_THREADS: u32 = 256;
/// Bytes of a short row, at most: what 32 threads hold at once, where both ends are at words.
pub(crate) const SHORT_ROW: u64 = 2048;
/// Bytes of a range of a list, on average, below which its tiles are short: so measured on an H200, where longer ranges
/// with ends that are not aligned alike are better off with a block.
pub(crate) const SHORT_RANGE: u64 = 16384;
/// For [`Rows::lanes`]: a block moves a tile.
pub(crate) const WHOLE_BLOCK: u64 = 6;

/// What a copy moves. Ranges of a launch don't clash with each other; one may overlap itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyRange {
    pub(crate) destination: u64,
    pub(crate) source: u64,
    pub(crate) bytes: u64,
}

// SAFETY: three numbers, without anything between them.
unsafe impl bytemuck::Zeroable for CopyRange {}
// SAFETY: as above, and any bits are numbers.
unsafe impl bytemuck::Pod for CopyRange {}

/// Passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyList {
    pub(crate) ranges: [CopyRange; COPY_LIST],
    /// For each range, the tiles of all before it.
    pub(crate) first_tiles: [u32; COPY_LIST],
}

impl Default for CopyList {
    fn default() -> Self {
        Self { ranges: [CopyRange::default(); COPY_LIST], first_tiles: [0; COPY_LIST] }
    }
}

/// What is filled with one byte.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FillRange {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// A byte.
    pub(crate) value: u64,
}

/// Passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FillList {
    pub(crate) ranges: [FillRange; FILL_LIST],
    /// For each range, the tiles of all before it.
    pub(crate) first_tiles: [u64; FILL_LIST],
}

/// Where rows are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowSide {
    /// Of the first row.
    pub(crate) address: u64,
    /// Bytes from one row to the next.
    pub(crate) stride: u64,
    /// Where the numbers of the rows are that are moved, one for each; 0 where rows are moved in order.
    pub(crate) rows: u64,
    /// Bytes of such a number: 4 or 8.
    pub(crate) width: u64,
}

/// Rows that are alike. Passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) destination: RowSide,
    pub(crate) source: RowSide,
    /// Of a row.
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Of a row, by [`row_tiles`].
    pub(crate) tiles: u64,
    /// A short row is moved by 2^lanes neighbouring threads, by [`row_lanes`]. [`WHOLE_BLOCK`]: a block moves a tile.
    pub(crate) lanes: u64,
}

/// `device_arena_room` of `include/device_arena.h`: where kernels take room for themselves.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// Bytes taken; past the capacity, bytes needed.
    pub(crate) cursor: u64,
    pub(crate) capacity: u64,
    pub(crate) base: u64,
    pub(crate) alignment: u64,
    pub(crate) generation: u64,
    pub(crate) reserved: [u64; 3],
}

const _: () = {
    assert!(size_of::<CopyRange>() == 24 && size_of::<CopyList>() == 3584);
    assert!(size_of::<FillRange>() == 24 && size_of::<FillList>() == 512);
    assert!(size_of::<RowSide>() == 32 && size_of::<Rows>() == 96);
    assert!(size_of::<Room>() == 64 && align_of::<Room>() == 8);
    assert!(TILE.is_power_of_two() && TILE.is_multiple_of(WORD));
    assert!(SHORT_TILE.is_power_of_two() && SHORT_TILE.is_multiple_of(WORD));
};

/// The tiles of a range that is filled.
pub(crate) const fn fill_tiles(address: u64, bytes: u64) -> u64 {
    tiles(address, bytes, TILE)
}

/// The tiles, of `tile` bytes each, of a range that is written.
const fn tiles(address: u64, bytes: u64, tile: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    // The first tile is shorter by what the address is past a multiple of a word. No range is so long that the sum
    // wraps; where one claims to be, it has as many tiles as can be.
    bytes.saturating_add(address % WORD + (tile - 1)) / tile
}

/// Whether the copy's ends share bytes.
pub(crate) const fn overlaps_itself(destination: u64, source: u64, bytes: u64) -> bool {
    destination.abs_diff(source) < bytes
}

/// The tiles of a range that is copied: a single one where it overlaps itself, because one block moves it in order.
const fn copy_tiles(destination: u64, source: u64, bytes: u64, tile: u64) -> u64 {
    if overlaps_itself(destination, source, bytes) { 1 } else { tiles(destination, bytes, tile) }
}

/// How a list of ranges is cut into tiles. Each range has one at least, which moves nothing where there are no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Of all ranges.
    pub(crate) tiles: u64,
    /// Of each range, where all have as many and all are fewer than 2^32; 0 otherwise.
    pub(crate) each: u64,
    pub(crate) kind: TileKind,
}

/// Which kernels a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileKind {
    /// Tiles of [`SHORT_TILE`], a [`TEAM`] each. No range overlaps itself.
    Short,
    /// Tiles of [`TILE`], a block each.
    Long,
    /// As long ones, and at least one range overlaps itself.
    Overlapping,
}

impl TileKind {
    /// The kind for ranges of so many bytes on average.
    const fn of(ranges: u64, bytes: u64, overlaps: bool) -> Self {
        match (overlaps, ranges == 0 || bytes / ranges < SHORT_RANGE) {
            (true, _) => Self::Overlapping,
            (false, true) => Self::Short,
            (false, false) => Self::Long,
        }
    }
}

/// How many tiles are before a range. What can't be said so is said wrongly: who asks looks at [`Tiling::tiles`].
pub(crate) trait TileCount: Copy {
    fn of(tiles: u64) -> Self;
}

impl TileCount for u32 {
    fn of(tiles: u64) -> Self {
        tiles as Self
    }
}

impl TileCount for u64 {
    fn of(tiles: u64) -> Self {
        tiles
    }
}

impl Tiling {
    /// Writes the ranges, and how many tiles there are before each unless all have as many. There are places for all.
    pub(crate) fn write<Count: TileCount>(
        places: &mut [CopyRange],
        first_tiles: &mut [Count],
        ranges: impl ExactSizeIterator<Item = CopyRange> + Clone,
    ) -> Self {
        debug_assert!(places.len() >= ranges.len() && first_tiles.len() >= ranges.len());
        let count = ranges.len() as u64;
        let (mut bytes, mut longest, mut overlaps) = (0u64, 0u64, false);
        // The places may be in memory that is slow to read: they are written alone.
        for (place, range) in places.iter_mut().zip(ranges.clone()) {
            *place = range;
            bytes = bytes.saturating_add(range.bytes);
            longest = longest.max(range.bytes.saturating_add(range.destination % WORD));
            overlaps |= overlaps_itself(range.destination, range.source, range.bytes);
        }
        let kind = TileKind::of(count, bytes, overlaps);
        let tile = if kind == TileKind::Short { SHORT_TILE } else { TILE };
        if bytes == 0 {
            return Self { tiles: 0, each: 0, kind };
        }
        if longest <= tile && count >> 32 == 0 {
            return Self { tiles: count, each: 1, kind };
        }
        let (tiles, each) = match kind {
            TileKind::Short => cut::<SHORT_TILE, false, _>(ranges, first_tiles),
            TileKind::Long => cut::<TILE, false, _>(ranges, first_tiles),
            TileKind::Overlapping => cut::<TILE, true, _>(ranges, first_tiles),
        };
        Self { tiles, each, kind }
    }
}

/// The tiles of all ranges, and [`Tiling::each`]. What all ranges are is the compiler's to know: a division by a tile is a
/// shift then.
fn cut<const TILE: u64, const OVERLAP: bool, Count: TileCount>(
    ranges: impl Iterator<Item = CopyRange>,
    first_tiles: &mut [Count],
) -> (u64, u64) {
    let (mut tiles, mut first, mut are_alike) = (0u64, 0, true);
    for (place, range) in first_tiles.iter_mut().zip(ranges) {
        let own = if OVERLAP {
            copy_tiles(range.destination, range.source, range.bytes, TILE)
        } else {
            self::tiles(range.destination, range.bytes, TILE)
        };
        let own = own.max(1);
        first = if tiles == 0 { own } else { first };
        are_alike &= own == first;
        *place = Count::of(tiles);
        tiles = tiles.saturating_add(own);
    }
    (tiles, if are_alike && tiles >> 32 == 0 { first } else { 0 })
}

/// The tiles of a row: as many as it has wherever its destination begins, if that is not known for all rows.
pub(crate) const fn row_tiles(destination: &RowSide, bytes: u64) -> u64 {
    let is_known = destination.address.is_multiple_of(WORD) && destination.stride.is_multiple_of(WORD);
    fill_tiles(if is_known { 0 } else { WORD - 1 }, bytes)
}

/// How many threads move a row, as a power of two, or [`WHOLE_BLOCK`]. A thread holds four words at once, and moves single
/// bytes one after the other: where there are any, each has a thread.
pub(crate) const fn row_lanes(destination: &RowSide, source: &RowSide, bytes: u64) -> u64 {
    if bytes > SHORT_ROW {
        return WHOLE_BLOCK;
    }
    let all = destination.address | destination.stride | source.address | source.stride | bytes;
    let for_words = bytes.div_ceil(4 * WORD);
    let for_bytes = if all.is_multiple_of(WORD) || bytes == 0 {
        1
    } else if bytes < WORD {
        bytes
    } else {
        WORD
    };
    let lanes = if for_words > for_bytes { for_words } else { for_bytes };
    lanes.next_power_of_two().ilog2() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_bytes_has_no_tile() {
        for address in [0, 1, 15, 16, TILE, u64::MAX] {
            assert_eq!(fill_tiles(address, 0), 0);
            assert_eq!(copy_tiles(address, address, 0, TILE), 0);
            assert_eq!(copy_tiles(address, 7, 0, SHORT_TILE), 0);
        }
    }

    #[test]
    fn tiles_end_at_words_of_the_destination() {
        for past in 0..WORD {
            let address = (1 << 40) + past;
            assert_eq!(fill_tiles(address, 1), 1);
            // Up to the boundary, and one past it.
            assert_eq!(fill_tiles(address, TILE - past), 1);
            assert_eq!(fill_tiles(address, TILE - past + 1), 2);
            assert_eq!(fill_tiles(address, 5 * TILE - past), 5);
            assert_eq!(fill_tiles(address, 5 * TILE - past + 1), 6);
        }
    }

    #[test]
    fn every_byte_is_in_one_tile() {
        for (past, bytes) in
            [(0, 1), (15, 1), (3, 2 * TILE), (0, 2 * TILE), (9, 3 * TILE - 9), (9, 3 * TILE - 8)]
        {
            // As the kernels cut them.
            let begin = |tile: u64| if tile == 0 { 0 } else { tile * TILE - past };
            let tiles = fill_tiles(past, bytes);
            assert!(begin(tiles - 1) < bytes && begin(tiles) >= bytes, "{past} {bytes}");
        }
    }

    #[test]
    fn a_range_that_overlaps_itself_has_one_tile() {
        let bytes = 10 * TILE;
        for distance in [0, 1, 16, bytes - 1] {
            assert_eq!(copy_tiles(1 << 40, (1 << 40) + distance, bytes, TILE), 1);
            assert_eq!(copy_tiles((1 << 40) + distance, 1 << 40, bytes, TILE), 1);
        }
        assert_eq!(copy_tiles(1 << 40, (1 << 40) + bytes, bytes, TILE), 10);
        assert_eq!(copy_tiles((1 << 40) + bytes, 1 << 40, bytes, TILE), 10);
        // The destination's alignment counts, not the source's.
        assert_eq!(copy_tiles(16, (1 << 40) + 1, TILE, TILE), 1);
        assert_eq!(copy_tiles(17, 1 << 40, TILE, TILE), 2);
        assert_eq!(copy_tiles(17, 1 << 40, SHORT_TILE, SHORT_TILE), 2);
    }

    fn apart(lengths: &[u64]) -> Vec<CopyRange> {
        let (mut destination, mut source) = (1 << 40, 1 << 50);
        let range = |&bytes: &u64| {
            let range = CopyRange { destination, source, bytes };
            (destination, source) = (destination + bytes.next_multiple_of(16), source + bytes);
            range
        };
        lengths.iter().map(range).collect()
    }

    fn tiling_of(ranges: &[CopyRange]) -> (Tiling, Vec<u64>) {
        let mut places = vec![CopyRange::default(); ranges.len()];
        let mut first_tiles = vec![99u64; ranges.len()];
        let tiling = Tiling::write(&mut places, &mut first_tiles, ranges.iter().copied());
        assert_eq!(places, ranges);
        let mut short_counts = vec![99u32; ranges.len()];
        assert_eq!(Tiling::write(&mut places, &mut short_counts, ranges.iter().copied()), tiling);
        assert_eq!(short_counts, first_tiles.iter().map(|&tiles| tiles as u32).collect::<Vec<_>>());
        (tiling, first_tiles)
    }

    #[test]
    fn ranges_that_are_alike_are_not_looked_for() {
        let tiling = |lengths: &[u64]| tiling_of(&apart(lengths)).0;
        let short = |tiles, each| Tiling { tiles, each, kind: TileKind::Short };
        let long = |tiles, each| Tiling { tiles, each, kind: TileKind::Long };
        assert_eq!(tiling(&[1]), short(1, 1));
        assert_eq!(tiling(&[1000, 5, 4096]), short(3, 1));
        assert_eq!(tiling(&[SHORT_TILE + 1, 2 * SHORT_TILE]), short(4, 2));
        assert_eq!(tiling(&[SHORT_TILE + 1, 1]), short(3, 0));
        assert_eq!(tiling(&[1, SHORT_TILE + 1]), short(3, 0));
        assert_eq!(tiling(&[SHORT_RANGE; 3]), long(3, 1));
        assert_eq!(tiling(&[TILE + 1, 2 * TILE]), long(4, 2));
        // The mean says which kernel; the ends of all have to be numbers of 32 bits.
        assert_eq!(tiling(&[TILE, 1, 1]), short(10, 0));
        assert_eq!(tiling(&[(1 << 31) * TILE; 2]), long(1 << 32, 0));
        assert_eq!(tiling(&[((1 << 32) - 1) * TILE]), long((1 << 32) - 1, (1 << 32) - 1));
    }

    #[test]
    fn ranges_that_all_fit_into_a_tile_have_one_each_wherever_they_begin() {
        let mut ranges = apart(&[SHORT_TILE - 15, 0, 3]);
        ranges[0].destination += 15;
        let expected = Tiling { tiles: 3, each: 1, kind: TileKind::Short };
        assert_eq!(tiling_of(&ranges), (expected, vec![99; 3]));
        ranges[0].bytes += 1;
        let expected = Tiling { tiles: 4, each: 0, kind: TileKind::Short };
        assert_eq!(tiling_of(&ranges), (expected, vec![0, 2, 3]));
    }

    #[test]
    fn ranges_without_bytes_move_nothing() {
        let nothing = Tiling { tiles: 0, each: 0, kind: TileKind::Short };
        assert_eq!(tiling_of(&[]).0, nothing);
        assert_eq!(tiling_of(&apart(&[0, 0])).0, nothing);
        assert_eq!(tiling_of(&apart(&[0, 5])).0, Tiling { tiles: 2, each: 1, ..nothing });
    }

    #[test]
    fn every_range_begins_where_the_one_before_it_ends() {
        let (tiling, first_tiles) = tiling_of(&apart(&[SHORT_TILE + 1, 1, 0, 3 * SHORT_TILE, 7]));
        assert_eq!((tiling.tiles, first_tiles), (8, vec![0, 2, 3, 4, 7]));
    }

    #[test]
    fn a_list_with_a_range_that_overlaps_itself_is_for_blocks() {
        let mut ranges = apart(&[100, 10 * TILE]);
        ranges[1].source = ranges[1].destination + 16;
        assert_eq!(tiling_of(&ranges).0, Tiling { tiles: 2, each: 1, kind: TileKind::Overlapping });
        // A range that stays where it is, too.
        let mut ranges = apart(&[100]);
        ranges[0].source = ranges[0].destination;
        assert_eq!(tiling_of(&ranges).0.kind, TileKind::Overlapping);
    }

    #[test]
    fn a_row_has_tiles_enough_wherever_it_begins() {
        let side = |address, stride| RowSide { address, stride, rows: 0, width: 0 };
        for bytes in [0, 1, 15, 16, TILE - 15, TILE - 1, TILE, TILE + 1, 2 * TILE, 5 * TILE + 7] {
            for (address, stride) in [(0, 0), (0, 16), (32, 4096), (1 << 40, 1 << 33)] {
                // Every row begins at a word.
                assert_eq!(row_tiles(&side(address, stride), bytes), fill_tiles(address, bytes));
            }
            for (address, stride) in [(1, 16), (0, 8), (8, 8), (0, 1), (15, 0)] {
                let most = (0..16).map(|past| fill_tiles(past, bytes)).max();
                assert_eq!(Some(row_tiles(&side(address, stride), bytes)), most);
            }
        }
    }

    #[test]
    fn a_short_row_has_a_thread_for_four_words_and_for_each_single_byte() {
        let lanes = |bytes: u64, past: u64| {
            let side = RowSide { address: 4096 + past, stride: 4096, rows: 0, width: 0 };
            row_lanes(&side, &side, bytes)
        };
        let expected = [(16, 0), (64, 0), (80, 1), (128, 1), (256, 2), (1024, 4), (1536, 5), (2048, 5)];
        for (bytes, aligned) in expected {
            assert_eq!(lanes(bytes, 0), aligned, "{bytes}");
            assert_eq!(lanes(bytes, 1), aligned.max(4), "{bytes}");
        }
        assert_eq!([1, 2, 3, 4, 8, 15, 17].map(|bytes| lanes(bytes, 0)), [0, 1, 2, 2, 3, 4, 4]);
        for bytes in [SHORT_ROW + 1, TILE, u64::MAX] {
            assert_eq!(lanes(bytes, 0), WHOLE_BLOCK);
        }
        // 32 threads are the most.
        assert!((0..=SHORT_ROW).all(|bytes| lanes(bytes, 0) <= 5 && lanes(bytes, 3) <= 5));
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn images_are_aligned_and_end_as_a_driver_needs_it() {
        assert_eq!(CUDA_PTX.last(), Some(&0));
        assert_eq!(CUDA_PTX.iter().filter(|&&byte| byte == 0).count(), 1);
        assert!(CUDA_CUBINS.is_sorted_by_key(|(target, _)| *target));
        for (target, image) in CUDA_CUBINS {
            assert!(image.starts_with(b"\x7fELF"), "{target}");
            assert_eq!(image.as_ptr().addr() % 16, 0, "{target}");
        }
    }

    #[cfg(feature = "rocm")]
    #[test]
    fn code_objects_are_there_for_every_target_aligned_and_sorted() {
        let targets: Vec<_> = ROCM_CODE_OBJECTS.iter().map(|(target, _)| *target).collect();
        let expected = [
            "gfx10-1-generic",
            "gfx10-3-generic",
            "gfx1010",
            "gfx1030",
            "gfx11-generic",
            "gfx1100",
            "gfx1101",
            "gfx1151",
            "gfx12-generic",
            "gfx1200",
            "gfx1201",
            "gfx9-4-generic",
            "gfx9-generic",
            "gfx900",
            "gfx906",
            "gfx908",
            "gfx90a",
            "gfx942",
            "gfx950",
        ];
        assert!(expected.is_sorted());
        assert_eq!(targets, expected);
        for (target, image) in ROCM_CODE_OBJECTS {
            assert!(image.starts_with(b"\x7fELF"), "{target}");
            assert_eq!(image.as_ptr().addr() % 16, 0, "{target}");
            // The target that the image is for stands in its metadata.
            let name = format!("amdgcn-amd-amdhsa--{target}");
            assert!(image.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "{target}");
        }
    }

    #[cfg(feature = "rocm")]
    #[test]
    fn the_source_is_one_text_with_every_kernel_and_ends_as_a_compiler_needs_it() {
        assert_eq!(SOURCE.find('\0'), Some(SOURCE.len() - 1));
        for kernel in [COPY, COPY_FEW, COPY_SHORT, COPY_FEW_SHORT, COPY_ROWS, REWIND] {
            assert!(SOURCE.contains(&format!(" {kernel}(")), "{kernel}");
        }
        // What is included would be there already.
        for guard in ["DEVICE_ARENA_H", "DEVICE_ARENA_PRELUDE"] {
            let defined = SOURCE.find(&format!("#define {guard}\n")).unwrap();
            assert!(SOURCE.find("#include \"").unwrap() > defined, "{guard}");
        }
    }
}
