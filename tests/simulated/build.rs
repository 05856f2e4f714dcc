//! Compiles the kernels that the crate ships for the host, and the grid that runs them.

use std::path::Path;

fn main() {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .file("kernels/launch.cpp")
        .define("DEVICE_ARENA_SIMULATED", None)
        .include(root.join("backends/kernels"))
        .include(root.join("include"))
        // Without it a thread that faults could not be taken out of the middle of a kernel.
        .flag("-fnon-call-exceptions")
        .flag_if_supported("-Wno-unknown-pragmas");
    build.compile("device_arena_grid");

    // Worker threads run until the process ends, so the object must never be unloaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    for path in ["kernels", "../../backends/kernels", "../../include"] {
        println!("cargo::rerun-if-changed={path}");
    }
}
