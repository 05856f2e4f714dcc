//! What a GPU shows, from one run: the crate's copies, scrubs and calls in turns with what a user would call instead, and
//! what they were to reach.
//!
//! ```text
//! cargo bench --features cuda --bench copies
//! cargo bench --features cuda --bench copies -- --quick --json FILE --markdown FILE
//! ```
//!
//! With `--scale` it shows how costs grow with sizes and counts, and draws that with `--svg FILE`.
//!
//! The peers are built by nvcc, which is looked for as `NVCC` says, in the search path and in `/usr/local/cuda/bin`.

mod aims;
mod calls;
mod cold;
mod driver;
mod fills;
mod host;
mod lists;
mod memory;
mod peers;
mod plot;
mod report;
mod scale;
mod timing;
mod works;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::memory::{Gpu, Pieces};
use crate::peers::Peers;
use crate::report::{Machine, Report};
use crate::timing::{Effort, Outcome};

/// What the command line says.
struct Options {
    effort: Effort,
    has_peers: bool,
    is_scale: bool,
    svg: Option<PathBuf>,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
    first_copy: Option<String>,
    build_peers: Option<PathBuf>,
}

const USAGE: &str = "usage: copies [--quick | --tiny] [--no-peers] [--json FILE] [--markdown FILE]
       copies --scale [--quick | --tiny] [--svg FILE] [--json FILE] [--markdown FILE]
       copies --build-peers FOLDER";

fn options() -> Result<Options, lexopt::Error> {
    let mut options = Options {
        effort: Effort::Whole,
        has_peers: true,
        is_scale: false,
        svg: None,
        json: None,
        markdown: None,
        first_copy: None,
        build_peers: None,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            lexopt::Arg::Long("quick") => options.effort = Effort::Quick,
            lexopt::Arg::Long("tiny") => options.effort = Effort::Tiny,
            lexopt::Arg::Long("scale") => options.is_scale = true,
            lexopt::Arg::Long("svg") => options.svg = Some(parser.value()?.into()),
            lexopt::Arg::Long("no-peers") => options.has_peers = false,
            lexopt::Arg::Long("json") => options.json = Some(parser.value()?.into()),
            lexopt::Arg::Long("markdown") => options.markdown = Some(parser.value()?.into()),
            lexopt::Arg::Long("first-copy") => {
                options.first_copy = Some(parser.value()?.to_string_lossy().into())
            }
            lexopt::Arg::Long("build-peers") => options.build_peers = Some(parser.value()?.into()),
            // What cargo says to every bench.
            lexopt::Arg::Long("bench") => {}
            other => return Err(other.unexpected()),
        }
    }
    Ok(options)
}

/// Everything that needs the device, with its context current.
fn on_device(gpu: &Gpu, report: &mut Report) -> Outcome {
    let works = works::all(gpu.effort);
    let largest = works.iter().map(works::Work::end).max().unwrap_or(0);
    let pieces = Pieces::new(gpu, largest.max(gpu.effort.scaled(4 << 30) + (1 << 20)))?;
    let delay = gpu.block(gpu.effort.scaled(1 << 30))?;
    let clock = gpu.clock(&delay);
    let part = |report: &mut Report, name: &str, outcome: Outcome| {
        if let Err(words) = outcome {
            report.note(format!("skipped: {name}: {words}"));
        }
    };
    lists::ceiling(gpu, &pieces, &clock, report);
    let outcome = calls::launches(gpu, &clock, report);
    part(report, "launches", outcome);
    lists::works(gpu, &pieces, &clock, &works, report);
    let outcome = fills::scrubs(gpu, &pieces, &clock, report);
    part(report, "scrubs", outcome);
    let outcome = fills::overlaps(gpu, &pieces, &clock, report);
    part(report, "overlaps", outcome);
    let outcome = calls::staging(gpu, &clock, report);
    part(report, "staging", outcome);
    let outcome = calls::classification(gpu, report);
    part(report, "classification", outcome);
    let outcome = calls::steady_call(gpu, report);
    part(report, "a steady call", outcome);
    gpu.synchronize()?;
    pieces.free(gpu);
    gpu.free(delay);
    Ok(())
}

/// The peers, where they work on this device.
fn load_peers(gpu: &Gpu, has_peers: bool) -> Result<Peers, String> {
    if !has_peers {
        return Err("not asked for".to_owned());
    }
    let peers = Peers::load()?;
    peers.launch_nothing(gpu.raw)?;
    gpu.synchronize()?;
    Ok(peers)
}

