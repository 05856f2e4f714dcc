//! Kernels of the examples and of the suite: a file for HIP beside each PTX, with the code objects of every target.

use std::str;

use super::code_object::{TARGETS, check, check_registers, kernels};
use super::elf::number;
use super::{ptx, read};

/// Without their extensions.
const FILES: [&str; 3] = ["examples/embed/kernels", "examples/compact", "tests/gpu/kernels"];

/// What a bundle has, in order: the name of what it is for, where it begins, and its content.
fn entries(bundle: &[u8]) -> Vec<(&str, usize, &[u8])> {
    const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
    assert_eq!(&bundle[..MAGIC.len()], MAGIC);
    let mut at = MAGIC.len() + 8;
    let mut entries = Vec::new();
    for _ in 0..number::<8>(bundle, MAGIC.len()) {
        let field = |index: usize| number::<8>(bundle, at + 8 * index) as usize;
        let (begin, size, length) = (field(0), field(1), field(2));
        let name = str::from_utf8(&bundle[at + 24..at + 24 + length]).unwrap();
        at += 24 + length;
        entries.push((name, begin, &bundle[begin..begin + size]));
    }
    entries
}

fn each(mut test: impl FnMut(&str, Vec<(&str, usize, &[u8])>)) {
    for file in FILES {
        test(file, entries(&read(&format!("{file}.hipfb"))));
    }
}

/// Where each parameter of a kernel begins and its size, by its lines in PTX.
fn arguments(ptx: &str, kernel: &str) -> Vec<(usize, usize)> {
    let mut end: usize = 0;
    let argument = |line: &str| {
        let size = match line.split_whitespace().nth(1) {
            Some(".u64") => 8,
            Some(".u32") => 4,
            _ => panic!("{kernel}: {line}"),
        };
        let begin = end.next_multiple_of(size);
        end = begin + size;
        (begin, size)
    };
    ptx::parameters(ptx, kernel).into_iter().map(argument).collect()
}

#[test]
fn a_fat_binary_has_a_code_object_for_every_target_as_hipcc_lays_them_out() {
    each(|file, entries| {
        let expected = TARGETS.map(|target| format!("hipv4-amdgcn-amd-amdhsa--{}", target.name));
        let names: Vec<_> = entries.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names[0], "host-x86_64-unknown-linux--", "{file}");
        assert!(entries[0].2.is_empty(), "{file}");
        assert_eq!(names[1..], expected, "{file}");
        let mut end = 0;
        for (name, begin, content) in &entries[1..] {
            assert_eq!(begin % 4096, 0, "{file} {name}");
            assert!(*begin >= end && !content.is_empty(), "{file} {name}");
            end = begin + content.len();
        }
        assert_eq!(read(&format!("{file}.hipfb")).len(), end, "{file}");
    });
}

#[test]
fn each_of_its_code_objects_is_for_the_target_that_is_named() {
    each(|_, entries| {
        for (target, (_, _, code)) in TARGETS.iter().zip(&entries[1..]) {
            check(code, target);
            for kernel in kernels(code, target) {
                check_registers(&kernel, target);
            }
        }
    });
}

#[test]
fn each_has_the_kernels_of_the_ptx_beside_it() {
    each(|file, entries| {
        let ptx = String::from_utf8(read(&format!("{file}.ptx"))).unwrap();
        let names = ptx::entries(&ptx);
        assert!(!names.is_empty(), "{file}");
        for (target, (_, _, code)) in TARGETS.iter().zip(&entries[1..]) {
            let kernels = kernels(code, target);
            let found: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            assert_eq!(found, names, "{file} {}", target.name);
            for kernel in kernels {
                let expected = arguments(&ptx, &kernel.name);
                assert_eq!(kernel.arguments, expected, "{file} {} {}", target.name, kernel.name);
            }
        }
    });
}
