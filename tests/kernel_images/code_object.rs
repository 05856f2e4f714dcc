//! Machine code for AMD's devices.

use super::elf::{number, section, sections, text_at};
use super::metadata::{Value, metadata};
use super::{KERNELS, image, largest_block};

pub struct Target {
    pub name: &'static str,
    /// `EF_AMDGPU_MACH_AMDGCN_...` of this name.
    machine: u64,
    /// Where memory may fault and be tried again: what works with that on and off.
    xnack: bool,
    /// Where memory may correct its errors: likewise.
    sram_ecc: bool,
}

const fn target(name: &'static str, machine: u64, xnack: bool, sram_ecc: bool) -> Target {
    Target { name, machine, xnack, sram_ecc }
}

pub const TARGETS: [Target; 19] = [
    target("gfx900", 0x2c, true, false),
    target("gfx906", 0x2f, true, true),
    target("gfx908", 0x30, true, true),
    target("gfx90a", 0x3f, true, true),
    target("gfx942", 0x4c, true, true),
    target("gfx950", 0x4f, true, true),
    target("gfx1010", 0x33, true, false),
    target("gfx1030", 0x36, false, false),
    target("gfx1100", 0x41, false, false),
    target("gfx1101", 0x46, false, false),
    target("gfx1151", 0x4a, false, false),
    target("gfx1200", 0x48, false, false),
    target("gfx1201", 0x4e, false, false),
    target("gfx9-generic", 0x51, true, false),
    target("gfx9-4-generic", 0x5f, true, true),
    target("gfx10-1-generic", 0x52, true, false),
    target("gfx10-3-generic", 0x53, false, false),
    target("gfx11-generic", 0x54, false, false),
    target("gfx12-generic", 0x59, false, false),
];

impl Target {
    fn is_family(&self) -> bool {
        self.name.ends_with("-generic")
    }

    /// Threads of a wave.
    fn wave(&self) -> u64 {
        if self.name.starts_with("gfx9") { 64 } else { 32 }
    }
}

/// What a loader and a launch need to know of a kernel.
pub struct Kernel {
    pub name: String,
    /// Where each begins, and its size.
    pub arguments: Vec<(usize, usize)>,
    /// Those that the runtime passes by itself, likewise.
    pub hidden: Vec<(usize, usize)>,
    description: Value,
}

impl Kernel {
    pub fn number(&self, key: &str) -> u64 {
        self.description.get(key).number()
    }
}

/// The kernels of a code object, sorted.
pub fn kernels(elf: &[u8], target: &Target) -> Vec<Kernel> {
    let metadata = metadata(elf);
    assert_eq!(metadata.get("amdhsa.target").text(), format!("amdgcn-amd-amdhsa--{}", target.name));
    let version: Vec<_> = metadata.get("amdhsa.version").list().iter().map(Value::number).collect();
    assert_eq!(version, [1, if target.is_family() { 2 } else { 1 }], "{}", target.name);
    let Value::Map(entries) = metadata else { unreachable!() };
    let kernels = entries.into_iter().find(|(key, _)| key == "amdhsa.kernels");
    let Some((_, Value::List(kernels))) = kernels else { panic!("{}: no kernels", target.name) };
    let mut kernels: Vec<_> = kernels.into_iter().map(kernel).collect();
    kernels.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    kernels
}

fn kernel(description: Value) -> Kernel {
    let name = description.get(".name").text().to_owned();
    assert_eq!(description.get(".symbol").text(), format!("{name}.kd"));
    let mut kernel = Kernel { name, arguments: Vec::new(), hidden: Vec::new(), description };
    for argument in kernel.description.get(".args").list() {
        let place = (argument.get(".offset").number() as usize, argument.get(".size").number() as usize);
        match argument.get(".value_kind").text() {
            "global_buffer" | "by_value" => kernel.arguments.push(place),
            other if other.starts_with("hidden_") => kernel.hidden.push(place),
            other => panic!("{}: {other}", kernel.name),
        }
    }
    kernel
}

