//! Reads the committed kernel images as a driver would: what they are for, the kernels in them, and where each argument
//! lies. Nothing but the files is needed.

mod code_object;
mod cubin;
mod elf;
mod fat_binary;
mod metadata;
mod ptx;

use std::fs;
use std::path::PathBuf;

/// A kernel and its arguments: where each begins and how long it is, in bytes. As `backends/kernels/arena.cu` declares
/// them, and as the crate passes them.
const KERNELS: [(&str, &[(usize, usize)]); 6] = [
    ("device_arena_copy", &[(0, 8), (8, 8), (16, 8), (24, 8)]),
    ("device_arena_copy_few", &[(0, 3584), (3584, 8), (3592, 8), (3600, 8)]),
    ("device_arena_copy_few_short", &[(0, 3584), (3584, 8), (3592, 8), (3600, 8)]),
    ("device_arena_copy_rows", &[(0, 96)]),
    ("device_arena_copy_short", &[(0, 8), (8, 8), (16, 8), (24, 8)]),
    ("device_arena_rewind", &[(0, 8), (8, 8), (16, 8), (24, 8), (32, 8), (40, 512), (552, 8), (560, 8)]),
];

/// The threads of a kernel's largest block.
fn largest_block(kernel: &str) -> u64 {
    match kernel {
        "device_arena_rewind" => 1024,
        "device_arena_copy" | "device_arena_copy_few" => 512,
        _ => 256,
    }
}

const FOLDER: &str = "backends/kernels";

/// By its path from the package's root.
fn read(path: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An image of the crate's kernels.
fn image(name: &str) -> Vec<u8> {
    read(&format!("{FOLDER}/images/arena.{name}"))
}

#[test]
fn the_manifest_names_every_image_and_its_makers() {
    let manifest = String::from_utf8(read(&format!("{FOLDER}/manifest.txt"))).unwrap();
    let lines = |kind: &str| {
        let lines = manifest.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines.filter(|words| words[0] == kind).collect::<Vec<_>>()
    };
    for maker in ["compiler", "assembler", "amd-compiler"] {
        assert_eq!(lines(maker).len(), 1, "{maker}");
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for source in lines("source") {
        assert!(root.join(source[1]).is_file(), "{}", source[1]);
    }

    let mut named: Vec<_> = lines("image").iter().map(|words| root.join(words[1])).collect();
    let mut there: Vec<_> =
        fs::read_dir(root.join(FOLDER).join("images")).unwrap().map(|entry| entry.unwrap().path()).collect();
    named.sort_unstable();
    there.sort_unstable();
    assert_eq!(named, there);

    let targets = |kind: &str| {
        let lines = lines("image").into_iter().filter(|words| words[2] == kind);
        lines.map(|words| words[3].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(targets("ptx"), ["sm_70"]);
    assert_eq!(targets("cubin"), cubin::TARGETS.map(|target| format!("sm_{target}")));
    assert_eq!(targets("hsaco"), code_object::TARGETS.map(|target| target.name));
}
