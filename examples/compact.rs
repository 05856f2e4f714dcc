//! Outputs whose size only a kernel knows: keeps the words of a file that are not empty, on a GPU.
//!
//! ```text
//! cargo run --release --features cuda,rocm --example compact -- README.md
//! ```
//!
//! The kernel (`compact.cu`) takes room for each word from a `DeviceRoom` with one atomic addition. The first room is too
//! small on purpose: the kernel says how much it needs, the room is made that large, and the kernel runs again. What calls
//! it is in `compact/device.rs`. Without a GPU, and in a build without a GPU's backend, it says so and does nothing.

#[cfg(any(feature = "cuda", feature = "rocm"))]
#[path = "compact/device.rs"]
mod device;

use std::error::Error;
use std::process::ExitCode;

use device_arena::Executor;
#[cfg(any(feature = "cuda", feature = "rocm"))]
use device_arena::backend::Vendor;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("compact: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the GPU kept what the host keeps, or there is none.
fn run() -> Result<bool, Box<dyn Error>> {
    let path = std::env::args_os().nth(1);
    let path = path.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/README.md").into());
    let executor = Executor::best()?;
    #[cfg(any(feature = "cuda", feature = "rocm"))]
    if executor.vendor() != Vendor::Host {
        return device::keep(executor, path.as_ref());
    }
    let has_backend = cfg!(any(feature = "cuda", feature = "rocm"));
    let reason = if has_backend { "there is no GPU here" } else { "this build has no GPU backend" };
    println!("skipped: {reason}, and the {} does nothing with {}", executor.vendor(), path.display());
    Ok(true)
}
