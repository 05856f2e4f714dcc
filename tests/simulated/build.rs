//! Says which driver this is, and compiles the kernels that the crate ships for the host, and the grid that runs them.

use std::path::Path;

/// The features of which exactly one is on.
const DRIVERS: [&str; 6] = ["cuda", "hip-5-2", "hip-5-7", "hip-6-4", "hip-7-2", "hiprtc"];

fn is_on(feature: &str) -> bool {
    let name = feature.to_uppercase().replace('-', "_");
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

fn main() {
    let drivers: Vec<_> = DRIVERS.into_iter().filter(|feature| is_on(feature)).collect();
    let [driver] = drivers[..] else {
        panic!("one of the features {DRIVERS:?} has to be on, and these are: {drivers:?}");
    };
    let forward = is_on("forward");
    assert!(!forward || driver == "hip-6-4", "forward is for hip-6-4");
    // The compiler of kernels moved out of the runtime's library with ROCm 7.
    for (name, holds) in [
        ("hip", driver.starts_with("hip-")),
        ("rtc", driver.starts_with("hip") && driver != "hip-7-2"),
        ("forward", forward),
    ] {
        if holds {
            println!("cargo::rustc-cfg={name}");
        }
    }
    if !forward {
        compile_grid();
    }
    // Worker threads run until the process ends, so the object must never be unloaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    for path in ["kernels", "../../backends/kernels", "../../include"] {
        println!("cargo::rerun-if-changed={path}");
    }
}

fn compile_grid() {
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
}
