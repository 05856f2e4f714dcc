//! Enough of ELF for cubins and code objects: both are 64 bits, little endian.

use std::str;

pub fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(value)
}

pub fn text_at(bytes: &[u8], at: usize) -> &str {
    let end = at + bytes[at..].iter().position(|&byte| byte == 0).unwrap();
    str::from_utf8(&bytes[at..end]).unwrap()
}

pub struct Section<'a> {
    pub name: &'a str,
    pub kind: u64,
    pub flags: u64,
    pub content: &'a [u8],
}

/// The sections of a 64-bit ELF file.
pub fn sections(elf: &[u8]) -> Vec<Section<'_>> {
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

pub fn section<'a>(sections: &'a [Section<'a>], name: &str) -> &'a Section<'a> {
    sections.iter().find(|section| section.name == name).unwrap_or_else(|| panic!("no section {name}"))
}
