//! Cold starts: this program as a child, from its begin to its first copy done, by the crate and by the driver alone.

use std::ffi::{c_int, c_uint};
use std::process::Command;
use std::time::Instant;

use device_arena::Placement;
use device_arena::backend::{Backend, CopyRange, Cuda};
use libloading::Library;

use crate::driver::{Handle, done, function};
use crate::memory::words;
use crate::report::{Report, Row};
use crate::timing::{Effort, Outcome, Span, Timing, micros};

pub const COLD: &str = "cold start";
pub const ARGUMENT: &str = "--first-copy";
const BYTES: usize = 1 << 20;

/// The child: makes its first copy, and prints the microseconds since its begin.
pub fn child(by: &str, begin: Instant) -> Outcome {
    let took = if by == "crate" { by_crate(begin)? } else { by_driver(begin)? };
    println!("{took}");
    Ok(())
}

/// Two ranges, since a single one may be the driver's to copy: the kernels are loaded.
fn by_crate(begin: Instant) -> Result<f64, String> {
    let cuda = Cuda::load().map_err(words)?;
    let stream = cuda.create_stream(0).map_err(words)?;
    let block = || cuda.allocate(0, Some(&stream), Placement::Device, BYTES).map_err(words);
    let (from, to) = (block()?, block()?);
    let half = |block: &device_arena::backend::Block, at: usize| {
        block.address().as_ptr().wrapping_add(at * BYTES / 2)
    };
    let ranges =
        [0, 1].map(|at| CopyRange { destination: half(&to, at), source: half(&from, at), bytes: BYTES / 2 });
    // SAFETY: the ranges are of blocks that nobody else has.
    unsafe { cuda.copy(Some(&stream), &ranges) }.map_err(words)?;
    cuda.synchronize(&stream).map_err(words)?;
    let took = micros(begin.elapsed());
    // SAFETY: the blocks are not used any more.
    unsafe {
        let _ = cuda.free(Some(&stream), from);
        let _ = cuda.free(Some(&stream), to);
    }
    Ok(took)
}

/// The same with the driver alone: a context, and one copy.
fn by_driver(begin: Instant) -> Result<f64, String> {
    type Retain = unsafe extern "C" fn(*mut Handle, c_int) -> c_int;
    type Allocate = unsafe extern "C" fn(*mut u64, usize) -> c_int;
    type Copy = unsafe extern "C" fn(u64, u64, usize, Handle) -> c_int;
    let name = std::env::var(LIBRARY).map_err(words)?;
    // SAFETY: the library is the driver, which the parent has loaded by this name.
    let library = unsafe { Library::new(name) }.map_err(words)?;
    let library: &'static Library = Box::leak(Box::new(library));
    let (mut context, mut stream) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut blocks = [0u64; 2];
    // SAFETY: the types are those of the driver's declarations, and it writes what it is given places for.
    unsafe {
        let init: unsafe extern "C" fn(c_uint) -> c_int = function(library, "cuInit")?;
        done("cuInit", init(0))?;
        done(
            "cuDevicePrimaryCtxRetain",
            function::<Retain>(library, "cuDevicePrimaryCtxRetain")?(&raw mut context, 0),
        )?;
        let set: unsafe extern "C" fn(Handle) -> c_int = function(library, "cuCtxSetCurrent")?;
        done("cuCtxSetCurrent", set(context))?;
        let create: unsafe extern "C" fn(*mut Handle, c_uint) -> c_int = function(library, "cuStreamCreate")?;
        done("cuStreamCreate", create(&raw mut stream, 1))?;
        let allocate: Allocate = function(library, "cuMemAlloc_v2")?;
        for block in &mut blocks {
            done("cuMemAlloc", allocate(block, BYTES))?;
        }
        let copy: Copy = function(library, "cuMemcpyAsync")?;
        done("cuMemcpyAsync", copy(blocks[0], blocks[1], BYTES, stream))?;
        let wait: unsafe extern "C" fn(Handle) -> c_int = function(library, "cuStreamSynchronize")?;
        done("cuStreamSynchronize", wait(stream))?;
    }
    Ok(micros(begin.elapsed()))
}

/// The driver's name, for the child.
const LIBRARY: &str = "DEVICE_ARENA_BENCH_DRIVER";

/// Microseconds as the child says them, and as its parent sees them.
fn start(by: &str, library: &str) -> Result<(f64, f64), String> {
    let program = std::env::current_exe().map_err(words)?;
    let begin = Instant::now();
    let output = Command::new(program)
        .args([ARGUMENT, by])
        .env("CUDA_CACHE_DISABLE", "1")
        .env(LIBRARY, library)
        .output()
        .map_err(words)?;
    let seen = micros(begin.elapsed());
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    said.trim().parse().map(|said| (said, seen)).map_err(|_| format!("it said {said}"))
}

/// Children of both kinds in turns.
pub fn starts(effort: Effort, begin: Instant, library: &str, report: &mut Report) -> Outcome {
    const SIDES: [(&str, &str, &str); 2] =
        [("crate", "crate", "crate, whole process"), ("driver", "driver", "driver, whole process")];
    let rounds = match effort {
        Effort::Whole => 7,
        Effort::Quick => 3,
        Effort::Tiny => 2,
    };
    let mut samples = [const { (Vec::new(), Vec::new()) }; 2];
    for round in 0..=rounds {
        if round > 1 && effort.is_late(begin) {
            break;
        }
        for ((by, ..), (said, seen)) in SIDES.iter().zip(&mut samples) {
            let times = start(by, library)?;
            // The first of each reads the files that the others find in memory.
            if round > 0 {
                said.push(times.0);
                seen.push(times.1);
            }
        }
    }
    let mut row = Row::new(COLD, "to the first copy done, no compute cache", 0, 0);
    for ((_, inside, outside), (said, seen)) in SIDES.into_iter().zip(samples) {
        row.add(inside, Span::Host, Timing::of(said, 1));
        row.add(outside, Span::Host, Timing::of(seen, 1));
    }
    report.rows.push(row);
    Ok(())
}
