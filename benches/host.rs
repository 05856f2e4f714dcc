//! What the host backend costs, against bumpalo and `Vec` on the same work, from one run: `cargo bench --bench host`.
//!
//! Every row is timed in turns with its peer, many short batches each, and the medians are compared, so that a
//! machine whose speed drifts does not decide the ratio. The absolute figures are this machine's alone.

use std::hint::black_box;
use std::time::Instant;

use bumpalo::Bump;
use device_arena::{Arena, Result};

/// Nanoseconds a run, the median of the batches.
struct Timing {
    samples: Vec<f64>,
}

impl Timing {
    fn new() -> Self {
        Self { samples: Vec::with_capacity(BATCHES) }
    }

    fn median(&mut self) -> f64 {
        self.samples.sort_by(f64::total_cmp);
        self.samples[self.samples.len() / 2]
    }
}

const BATCHES: usize = 301;
const RUNS: usize = 1000;

/// One batch of `RUNS` runs: how many nanoseconds each took.
type Batch<'a> = Box<dyn FnMut() -> f64 + 'a>;

fn batch<'a>(mut run: impl FnMut() + 'a) -> Batch<'a> {
    Box::new(move || {
        let start = Instant::now();
        for _ in 0..RUNS {
            run();
        }
        start.elapsed().as_nanos() as f64 / RUNS as f64
    })
}

/// Times the subjects in turns; answers the median of each.
fn interleave(mut subjects: Vec<Batch<'_>>) -> Vec<f64> {
    let mut timings: Vec<_> = subjects.iter().map(|_| Timing::new()).collect();
    for round in 0..BATCHES + 10 {
        for (subject, timing) in subjects.iter_mut().zip(&mut timings) {
            let sample = subject();
            if round >= 10 {
                timing.samples.push(sample);
            }
        }
    }
    timings.iter_mut().map(Timing::median).collect()
}

fn ratio_row(work: &str, ours: f64, peer: &str, theirs: f64, aim: Option<f64>) {
    let ratio = ours / theirs;
    let verdict = aim.map_or(String::new(), |aim| verdict(ratio, aim, "x"));
    println!("{work:<46} {ours:>8.1} ns  {peer:<28} {theirs:>8.1} ns  {ratio:>5.2}x {verdict}");
}

fn absolute_row(work: &str, ours: f64, aim: f64) {
    println!("{work:<46} {ours:>8.1} ns  {:<28} {:>11}  {:>6} {}", "", "", "", verdict(ours, aim, " ns"));
}

fn verdict(measured: f64, aim: f64, unit: &str) -> String {
    let word = if measured <= aim { "met" } else { "MISSED" };
    format!("(aim {aim}{unit}: {word})")
}

/// `output` of 256 f32 and its fill, in an open warm call. Each batch has a call of its own, as the bump has a
/// reset, so that neither runs out of room.
fn output_and_fill() -> Result<()> {
    let arena = Arena::host();
    arena.reserve(RUNS * 1024)?;
    let mut bump = Bump::with_capacity(RUNS * 1100);
    let ours: Batch<'_> = Box::new(|| {
        let call = arena.begin().expect("nobody holds the arena");
        let start = Instant::now();
        for _ in 0..RUNS {
            let mut output = call.output::<f32>(black_box(256)).expect("room is reserved");
            let values = output.as_mut_slice().expect("host memory");
            values.fill(black_box(1.5));
            black_box(values);
        }
        start.elapsed().as_nanos() as f64 / RUNS as f64
    });
    let theirs: Batch<'_> = Box::new(|| {
        bump.reset();
        let start = Instant::now();
        for _ in 0..RUNS {
            black_box(bump.alloc_slice_fill_copy(black_box(256), black_box(1.5f32)));
        }
        start.elapsed().as_nanos() as f64 / RUNS as f64
    });
    let medians = interleave(vec![ours, theirs]);
    ratio_row("output of 256 f32, filled, dropped", medians[0], "bumpalo fill_copy", medians[1], Some(1.5));
    Ok(())
}

