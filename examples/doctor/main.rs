//! What a bug report should carry: which drivers were found and where, what their devices are and can do, and what they
//! say of every kind of pointer. It works without any driver, and its exit code is always 0.
//!
//! ```text
//! cargo run --features cuda,rocm --example doctor
//! ```
//!
//! Each line is `name: value`. Names stay what they are from version to version; addresses and times are left out, so that
//! the reports of two machines can be compared line by line.

#[cfg(any(feature = "cuda", feature = "rocm"))]
mod driver;
#[cfg(any(feature = "cuda", feature = "rocm"))]
mod gpu;
#[cfg(any(feature = "cuda", feature = "rocm"))]
mod images;
mod pointers;
#[cfg(any(feature = "cuda", feature = "rocm"))]
mod vendors;

use std::fmt::Display;
use std::io::Write;

use device_arena::Executor;

fn main() {
    let features = [
        ("allocator-api2", cfg!(feature = "allocator-api2")),
        ("cuda", cfg!(feature = "cuda")),
        ("cudarc", cfg!(feature = "cudarc")),
        ("rocm", cfg!(feature = "rocm")),
        ("tracing", cfg!(feature = "tracing")),
    ];
    let on: Vec<_> = features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    line("crate.version", env!("CARGO_PKG_VERSION"));
    line("crate.features", if on.is_empty() { "none".into() } else { on.join(" ") });
    line("crate.profile", if cfg!(debug_assertions) { "debug" } else { "release" });
    line("host.system", format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    line("host.cores", std::thread::available_parallelism().map_or(0, usize::from));

    line("env.LD_LIBRARY_PATH", std::env::var("LD_LIBRARY_PATH").unwrap_or("unset".into()));
    #[cfg(any(feature = "cuda", feature = "rocm"))]
    vendors::ALL.iter().for_each(gpu::report);
    for (name, is_on) in &features {
        if matches!(*name, "cuda" | "rocm") && !is_on {
            line(
                format_args!("{name}.library"),
                format_args!("not in this build: its feature `{name}` is off"),
            );
        }
    }

    match Executor::best() {
        Ok(best) => line("best", format_args!("{} {}", best.vendor(), best.ordinal())),
        Err(error) => line("best", failed(&error)),
    }
    pointers::report();
    #[cfg(any(feature = "cuda", feature = "rocm"))]
    vendors::ALL.iter().for_each(gpu::report_pointers);
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