/// Holds a code object against its target and its kernels against each other: what a loader reads before any launch.
pub fn check(elf: &[u8], target: &Target) {
    let name = target.name;
    // 64 bits, little endian, AMD's ABI in the version of the code object: 4 or 6.
    assert_eq!(&elf[..8], b"\x7fELF\x02\x01\x01\x40", "{name}");
    assert_eq!(elf[8], if target.is_family() { 4 } else { 2 }, "{name}");
    // A shared object for AMD.
    assert_eq!((number::<2>(elf, 0x10), number::<2>(elf, 0x12)), (3, 224), "{name}");
    // What a device may have on or off is "any" (1) where there is a choice.
    let features = u64::from(target.xnack) << 8 | u64::from(target.sram_ecc) << 10;
    let family = u64::from(target.is_family()) << 24;
    assert_eq!(number::<4>(elf, 0x30), target.machine | features | family, "{name}");
    // A runtime is given no length: it takes the end of the sections' headers for the end.
    let end = number::<8>(elf, 0x28) + 64 * number::<2>(elf, 0x3c);
    assert_eq!(end, elf.len() as u64, "{name}");

    let kernels = kernels(elf, target);
    let descriptors: Vec<_> = kernels.iter().map(|kernel| format!("{}.kd", kernel.name)).collect();
    // Which of the two tables a loader reads is its choice.
    for table in [".dynsym", ".symtab"] {
        let symbols = symbols(elf, table);
        let of_kind = |kind: u8| {
            let of_kind = symbols.iter().filter(|symbol| symbol.kind == kind);
            of_kind.map(|symbol| symbol.name.as_str()).collect::<Vec<_>>()
        };
        let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(of_kind(FUNCTION), names, "{name} {table}");
        assert_eq!(of_kind(OBJECT), descriptors, "{name} {table}");
        assert_eq!(symbols.len(), 2 * kernels.len(), "{name} {table}");
        for kernel in &kernels {
            let find = |name: &str| symbols.iter().find(|symbol| symbol.name == name).unwrap();
            check_descriptor(elf, kernel, find(&kernel.name), find(&format!("{}.kd", kernel.name)), target);
        }
    }
}

/// The 64 bytes that a device starts a kernel by.
fn check_descriptor(elf: &[u8], kernel: &Kernel, code: &Symbol, descriptor: &Symbol, target: &Target) {
    let at = format!("{} {}", target.name, kernel.name);
    assert_eq!(descriptor.size, 64, "{at}");
    let bytes = loaded(elf, descriptor, 4);
    assert_eq!(number::<4>(bytes, 0), kernel.number(".group_segment_fixed_size"), "{at}");
    assert_eq!(number::<4>(bytes, 4), kernel.number(".private_segment_fixed_size"), "{at}");
    assert_eq!(number::<4>(bytes, 8), kernel.number(".kernarg_segment_size"), "{at}");
    assert_eq!(descriptor.address.wrapping_add(number::<8>(bytes, 16)), code.address, "{at}");
    // Waves of 32 threads are a bit of its own.
    assert_eq!(number::<2>(bytes, 56) >> 10 & 1 == 1, target.wave() == 32, "{at}");
    // Code that is there, where it can be executed.
    assert!(loaded(elf, code, 5).iter().any(|&byte| byte != 0), "{at}");
    assert_eq!(code.address % 256, 0, "{at}");
}

const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;

struct Symbol {
    name: String,
    kind: u8,
    address: u64,
    size: u64,
}

/// The global symbols of a table, sorted.
fn symbols(elf: &[u8], table: &str) -> Vec<Symbol> {
    let sections = sections(elf);
    let names = section(&sections, if table == ".dynsym" { ".dynstr" } else { ".strtab" }).content;
    let symbols = section(&sections, table).content.chunks_exact(24);
    let mut symbols: Vec<_> = symbols
        .filter(|symbol| symbol[4] >> 4 == 1)
        .map(|symbol| Symbol {
            name: text_at(names, number::<4>(symbol, 0) as usize).to_owned(),
            kind: symbol[4] & 15,
            address: number::<8>(symbol, 8),
            size: number::<8>(symbol, 16),
        })
        .collect();
    symbols.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    symbols
}