fn publish_and_drop() -> Result<()> {
    let arena = Arena::host();
    arena.reserve(RUNS * 1024)?;
    let ours: Batch<'_> = Box::new(|| {
        let call = arena.begin().expect("nobody holds the arena");
        let outputs: Vec<_> = (0..RUNS).map(|_| call.output::<f32>(256).expect("room is reserved")).collect();
        let start = Instant::now();
        for output in outputs {
            drop(black_box(output.publish()));
        }
        start.elapsed().as_nanos() as f64 / RUNS as f64
    });
    absolute_row("publish, and dropping the view", interleave(vec![ours])[0], 15.0);
    Ok(())
}

fn begin_and_finish() -> Result<()> {
    let arena = Arena::host();
    let ours = batch(|| {
        let call = black_box(&arena).begin().expect("nobody holds the arena");
        call.finish().expect("the host");
    });
    absolute_row("begin and finish", interleave(vec![ours])[0], 30.0);
    Ok(())
}

fn read_guard() -> Result<()> {
    let arena = Arena::host();
    let call = arena.begin()?;
    let view = call.output_from_fn(256, |i| i as f32)?.publish();
    call.finish()?;
    let lock = std::sync::RwLock::new(vec![0f32; 256]);
    let ours = batch(|| {
        black_box(black_box(&view).read().expect("current")[17]);
    });
    let theirs = batch(|| {
        black_box(black_box(&lock).read().expect("not poisoned")[17]);
    });
    let medians = interleave(vec![ours, theirs]);
    ratio_row("a read guard, taken and dropped", medians[0], "std RwLock", medians[1], None);
    Ok(())
}

const SIZES: [usize; 3] = [256, 4096, 64];

/// A whole steady call of three outputs, each with one value written.
fn steady_call() -> Result<()> {
    let arena = Arena::host();
    let call = || -> Result<()> {
        let call = black_box(&arena).begin()?;
        let mut views = [None, None, None];
        for (view, len) in views.iter_mut().zip(SIZES) {
            let mut output = call.output::<f32>(black_box(len))?;
            output.as_mut_slice()?[0] = 1.0;
            *view = Some(output.publish());
        }
        call.finish()?;
        black_box(&views);
        Ok(())
    };
    call()?;
    let mut bump = Bump::new();
    let ours = batch(|| call().expect("steady"));
    let vecs = batch(|| {
        let mut vecs = SIZES.map(|len| Vec::<f32>::with_capacity(black_box(len)));
        vecs.iter_mut().for_each(|vec| vec.push(1.0));
        black_box(&vecs);
    });
    let zeroed = batch(|| {
        let mut vecs = SIZES.map(|len| vec![0f32; black_box(len)]);
        vecs.iter_mut().for_each(|vec| vec[0] = 1.0);
        black_box(&vecs);
    });
    let bumps = batch(|| {
        bump.reset();
        for len in SIZES {
            let room = bump.alloc_layout(std::alloc::Layout::array::<f32>(black_box(len)).expect("small"));
            // SAFETY: the room is at least one f32.
            unsafe { room.cast::<f32>().write(1.0) };
            black_box(room);
        }
    });
    let medians = interleave(vec![ours, vecs, zeroed, bumps]);
    let work = "a steady call of three outputs";
    ratio_row(work, medians[0], "3 Vec::with_capacity", medians[1], None);
    ratio_row(work, medians[0], "3 vec![0; n]", medians[2], None);
    ratio_row(work, medians[0], "bumpalo with reset", medians[3], None);
    Ok(())
}

fn main() -> Result<()> {
    println!("backend: host; medians of {BATCHES} interleaved batches of {RUNS} runs");
    output_and_fill()?;
    publish_and_drop()?;
    begin_and_finish()?;
    read_guard()?;
    steady_call()
}
