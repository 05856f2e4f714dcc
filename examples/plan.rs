//! Plans of memory for tables of buffers: `id,lower,upper,size` a line, with a header, as MiniMalloc has them.
//!
//! ```text
//! cargo run --release --example plan -- --report 8 --svg plan.svg buffers.csv
//! cargo run --release --example plan -- --json ../shared/data/minimalloc/?.1048576.csv
//! ```
//!
//! Every plan is held against its buffers before it is shown, by a check that knows nothing of the planner.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use device_arena::plan::{Picture, Planned, Planner, buffers_from_csv};
use serde_json::json;

const HELP: &str = "\
Plans the buffers of tables: id,lower,upper,size[,alignment,offset,alias,pinned,name], with a header.

plan [OPTIONS] FILE...

  --seconds S     how long to plan a file at most (5); 0: greedy orders alone
  --steps N       how many steps to search at most, for the same plan on any machine (no limit)
  --seed N        what the search draws from (0)
  --alignment N   the least alignment of any buffer, in bytes, a power of two (1)
  --json          one line of JSON a file
  --report N      the N largest buffers at the peak
  --svg OUT       a picture; with several files, OUT is a folder
  --csv OUT       the plan as a table; likewise
";

struct Options {
    files: Vec<PathBuf>,
    seconds: f64,
    steps: u64,
    seed: u64,
    alignment: u64,
    is_json: bool,
    report: Option<usize>,
    svg: Option<PathBuf>,
    csv: Option<PathBuf>,
}

fn options() -> Result<Option<Options>, Box<dyn Error>> {
    use lexopt::prelude::*;
    let mut options = Options {
        files: Vec::new(),
        seconds: 5.0,
        steps: u64::MAX,
        seed: 0,
        alignment: 1,
        is_json: false,
        report: None,
        svg: None,
        csv: None,
    };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("seconds") => options.seconds = arguments.value()?.parse()?,
            Long("steps") => options.steps = arguments.value()?.parse()?,
            Long("seed") => options.seed = arguments.value()?.parse()?,
            Long("alignment") => options.alignment = arguments.value()?.parse()?,
            Long("json") => options.is_json = true,
            Long("report") => options.report = Some(arguments.value()?.parse()?),
            Long("svg") => options.svg = Some(arguments.value()?.into()),
            Long("csv") => options.csv = Some(arguments.value()?.into()),
            Short('h') | Long("help") => return Ok(None),
            Value(file) => options.files.push(file.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    if options.files.is_empty() {
        return Err("no file is named; see --help".into());
    }
    Ok(Some(options))
}

fn main() -> ExitCode {
    let outcome = options().and_then(|options| match options {
        Some(options) => run(&options),
        None => Ok(io::stdout().write_all(HELP.as_bytes())?),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has enough.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plan: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    for file in &options.files {
        let of_file = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| of_file(&error))?;
        let buffers = buffers_from_csv(&text).map_err(|error| of_file(&error))?;

        let started = Instant::now();
        let mut planner = Planner::new().seed(options.seed).alignment(options.alignment).steps(options.steps);
        if options.seconds > 0.0 {
            planner = planner.time_limit(Duration::try_from_secs_f64(options.seconds)?);
        } else {
            planner = planner.steps(0);
        }
        let planned = planner.plan(&buffers).map_err(|error| of_file(&error))?;
        let seconds = started.elapsed().as_secs_f64();
        planned.plan().verify(&buffers).map_err(|error| of_file(&error))?;

        print(file, buffers.len(), &planned, seconds, options)?;
        let several = options.files.len() > 1;
        if let Some(out) = &options.svg {
            let mut picture = Picture::new().title(name(file));
            if let Some(capacity) = capacity(file) {
                picture = picture.capacity(capacity);
            }
            std::fs::write(place(out, file, "svg", several)?, picture.draw(planned.plan()))?;
        }
        if let Some(out) = &options.csv {
            std::fs::write(place(out, file, "plan.csv", several)?, planned.plan().to_csv())?;
        }
    }
    Ok(())
}

fn print(file: &Path, buffers: usize, planned: &Planned, seconds: f64, options: &Options) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if options.is_json {
        let ratio = capacity(file).map(|capacity| planned.peak() as f64 / capacity as f64);
        let line = json!({
            "file": file.display().to_string(),
            "buffers": buffers,
            "lower_bound": planned.lower_bound(),
            "peak": planned.peak(),
            "ratio_to_capacity": ratio,
            "seconds": seconds,
            "greedy_peak": planned.greedy_peak(),
            "greedy_seconds": planned.greedy_time().as_secs_f64(),
            "steps": planned.steps(),
            "is_least": planned.is_least(),
        });
        writeln!(out, "{line}")?;
    } else {
        writeln!(out, "{}: {buffers} buffers, {planned}", file.display())?;
    }
    if let Some(count) = options.report {
        write!(out, "{}", planned.plan().report(count))?;
    }
    out.flush()
}

/// The bytes that a problem is known to fit in, where its file's name says so: `K.1048576.csv`.
fn capacity(file: &Path) -> Option<u64> {
    let stem = file.file_stem()?.to_str()?;
    stem.rsplit_once('.')?.1.parse().ok().filter(|capacity| *capacity > 0)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Where an output goes: to the file that was named, or into the folder where there are several.
fn place(out: &Path, file: &Path, extension: &str, several: bool) -> io::Result<PathBuf> {
    if !several {
        return Ok(out.to_owned());
    }
    std::fs::create_dir_all(out)?;
    Ok(out.join(Path::new(&name(file)).with_extension(extension)))
}
