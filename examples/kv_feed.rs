//! A decode loop over a plan: every layer has resident slots for keys and values, and each step moves one new row into each.
//! The moves of a step are one launch. Every step is held against a plain model of vectors.
//!
//! `cargo run --release --example kv_feed -- [--host] [--layers N] [--context N] [--row BYTES] [--steps N] [--json]`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use device_arena::plan::{Buffer, MemoryPlan, Planner};
use device_arena::{Executor, PlannedArena, Result, Rows, Run};

/// What is decoded.
struct Options {
    host: bool,
    json: bool,
    layers: usize,
    /// Rows of a slot.
    context: usize,
    /// Bytes of a row.
    row: usize,
    steps: usize,
}

/// The slots of a layer's keys and values, and where a step's new rows are.
const NEW_ROWS: u64 = u64::MAX;

fn keys(layer: usize) -> u64 {
    2 * layer as u64
}

fn values(layer: usize) -> u64 {
    keys(layer) + 1
}

impl Options {
    fn parse() -> std::result::Result<Self, lexopt::Error> {
        use lexopt::prelude::*;
        let mut options = Self { host: false, json: false, layers: 32, context: 256, row: 1024, steps: 256 };
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("host") => options.host = true,
                Long("json") => options.json = true,
                Long("layers") => options.layers = arguments.value()?.parse()?,
                Long("context") => options.context = arguments.value()?.parse()?,
                Long("row") => options.row = arguments.value()?.parse()?,
                Long("steps") => options.steps = arguments.value()?.parse()?,
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(options)
    }

    fn slots(&self) -> usize {
        2 * self.layers
    }

    /// Keys and values live over the whole run; a step's new rows only where they are made and moved.
    fn plan(&self) -> Result<MemoryPlan> {
        let slot = (self.context * self.row) as u64;
        let resident = (0..self.layers).flat_map(|layer| {
            let name = |what: &str| format!("layer {layer} {what}");
            let buffer = |node, what| Buffer::new(node, 0..1, slot).pinned().named(name(what));
            [buffer(keys(layer), "keys"), buffer(values(layer), "values")]
        });
        let new_rows = Buffer::new(NEW_ROWS, 0..1, (self.slots() * self.row) as u64).named("new rows");
        let buffers: Vec<_> = resident.chain([new_rows]).collect();
        Ok(Planner::new().alignment(256).plan(&buffers)?.into_plan())
    }

    /// What a step's kernels would compute: a row for each slot.
    fn rows_of(&self, step: usize) -> Vec<u8> {
        let bytes = self.slots() * self.row;
        (0..bytes).map(|at| (at * 31 + step * 7 + at / self.row) as u8).collect()
    }
}

/// What was moved, and how long the host was busy with it.
#[derive(Default)]
struct Report {
    copies: usize,
    launches: usize,
    bytes: usize,
    host_time: Duration,
}

/// Moves a step's rows into their places: by rows in order where the slots are at even distances, else slot by slot.
fn feed(options: &Options, run: &mut Run, step: usize, report: &mut Report) -> Result<()> {
    let at = step % options.context;
    let began = Instant::now();
    let offsets: Vec<u64> =
        (0..options.slots() as u64).map(|node| run.plan().byte_offset(node)).collect::<Result<_>>()?;
    let stride = offsets.get(1).zip(offsets.first()).map_or(0, |(second, first)| second.wrapping_sub(*first));
    let is_even = offsets.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] == stride);
    let mut copies = run.copies();
    if is_even {
        let rows = Rows::new(options.slots(), options.row);
        let rows = rows.from(NEW_ROWS, 0, options.row).to(keys(0), at * options.row, stride as usize);
        copies.rows::<u8>(&rows)?;
    } else {
        for node in 0..options.slots() {
            copies.copy::<u8>(
                (node as u64, at * options.row),
                (NEW_ROWS, node * options.row),
                options.row,
            )?;
        }
    }
    copies.launch()?;
    report.host_time += began.elapsed();
    report.copies += options.slots();
    report.launches += 1;
    report.bytes += options.slots() * options.row;
    Ok(())
}

/// The first slot that differs from the model.
fn mismatch(options: &Options, run: &Run, model: &[Vec<u8>]) -> Result<Option<usize>> {
    let mut bytes = vec![0u8; options.context * options.row];
    for (node, expected) in model.iter().enumerate() {
        run.read(node as u64, &mut bytes)?;
        if bytes != *expected {
            return Ok(Some(node));
        }
    }
    Ok(None)
}

fn decode(options: &Options, executor: &Executor) -> Result<Option<Report>> {
    let arena = PlannedArena::new(executor, options.plan()?)?;
    let mut model = vec![vec![0u8; options.context * options.row]; options.slots()];
    let mut report = Report::default();
    for step in 0..options.steps {
        let mut run = arena.begin()?;
        let rows = options.rows_of(step);
        run.write(NEW_ROWS, &rows)?;
        feed(options, &mut run, step, &mut report)?;
        let at = step % options.context * options.row;
        for (slot, row) in model.iter_mut().zip(rows.chunks_exact(options.row)) {
            slot[at..at + options.row].copy_from_slice(row);
        }
        if let Some(node) = mismatch(options, &run, &model)? {
            eprintln!("step {step}: node {node} is not what the model has");
            return Ok(None);
        }
        run.finish()?;
    }
    assert_eq!(arena.stats().allocations, 1, "the arena is one block, made once");
    Ok(Some(report))
}

fn main() -> ExitCode {
    let options = match Options::parse() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let executor = if options.host { Executor::host() } else { Executor::best() };
    let outcome = executor.and_then(|executor| Ok((executor.vendor(), decode(&options, &executor)?)));
    let (vendor, report) = match outcome {
        Ok((vendor, Some(report))) => (vendor, report),
        Ok((_, None)) => return ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let per_step = report.host_time.as_nanos() as f64 / options.steps.max(1) as f64;
    if options.json {
        let line = serde_json::json!({
            "executor": vendor.to_string(),
            "layers": options.layers,
            "steps": options.steps,
            "copies": report.copies,
            "launches": report.launches,
            "bytes": report.bytes,
            "host_ns_per_step": per_step,
            "matches": true,
        });
        println!("{line}");
    } else {
        println!(
            "{vendor}: {} layers, {} steps, every step as the model has it",
            options.layers, options.steps
        );
        println!("{} copies in {} launches, {} bytes", report.copies, report.launches, report.bytes);
        println!("{:.1} us of the host's time a step", per_step / 1000.0);
    }
    ExitCode::SUCCESS
}
