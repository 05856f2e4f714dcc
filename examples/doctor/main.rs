//! What a bug report should carry: which drivers were found and where, what their devices are and can do, and what they
//! say of every kind of pointer. It works without any driver, and its exit code is always 0.
//!
//! ```text
//! cargo run --features cuda --example doctor
//! ```
//!
//! Each line is `name: value`. Names stay what they are from version to version; addresses and times are left out, so that
//! the reports of two machines can be compared line by line.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod driver;
mod pointers;

use std::fmt::Display;
use std::io::Write;

use device_arena::Executor;

fn main() {
    let features = [
        ("allocator-api2", cfg!(feature = "allocator-api2")),
        ("cuda", cfg!(feature = "cuda")),
        ("cudarc", cfg!(feature = "cudarc")),
        ("tracing", cfg!(feature = "tracing")),
    ];
    let features: Vec<_> = features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    line("crate.version", env!("CARGO_PKG_VERSION"));
    line("crate.features", if features.is_empty() { "none".into() } else { features.join(" ") });
    line("crate.profile", if cfg!(debug_assertions) { "debug" } else { "release" });
    line("host.system", format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    line("host.cores", std::thread::available_parallelism().map_or(0, usize::from));

    #[cfg(feature = "cuda")]
    cuda::report();
    #[cfg(not(feature = "cuda"))]
    line("cuda.library", "this build has no GPU backend: the feature `cuda` is off");

    match Executor::best() {
        Ok(best) => line("best", format_args!("{} {}", best.vendor(), best.ordinal())),
        Err(error) => line("best", failed(&error)),
    }
    pointers::report();
    #[cfg(feature = "cuda")]
    cuda::report_pointers();
}

/// One fact. It is on its way before the next one is looked for, whatever comes of that.
fn line(name: impl Display, value: impl Display) {
    let value = value.to_string().replace(['\n', '\r'], " ");
    // Whoever reads may have seen enough.
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{name}: {value}").and_then(|()| stdout.flush());
}

fn failed(error: &dyn Display) -> String {
    format!("failed: {error}")
}
