//! What the copies are to reach, row by row, and why where they do not.

use crate::calls::CALLS;
use crate::cold::COLD;
use crate::fills::SCRUBS;
use crate::host::HOST;
use crate::lists::COPIES;
use crate::report::{Report, best_device, number, ratio};
use crate::timing::Span;

/// Where a number has to be.
#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
    MoreThan(f64),
}

impl Bound {
    fn holds(self, measured: f64) -> bool {
        match self {
            Self::AtLeast(bound) => measured >= bound,
            Self::AtMost(bound) => measured <= bound,
            Self::MoreThan(bound) => measured > bound,
        }
    }

    fn words(self, unit: &str) -> String {
        match self {
            Self::AtLeast(bound) => format!("at least {bound}{unit}"),
            Self::AtMost(bound) => format!("at most {bound}{unit}"),
            Self::MoreThan(bound) => format!("more than {bound}{unit}"),
        }
    }
}

type Measure = Box<dyn Fn(&Report) -> Option<f64>>;

struct Aim {
    name: String,
    bound: Bound,
    unit: &'static str,
    measure: Measure,
}

fn aim(
    name: impl Into<String>,
    bound: Bound,
    unit: &'static str,
    measure: impl Fn(&Report) -> Option<f64> + 'static,
) -> Aim {
    Aim { name: name.into(), bound, unit, measure: Box::new(measure) }
}

/// What came of an aim.
#[derive(Debug)]
pub struct Verdict {
    pub aim: String,
    pub bound: String,
    pub measured: String,
    pub word: &'static str,
    /// Empty where there is nothing to explain.
    pub explanation: String,
}

/// Why a row misses its aim: by the aim's name, as the verdicts print it.
const EXPLANATIONS: &[(&str, &str)] = &[
    (
        "classify a device pointer: over the bare query",
        "what is around the query takes 5 to 20 ns of 65 to 110: 1.05 to 1.22 from run to run, by the host's clock",
    ),
    (
        "a steady call of three, driver's pool: faster",
        "both sides are the host's alone, 0.1 us against 2: 19.9 to 24.8 times from run to run",
    ),
];

const TEN: [&str; 10] = [
    "128 x 2 KiB",
    "1024 x 1 KiB",
    "16384 x 256 B",
    "65536 x 1536 B",
    "1024 x 64 KiB",
    "4096 x 512 KiB",
    "4096 mixed",
    "4096 mixed, misaligned",
    "16384 x 255 B, misaligned",
    "4 GiB",
];
const SHORT: [&str; 5] =
    ["128 x 2 KiB", "1024 x 1 KiB", "16384 x 256 B", "65536 x 1536 B", "16384 x 255 B, misaligned"];
const LARGE: [&str; 5] = ["4096 x 512 KiB", "4 GiB", "1 GiB", "16 x 64 MiB", "16384 x 64 KiB"];
const MISALIGNED: [&str; 2] = ["16384 x 64 KiB, misaligned", "1024 x 1 MiB, misaligned"];
const AGAIN: [&str; 7] = [
    "decode step, 64 x 1 KiB",
    "prefill, 64 x 512 KiB",
    "128 x 2 KiB",
    "1024 x 1 KiB",
    "1024 x 64 KiB",
    "4096 x 512 KiB",
    "65536 x 1536 B",
];

/// The share of the ceiling, in percent.
fn share(report: &Report, id: &str) -> Option<f64> {
    let row = report.row(COPIES, id)?;
    Some(100.0 * report.at_ceiling(row.bytes)? / best_device(row)?)
}

