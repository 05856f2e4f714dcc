//! The committed header is the one that the sources make.

use std::path::Path;

/// With `DEVICE_ARENA_WRITE` set, the header is written anew and not compared.
#[test]
fn the_committed_header_is_what_the_sources_make() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = made(root);
    let path = root.join("include/device_arena.h");
    if std::env::var_os("DEVICE_ARENA_WRITE").is_some() {
        std::fs::write(&path, made).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let pairs = made.lines().zip(committed.lines()).enumerate();
    for (index, (made, committed)) in pairs {
        assert_eq!(made, committed, "line {}; DEVICE_ARENA_WRITE=1 writes the header anew", index + 1);
    }
    assert!(made == committed, "one has more lines; DEVICE_ARENA_WRITE=1 writes the header anew");
}

fn made(root: &Path) -> String {
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new().with_crate(root).with_config(config).generate().unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    String::from_utf8(made).unwrap()
}
