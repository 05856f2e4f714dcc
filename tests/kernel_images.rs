//! Reads the committed kernel images as a driver would: what they are for, the kernels in them, and where each argument
//! lies. Nothing but the files is needed.
#![cfg(feature = "cuda")]

use std::path::PathBuf;
use std::{fs, str};

/// A kernel and its arguments: where each begins and how long it is, in bytes. As `backends/kernels/arena.cu` declares
/// them, and as the crate passes them.
const KERNELS: [(&str, &[(usize, usize)]); 3] = [
    ("device_arena_copy", &[(0, 8), (8, 8), (16, 8)]),
    ("device_arena_copy_few", &[(0, 2048), (2048, 8), (2056, 8)]),
    ("device_arena_rewind", &[(0, 8), (8, 8), (16, 8), (24, 8), (32, 8), (40, 512), (552, 8), (560, 8)]),
];

const CUBINS: [u32; 8] = [70, 75, 80, 86, 89, 90, 100, 120];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("backends/kernels")
}

fn read(name: &str) -> Vec<u8> {
    let path = folder().join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

// ----------------------------------------------------------------------------------------------------------------- PTX

fn ptx() -> String {
    String::from_utf8(read("images/arena.ptx")).unwrap()
}

/// The lines of a kernel's parameters.
fn parameters<'a>(ptx: &'a str, kernel: &str) -> Vec<&'a str> {
    let start = format!(".visible .entry {kernel}(");
    let from = ptx.find(&start).unwrap_or_else(|| panic!("no {kernel}")) + start.len();
    let list = &ptx[from..from + ptx[from..].find(')').unwrap()];
    list.split(',').map(str::trim).collect()
}

#[test]
fn the_ptx_is_for_volta_and_drivers_of_cuda_9() {
    let ptx = ptx();
    let directive = |name: &str| {
        let mut found = ptx.lines().filter_map(|line| line.strip_prefix(name)).map(str::trim);
        let value = found.next().map(str::to_owned);
        assert_eq!(found.next(), None, "{name} twice");
        value
    };
    assert_eq!(directive(".version").as_deref(), Some("6.0"));
    assert_eq!(directive(".target").as_deref(), Some("sm_70"));
    assert_eq!(directive(".address_size").as_deref(), Some("64"));
}

#[test]
fn the_ptx_has_the_kernels_and_nothing_else_to_see() {
    let ptx = ptx();
    let mut entries: Vec<_> = ptx
        .lines()
        .filter_map(|line| line.strip_prefix(".visible .entry "))
        .map(|line| line.trim_end_matches('('))
        .collect();
    entries.sort_unstable();
    assert_eq!(entries, KERNELS.map(|(kernel, _)| kernel));
    // No other function, and no memory of its own: neither what a thread keeps outside of registers nor global state.
    for word in [".func", ".extern", ".local", ".shared", ".global .", ".const"] {
        assert!(!ptx.lines().any(|line| line.trim_start().starts_with(word)), "{word}");
    }
}

#[test]
fn the_ptx_takes_its_arguments_as_they_are_passed() {
    let ptx = ptx();
    for (kernel, arguments) in KERNELS {
        let found = parameters(&ptx, kernel);
        assert_eq!(found.len(), arguments.len(), "{kernel}");
        for (index, (line, (_, size))) in found.iter().zip(arguments).enumerate() {
            let name = format!("{kernel}_param_{index}");
            // Numbers and addresses as such, structs as bytes.
            let expected = if *size == 8 {
                format!(".param .u64 {name}")
            } else {
                format!(".param .align 8 .b8 {name}[{size}]")
            };
            assert_eq!(*line, expected);
        }
    }
}

// --------------------------------------------------------------------------------------------------------------- cubins

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(value)
}

fn text_at(bytes: &[u8], at: usize) -> &str {
    let end = at + bytes[at..].iter().position(|&byte| byte == 0).unwrap();
    str::from_utf8(&bytes[at..end]).unwrap()
}

struct Section<'a> {
    name: &'a str,
    kind: u64,
    flags: u64,
    content: &'a [u8],
}

/// The sections of a 64-bit ELF file.
fn sections(elf: &[u8]) -> Vec<Section<'_>> {
    let table = number::<8>(elf, 0x28) as usize;
    let (count, names) = (number::<2>(elf, 0x3c) as usize, number::<2>(elf, 0x3e) as usize);
    let header = |index: usize| &elf[table + 64 * index..table + 64 * (index + 1)];
    let content = |header: &[u8]| {
        let (kind, offset, size) =
            (number::<4>(header, 4), number::<8>(header, 0x18), number::<8>(header, 0x20));
        // A section of zeros takes no place in the file.
        if kind == 8 { &elf[..0] } else { &elf[offset as usize..(offset + size) as usize] }
    };
    let names = content(header(names));
    (0..count)
        .map(header)
        .map(|header| Section {
            name: text_at(names, number::<4>(header, 0) as usize),
            kind: number::<4>(header, 4),
            flags: number::<8>(header, 8),
            content: content(header),
        })
        .collect()
}

fn section<'a>(sections: &'a [Section<'a>], name: &str) -> &'a Section<'a> {
    sections.iter().find(|section| section.name == name).unwrap_or_else(|| panic!("no section {name}"))
}

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
    for target in CUBINS {
        let elf = read(&format!("images/arena.sm_{target}.cubin"));
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
    for target in CUBINS {
        let elf = read(&format!("images/arena.sm_{target}.cubin"));
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

// ------------------------------------------------------------------------------------------------------------- manifest

#[test]
fn the_manifest_names_every_image_and_its_makers() {
    let manifest = String::from_utf8(read("manifest.txt")).unwrap();
    let lines = |kind: &str| {
        let lines = manifest.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines.filter(|words| words[0] == kind).collect::<Vec<_>>()
    };
    assert_eq!((lines("compiler").len(), lines("assembler").len()), (1, 1));
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for source in lines("source") {
        assert!(root.join(source[1]).is_file(), "{}", source[1]);
    }

    let mut named: Vec<_> = lines("image").iter().map(|words| root.join(words[1])).collect();
    let mut there: Vec<_> =
        fs::read_dir(folder().join("images")).unwrap().map(|entry| entry.unwrap().path()).collect();
    named.sort_unstable();
    there.sort_unstable();
    assert_eq!(named, there);

    let targets: Vec<_> =
        lines("image").iter().filter(|words| words[2] == "cubin").map(|words| words[3].to_owned()).collect();
    assert_eq!(targets, CUBINS.map(|target| format!("sm_{target}")));
}