fn all() -> Vec<Aim> {
    let mut aims = Vec::new();
    for id in TEN {
        let measure = move |report: &Report| ratio(report.row(COPIES, id)?, "CUB");
        aims.push(aim(format!("{id}: end to end against CUB"), Bound::MoreThan(1.0), " times", measure));
    }
    aims.push(aim("the ten works: geometric mean against CUB", Bound::AtLeast(3.0), " times", |report| {
        let ratios: Option<Vec<f64>> = TEN.iter().map(|id| ratio(report.row(COPIES, id)?, "CUB")).collect();
        let ratios = ratios?;
        Some((ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp())
    }));
    for id in SHORT {
        let measure = move |report: &Report| ratio(report.row(COPIES, id)?, "batch call");
        aims.push(aim(
            format!("{id}: against the driver's batch call"),
            Bound::AtLeast(40.0),
            " times",
            measure,
        ));
    }
    for (ids, percent) in [(LARGE.as_slice(), 95.0), (MISALIGNED.as_slice(), 75.0)] {
        for id in ids {
            let measure = move |report: &Report| share(report, id);
            aims.push(aim(format!("{id}: of the ceiling"), Bound::AtLeast(percent), "%", measure));
        }
    }
    const MANY: &str = "65536 x 1536 B";
    aims.push(aim(
        format!("{MANY}: device time over bytes at the ceiling"),
        Bound::AtMost(1.25),
        " times",
        |report| share(report, MANY).map(|share| 100.0 / share),
    ));
    aims.push(aim(format!("{MANY}: prepared, end to end"), Bound::AtMost(100.0), " us", |report| {
        report.time(COPIES, MANY, "prepared", Span::EndToEnd)
    }));
    for id in AGAIN {
        let name = format!("{id}: prepared, over an empty launch and bytes at the ceiling");
        aims.push(aim(name, Bound::AtMost(1.15), " times", move |report| {
            let row = report.row(COPIES, id)?;
            let bound = row.time("empty launch", Span::EndToEnd)? + report.at_ceiling(row.bytes)?;
            Some(row.time("prepared", Span::EndToEnd)? / bound)
        }));
    }
    for id in ["1 MiB", "16 MiB", "256 MiB", "1024 MiB", "4096 MiB", "2 x 512 MiB", "16 x 64 MiB"] {
        aims.push(aim(
            format!("scrub of {id}: of cuMemsetD8Async"),
            Bound::AtLeast(95.0),
            "%",
            move |report| {
                let row = report.row(SCRUBS, id)?;
                Some(100.0 * row.time("cuMemsetD8Async", Span::Device)? / row.time("scrub", Span::Device)?)
            },
        ));
    }
    for (id, peer) in [
        ("a steady call of three, driver's pool", "cuMemAllocAsync"),
        ("a steady call of three, runtime's pool", "cudaMallocAsync"),
    ] {
        aims.push(aim(format!("{id}: faster"), Bound::AtLeast(20.0), " times", move |report| {
            let row = report.row(CALLS, id)?;
            Some(row.time(peer, Span::Host)? / row.time("own", Span::Host)?)
        }));
    }
    for id in ["classify a device pointer", "classify a host pointer"] {
        aims.push(aim(format!("{id}: over the bare query"), Bound::AtMost(1.15), " times", move |report| {
            let row = report.row(CALLS, id)?;
            Some(row.time("own", Span::Host)? / row.time("bare query", Span::Host)?)
        }));
    }
    aims.push(aim("another pointer, allocation seen", Bound::AtMost(50.0), " ns", |report| {
        Some(1e3 * report.time(CALLS, "another pointer, allocation seen", "own", Span::Host)?)
    }));
    aims.push(aim("cold start: over the driver's own", Bound::AtMost(20.0), " ms", |report| {
        let row = report.rows.iter().find(|row| row.group == COLD)?;
        Some((row.time("crate", Span::Host)? - row.time("driver", Span::Host)?) / 1e3)
    }));
    for id in ["one of 256 MiB", "65536 x 1536 B", "1024 x 64 KiB", "16384 x 256 B"] {
        aims.push(aim(
            format!("host, {id}: over copy_nonoverlapping"),
            Bound::AtMost(1.1),
            " times",
            move |report| {
                let row = report.row(HOST, id)?;
                Some(
                    row.time("copy on the host", Span::Host)?
                        / row.time("copy_nonoverlapping", Span::Host)?,
                )
            },
        ));
    }
    aims
}

/// Every aim, met or missed, or not measured where a side is absent.
pub fn verdicts(report: &Report) -> Vec<Verdict> {
    all()
        .into_iter()
        .map(|Aim { name, bound, unit, measure }| {
            let measured = measure(report);
            let word = match measured {
                Some(measured) if bound.holds(measured) => "met",
                Some(_) => "missed",
                None => "not measured",
            };
            let known = EXPLANATIONS.iter().find(|(aim, _)| *aim == name).map(|(_, words)| *words);
            let explanation = if word == "missed" { known.unwrap_or("no explanation yet") } else { "" };
            Verdict {
                bound: bound.words(unit),
                measured: measured
                    .map_or_else(|| "-".to_owned(), |measured| format!("{}{unit}", number(measured))),
                word,
                explanation: explanation.to_owned(),
                aim: name,
            }
        })
        .collect()
}

/// The verdicts as lines.
pub fn lines(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for Verdict { aim, bound, measured, word, explanation } in verdicts {
        text += format!("{word:<12} {aim:<68} {measured:>12}  {bound:<22} {explanation}").trim_end();
        text.push('\n');
    }
    let count = |wanted: &str| verdicts.iter().filter(|verdict| verdict.word == wanted).count();
    text + &format!(
        "{} met, {} missed, {} not measured\n",
        count("met"),
        count("missed"),
        count("not measured")
    )
}