/// The first device, and what the report says of it.
fn open_device(effort: Effort, begin: Instant, report: &mut Report) -> Result<Gpu, String> {
    let gpu = Gpu::open(effort, begin)?;
    let release = Machine::driver_release().map(|release| format!(" {release}")).unwrap_or_default();
    let version = gpu.cuda.version();
    report.machine.device.clone_from(&gpu.info.name);
    report.machine.architecture.clone_from(&gpu.info.architecture);
    report.machine.driver = format!("driver{release} for CUDA {}.{}", version / 1000, version % 1000 / 10);
    Ok(gpu)
}

/// The device's rows, where there is one.
fn measure_device(effort: Effort, has_peers: bool, begin: Instant, report: &mut Report) -> Outcome {
    let mut gpu = open_device(effort, begin, report)?;
    let executor = gpu.executor.clone();
    let outcome = executor.with_current(|| {
        match load_peers(&gpu, has_peers) {
            Ok(peers) => {
                report.machine.peers.clone_from(&peers.versions);
                gpu.peers = Some(peers);
            }
            Err(words) => report.note(format!("skipped: peers: {words}")),
        }
        if gpu.events.is_none() {
            report.note("device times are by the host's clock: the driver's events do not time");
        }
        on_device(&gpu, report)
    });
    let library = gpu.cuda.library();
    outcome.map_err(memory::words)??;
    cold::starts(effort, begin, library, report).map_err(|words| format!("cold start: {words}"))
}

/// How costs grow, on the device and on the host.
fn measure_scale(effort: Effort, begin: Instant, report: &mut Report) {
    let on_device = open_device(effort, begin, report).and_then(|gpu| {
        let executor = gpu.executor.clone();
        executor.with_current(|| scale::device(&gpu, report)).map_err(memory::words)?
    });
    if let Err(words) = on_device {
        report.note(format!("skipped: how costs grow on a device: {words}"));
    }
    if let Err(words) = scale::host(effort, report) {
        report.note(format!("skipped: how costs grow on the host: {words}"));
    }
    // A group's rows stand together, in the order of their numbers.
    let place = |row: &report::Row| (scale::GROUPS.iter().position(|group| *group == row.group), row.ranges);
    report.rows.sort_by_key(place);
    report.note(scale::WHERE_LISTS_ARE);
}

fn run(options: &Options, begin: Instant) -> std::io::Result<bool> {
    let mut report = Report { machine: Machine::here(), ..Report::default() };
    if options.is_scale {
        measure_scale(options.effort, begin, &mut report);
    } else {
        if let Err(words) = measure_device(options.effort, options.has_peers, begin, &mut report) {
            report.note(format!("bench skipped: cuda ({words})"));
        }
        if let Err(words) = host::copies(options.effort, &mut report) {
            report.note(format!("skipped: host copies: {words}"));
        }
    }
    report.seconds = begin.elapsed().as_secs_f64();
    println!("\n{}", report.machine.in_words());
    println!("microseconds, end to end where nothing else is said; MB are read and written");
    print!("{}", report.tables());
    let verdicts = if options.is_scale { Vec::new() } else { aims::verdicts(&report) };
    if !verdicts.is_empty() {
        print!("\n{}", aims::lines(&verdicts));
    }
    println!("{:.1} s", report.seconds);
    if let Some(path) = &options.json {
        std::fs::write(path, format!("{:#}\n", report.json(&verdicts)))?;
    }
    if let Some(path) = &options.markdown {
        std::fs::write(path, report.markdown(&verdicts))?;
    }
    if let Some(path) = options.svg.as_ref().filter(|_| options.is_scale) {
        std::fs::write(path, plot::draw(&report, &scale::GROUPS))?;
    }
    for wrong in &report.wrong {
        println!("{wrong}");
    }
    Ok(report.wrong.is_empty())
}

fn main() -> ExitCode {
    let begin = Instant::now();
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if let Some(by) = &options.first_copy {
        return match cold::child(by, begin) {
            Ok(()) => ExitCode::SUCCESS,
            Err(words) => {
                eprintln!("{words}");
                ExitCode::FAILURE
            }
        };
    }
    if let Some(folder) = &options.build_peers {
        // Where it can't be built, the bench says so too.
        match peers::build(folder) {
            Ok(object) => println!("{}", object.display()),
            Err(words) => println!("skipped: peers: {words}"),
        }
        return ExitCode::SUCCESS;
    }
    match run(&options, begin) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