/// What a symbol stands for, in the one segment with these flags that it is loaded in.
fn loaded<'a>(elf: &'a [u8], symbol: &Symbol, flags: u64) -> &'a [u8] {
    const LOAD: u64 = 1;
    let (table, count) = (number::<8>(elf, 0x20) as usize, number::<2>(elf, 0x38) as usize);
    let mut segments = elf[table..table + 56 * count].chunks_exact(56).filter(|header| {
        let (begin, size) = (number::<8>(header, 0x10), number::<8>(header, 0x20));
        let inside = begin <= symbol.address && symbol.address + symbol.size <= begin + size;
        number::<4>(header, 0) == LOAD && number::<4>(header, 4) == flags && inside
    });
    let segment = segments.next().unwrap_or_else(|| panic!("{} is not loaded", symbol.name));
    assert!(segments.next().is_none(), "{}", symbol.name);
    let at = (number::<8>(segment, 8) + symbol.address - number::<8>(segment, 0x10)) as usize;
    &elf[at..at + symbol.size as usize]
}

/// What holds for every kernel: registers suffice, and waves are as the target has them by default.
pub fn check_registers(kernel: &Kernel, target: &Target) {
    let at = format!("{} {}", target.name, kernel.name);
    assert_eq!(kernel.number(".wavefront_size"), target.wave(), "{at}");
    for spilled in [".private_segment_fixed_size", ".vgpr_spill_count", ".sgpr_spill_count"] {
        assert_eq!(kernel.number(spilled), 0, "{at} {spilled}");
    }
    assert!(kernel.number(".vgpr_count") > 0, "{at}");
    // Room for arguments ends with the last one, or with what a runtime adds behind the kernel's own.
    let end = kernel.arguments.last().map_or(0, |(offset, size)| offset + size);
    assert!(kernel.hidden.is_empty() || target.is_family(), "{at}");
    if kernel.hidden.is_empty() {
        assert_eq!(kernel.number(".kernarg_segment_size"), end.next_multiple_of(4) as u64, "{at}");
    } else {
        assert!(kernel.hidden.iter().all(|(offset, _)| *offset >= end), "{at}");
        assert_eq!(kernel.number(".kernarg_segment_size"), end.next_multiple_of(8) as u64 + 256, "{at}");
    }
}

fn each(mut test: impl FnMut(&[u8], &Target)) {
    for target in &TARGETS {
        test(&image(&format!("{}.hsaco", target.name)), target);
    }
}

#[test]
fn a_code_object_is_for_the_target_in_its_name_and_has_its_kernels_where_they_are_looked_for() {
    each(check);
}

#[test]
fn a_code_object_has_the_kernels_with_their_arguments() {
    each(|elf, target| {
        let kernels = kernels(elf, target);
        let found: Vec<_> =
            kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.arguments.as_slice())).collect();
        assert_eq!(found, KERNELS, "{}", target.name);
    });
}

#[test]
fn nothing_is_passed_that_the_crate_does_not_pass_to_a_target_of_its_own() {
    each(|elf, target| {
        for kernel in kernels(elf, target) {
            assert_eq!(kernel.hidden.is_empty(), !target.is_family(), "{} {}", target.name, kernel.name);
        }
    });
}

#[test]
fn kernels_of_a_code_object_keep_to_registers_and_take_the_largest_blocks() {
    each(|elf, target| {
        for kernel in kernels(elf, target) {
            check_registers(&kernel, target);
            let largest = largest_block(&kernel.name);
            assert_eq!(kernel.number(".max_flat_workgroup_size"), largest, "{} {}", target.name, kernel.name);
            assert_eq!(kernel.number(".group_segment_fixed_size"), 0, "{} {}", target.name, kernel.name);
        }
    });
}
