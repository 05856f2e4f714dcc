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

/// Copies the ranges of a list in memory: its address, its length, and the tiles of all.
pub(crate) const COPY: &str = "device_arena_copy";
/// Copies the ranges of a [`CopyList`]: the list, its length, and the tiles of all.
pub(crate) const COPY_FEW: &str = "device_arena_copy_few";
/// Resets a [`Room`] and fills the ranges of a [`FillList`]: the room's address or 0; its base, capacity, alignment and
/// generation; the list, its length, and the tiles of all.
pub(crate) const REWIND: &str = "device_arena_rewind";

/// Bytes of a tile. Tiles end at multiples of [`WORD`] in the destination.
pub(crate) const TILE: u64 = 32768;
/// Bytes that a thread moves at once.
pub(crate) const WORD: u64 = 16;
/// Ranges of a [`CopyList`].
pub(crate) const COPY_LIST: usize = 64;
/// Ranges of a [`FillList`].
pub(crate) const FILL_LIST: usize = 16;

/// What a copy moves. Ranges of a launch don't clash with each other; one may overlap itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyRange {
    pub(crate) destination: u64,
    pub(crate) source: u64,
    pub(crate) bytes: u64,
    /// The tiles of all ranges before this one.
    pub(crate) first_tile: u64,
}

/// Passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyList {
    pub(crate) ranges: [CopyRange; COPY_LIST],
}

impl Default for CopyList {
    fn default() -> Self {
        Self { ranges: [CopyRange::default(); COPY_LIST] }
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
    /// The tiles of all ranges before this one.
    pub(crate) first_tile: u64,
}

/// Passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FillList {
    pub(crate) ranges: [FillRange; FILL_LIST],
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
    assert!(size_of::<CopyRange>() == 32 && size_of::<CopyList>() == 2048);
    assert!(size_of::<FillRange>() == 32 && size_of::<FillList>() == 512);
    assert!(size_of::<Room>() == 64 && align_of::<Room>() == 8);
    assert!(TILE.is_power_of_two() && TILE.is_multiple_of(WORD));
};

/// The tiles of a range that is filled.
pub(crate) const fn fill_tiles(address: u64, bytes: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    // The first tile is shorter by what the address is past a multiple of a word. No range is so long that the sum
    // wraps; where one claims to be, it has as many tiles as can be.
    bytes.saturating_add(address % WORD).div_ceil(TILE)
}

/// The tiles of a range that is copied: a single one where it overlaps itself, because one block moves it in order.
pub(crate) const fn copy_tiles(destination: u64, source: u64, bytes: u64) -> u64 {
    if bytes != 0 && destination.abs_diff(source) < bytes {
        return 1;
    }
    fill_tiles(destination, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_bytes_has_no_tile() {
        for address in [0, 1, 15, 16, TILE, u64::MAX] {
            assert_eq!(fill_tiles(address, 0), 0);
            assert_eq!(copy_tiles(address, address, 0), 0);
            assert_eq!(copy_tiles(address, 7, 0), 0);
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
            assert_eq!(copy_tiles(1 << 40, (1 << 40) + distance, bytes), 1);
            assert_eq!(copy_tiles((1 << 40) + distance, 1 << 40, bytes), 1);
        }
        assert_eq!(copy_tiles(1 << 40, (1 << 40) + bytes, bytes), 10);
        assert_eq!(copy_tiles((1 << 40) + bytes, 1 << 40, bytes), 10);
        // The destination's alignment counts, not the source's.
        assert_eq!(copy_tiles(16, (1 << 40) + 1, TILE), 1);
        assert_eq!(copy_tiles(17, 1 << 40, TILE), 2);
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
        for kernel in [COPY, COPY_FEW, REWIND] {
            assert!(SOURCE.contains(&format!("    {kernel}(")), "{kernel}");
        }
        // What is included would be there already.
        for guard in ["DEVICE_ARENA_H", "DEVICE_ARENA_PRELUDE"] {
            let defined = SOURCE.find(&format!("#define {guard}\n")).unwrap();
            assert!(SOURCE.find("#include \"").unwrap() > defined, "{guard}");
        }
    }
}
