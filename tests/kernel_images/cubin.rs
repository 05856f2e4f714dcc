//! Machine code for NVIDIA's devices.

use super::elf::{Section, number, section, sections, text_at};
use super::{KERNELS, image};

pub const TARGETS: [u32; 8] = [70, 75, 80, 86, 89, 90, 100, 120];

/// The global functions of a file, sorted.
fn functions<'a>(sections: &'a [Section<'a>]) -> Vec<&'a str> {
    let names = section(sections, ".strtab").content;
    let mut functions: Vec<_> = section(sections, ".symtab")
        .content
        .chunks_exact(24)
        // A function that is bound globally.
        .filter(|symbol| symbol[4] == 0x12)
        .map(|symbol| text_at(names, number::<4>(symbol, 0) as usize))
        .collect();
    functions.sort_unstable();
    functions
}

/// The arguments of a kernel, from the attributes that the driver reads: where each begins, and its size.
fn arguments(information: &[u8]) -> Vec<(usize, usize)> {
    const HAS_SIZE: u8 = 4;
    const ARGUMENT: u8 = 0x17;
    let mut found = Vec::new();
    let mut at = 0;
    while at < information.len() {
        let (format, attribute) = (information[at], information[at + 1]);
        let size = if format == HAS_SIZE { number::<2>(information, at + 2) as usize } else { 0 };
        if (format, attribute) == (HAS_SIZE, ARGUMENT) {
            let value = &information[at + 4..at + 4 + size];
            // The size is above what says where it is passed.
            found.push((number::<2>(value, 4), number::<2>(value, 6), number::<4>(value, 8) >> 18));
        }
        at += 4 + size;
    }
    found.sort_unstable();
    assert!(found.iter().enumerate().all(|(index, (ordinal, ..))| index as u64 == *ordinal));
    found.into_iter().map(|(_, offset, size)| (offset as usize, size as usize)).collect()
}

#[test]
fn a_cubin_is_for_the_device_in_its_name() {
    for target in TARGETS {
        let elf = image(&format!("sm_{target}.cubin"));
        // 64 bits, little endian.
        assert_eq!(&elf[..6], b"\x7fELF\x02\x01", "{target}");
        // An executable for CUDA.
        assert_eq!((number::<2>(&elf, 0x10), number::<2>(&elf, 0x12)), (2, 190), "{target}");
        let flags = number::<4>(&elf, 0x30);
        // The newer form of the files has the target one byte further up.
        let found = match elf[7] {
            0x33 => flags & 0xff,
            0x41 => flags >> 8 & 0xff,
            other => panic!("{target}: ABI {other:#x}"),
        };
        assert_eq!(found, u64::from(target));
    }
}

#[test]
fn a_cubin_has_the_kernels_with_their_code_and_arguments() {
    for target in TARGETS {
        let elf = image(&format!("sm_{target}.cubin"));
        let sections = sections(&elf);
        assert_eq!(functions(&sections), KERNELS.map(|(kernel, _)| kernel), "{target}");
        for (kernel, expected) in KERNELS {
            let code = section(&sections, &format!(".text.{kernel}"));
            // Content that is loaded and executed.
            assert!(code.kind == 1 && code.flags & 6 == 6 && !code.content.is_empty(), "{target} {kernel}");
            let information = section(&sections, &format!(".nv.info.{kernel}"));
            assert_eq!(arguments(information.content), expected, "{target} {kernel}");
        }
    }
}
