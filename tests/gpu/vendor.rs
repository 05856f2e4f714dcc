//! Whose driver this process runs on, and what is one vendor's alone.

use std::sync::OnceLock;

use device_arena::backend::{AnyBackend, Vendor};
use device_arena::{AllocationOrigin, Executor, Result};

use crate::vendors;

/// Names the vendor, so that a child runs on its parent's.
pub(crate) const VARIABLE: &str = "DEVICE_ARENA_TEST_VENDOR";

/// The one that `DEVICE_ARENA_TEST_VENDOR` names, or that is required, or the first that is here.
pub(crate) fn vendor() -> Vendor {
    static VENDOR: OnceLock<Vendor> = OnceLock::new();
    *VENDOR.get_or_init(|| match std::env::var(VARIABLE) {
        Ok(name) => {
            let mut all = vendors::ALL.iter().copied();
            let named = all.find(|vendor| vendor.to_string() == name);
            named.unwrap_or_else(|| panic!("{VARIABLE}: there is no {name} in this build"))
        }
        Err(_) => vendors::first().unwrap(),
    })
}

pub(crate) fn is_nvidia() -> bool {
    vendor() == Vendor::Cuda
}

pub(crate) fn load() -> Result<AnyBackend> {
    vendors::load(vendor())
}

pub(crate) fn executor(ordinal: u32) -> Result<Executor> {
    vendors::executor(vendor(), ordinal)
}

/// The words for one vendor or the other.
fn of<T>(nvidia: T, amd: T) -> T {
    if is_nvidia() { nvidia } else { amd }
}

/// The variable that names the path of its library.
pub(crate) fn path_variable() -> &'static str {
    of("DEVICE_ARENA_CUDA_LIBRARY", "DEVICE_ARENA_ROCM_LIBRARY")
}

/// The variable that hides devices from a process.
pub(crate) fn visible_devices() -> &'static str {
    of("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
}

/// What its library's file is called, and where else than by these names it is looked for.
pub(crate) fn library_names() -> &'static [&'static str] {
    of(
        &["libcuda.so", "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/run/opengl-driver/lib"],
        &["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"],
    )
}

/// How the names of its devices' architectures begin.
pub(crate) fn architecture_prefix() -> &'static str {
    of("sm_", "gfx")
}

/// How it says that memory was made, where that is so: AMD's runtime does not say.
pub(crate) fn says(origin: AllocationOrigin) -> AllocationOrigin {
    of(origin, AllocationOrigin::Unknown)
}

/// The suite's kernels, as its driver takes them.
pub(crate) fn kernels() -> &'static [u8] {
    match vendor() {
        // Text that the driver compiles when it is loaded. It takes it as a C string.
        Vendor::Cuda => concat!(include_str!("kernels.ptx"), "\0").as_bytes(),
        #[cfg(feature = "rocm")]
        Vendor::Rocm => include_bytes!("kernels.hipfb"),
        other => panic!("there are no kernels for {other}"),
    }
}
