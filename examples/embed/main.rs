//! The main job: an engine that tokenizes and embeds the lines of text files, in arenas.
//!
//! ```text
//! cargo run --release --example embed -- --query "one call at a time" README.md
//! ```
//!
//! Read `verbs.rs` next: its two functions are what an engine looks like on this crate. `steady.rs` calls them. With the
//! feature `cuda` or `rocm`, and on a machine with such a GPU, those of `device.rs` run instead.

#[cfg(any(feature = "cuda", feature = "rocm"))]
mod device;
mod engine;
mod options;
mod report;
mod steady;
mod texts;
mod verbs;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

#[cfg(any(feature = "cuda", feature = "rocm"))]
use device_arena::backend::Vendor;
use device_arena::{Arena, Executor, Result, Tape, View};

use crate::engine::{Engine, Host};
use crate::options::Options;
use crate::report::Report;
use crate::steady::{Arenas, Refusals, steady_loop};
use crate::texts::Texts;
use crate::verbs::DIM;

fn main() -> ExitCode {
    let options = match Options::from_args() {
        Ok(options) => options,
        Err(error) => return fail(&format!("{error}; see --help"), 2),
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string(), 1),
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    if options.help {
        return Ok(print(options::HELP)?);
    }
    let texts = Texts::read(&options.files)?;
    // On a GPU if a driver offers one.
    let executor = if options.host { Executor::host()? } else { Executor::best()? };
    #[cfg(any(feature = "cuda", feature = "rocm"))]
    if executor.vendor() != Vendor::Host {
        return run_on(&device::Device::new(&executor)?, &texts, options);
    }
    run_on(&Host(executor), &texts, options)
}

fn run_on(engine: &impl Engine, texts: &Texts, options: &Options) -> Result<(), Box<dyn Error>> {
    let mut arenas = Arenas::new(engine.executor());
    let outcome = steady_loop(engine, &texts.tape, &mut arenas, options.calls.get())?;

    // The worker measures the texts while this thread goes on; until then the arena is the deferred call's.
    let host = Executor::host()?;
    let own = Arena::new(&host);
    let tape = texts.tape.clone();
    let lengths = host.defer(&own, move |call| {
        let view = tape.view();
        let mut lengths = call.output_from_fn(view.len(), |i| view.range(i).map_or(0, |text| text.len()))?;
        lengths.as_mut_slice()?.sort_unstable();
        Ok(lengths.publish())
    })?;

    let refusals = Refusals::provoke(engine.executor(), &host, &arenas, &outcome.first)?;
    let nearest = match &options.query {
        Some(query) => Some(nearest(engine, &arenas, query, &outcome.best.view)?),
        None => None,
    };
    let lengths = lengths.wait()?.to_vec()?;

    let report = Report { executor: engine.executor(), texts, outcome, refusals, lengths, nearest };
    Ok(print(&if options.json { report.json() } else { report.table() })?)
}

/// The five texts that are nearest to `query` by cosine, the nearest first: which, and how near.
fn nearest(
    engine: &impl Engine,
    arenas: &Arenas,
    query: &[u8],
    rows: &View<f32>,
) -> Result<Vec<(usize, f32)>> {
    // Both arenas are rewound here. The rows to search stay: they are in the arena that is kept.
    let tokens = engine.tokenize(&Tape::from_items([query])?.view(), &arenas.tokens)?;
    let query = engine.embed(&tokens, &arenas.rows)?.to_vec()?;
    // From a device this is the one copy to the host.
    let rows = rows.to_vec()?;
    // Rows are of length one, so that the product is the cosine.
    let cosine = |row: &[f32]| row.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
    let mut scores: Vec<_> = rows.chunks_exact(DIM).map(cosine).enumerate().collect();
    scores.retain(|(_, score)| *score > 0.0);
    scores.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scores.truncate(5);
    Ok(scores)
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // Whoever reads has seen enough: `embed … | head -1`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

fn fail(message: &str, code: u8) -> ExitCode {
    // Where standard error is closed, the code has to say it all.
    let _ = writeln!(io::stderr(), "embed: {message}");
    ExitCode::from(code)
}
