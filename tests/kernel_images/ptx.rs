//! The text that NVIDIA's drivers compile for any device.

use super::{KERNELS, image};

fn ptx() -> String {
    String::from_utf8(image("ptx")).unwrap()
}

/// The kernels of a text, sorted.
pub fn entries(ptx: &str) -> Vec<&str> {
    let mut entries: Vec<_> = ptx
        .lines()
        .filter_map(|line| line.strip_prefix(".visible .entry "))
        .map(|line| line.trim_end_matches('('))
        .collect();
    entries.sort_unstable();
    entries
}

/// The lines of a kernel's parameters.
pub fn parameters<'a>(ptx: &'a str, kernel: &str) -> Vec<&'a str> {
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
    assert_eq!(entries(&ptx), KERNELS.map(|(kernel, _)| kernel));
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
