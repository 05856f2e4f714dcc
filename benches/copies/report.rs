//! What was measured, as rows; and the rows as tables and as JSON.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::aims::Verdict;
use crate::timing::{Span, Timed, Timing};

/// Whose time.
#[derive(Debug, Clone)]
pub struct Time {
    pub who: &'static str,
    pub span: Span,
    pub timing: Timing,
}

/// One work, and what everybody took for it.
#[derive(Debug, Clone)]
pub struct Row {
    /// Rows of a group are compared with each other, and have one table.
    pub group: &'static str,
    pub id: String,
    pub ranges: u64,
    /// Read and written; 0 where nothing is moved.
    pub bytes: u64,
    pub times: Vec<Time>,
}

impl Row {
    pub fn new(group: &'static str, id: impl Into<String>, ranges: u64, bytes: u64) -> Self {
        Self { group, id: id.into(), ranges, bytes, times: Vec::new() }
    }

    /// The median in microseconds.
    pub fn time(&self, who: &str, span: Span) -> Option<f64> {
        let found = self.times.iter().find(|time| time.who == who && time.span == span);
        found.map(|time| time.timing.median)
    }

    pub fn add(&mut self, who: &'static str, span: Span, timing: Option<Timing>) {
        self.times.extend(timing.map(|timing| Time { who, span, timing }));
    }
}

/// Where the numbers come from.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    pub device: String,
    pub architecture: String,
    pub driver: String,
    pub peers: String,
    pub processor: String,
    pub cores: usize,
}

impl Machine {
    /// The host's part.
    pub fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let processor = model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { processor, cores, ..Self::default() }
    }

    /// In one line.
    pub fn in_words(&self) -> String {
        let Self { device, architecture, driver, peers, processor, cores } = self;
        let host = format!("{cores} cores of {processor}");
        let peers = if peers.is_empty() { "no peers" } else { peers };
        if device.is_empty() { host } else { format!("{device} ({architecture}), {driver}; {host}; {peers}") }
    }

    /// The number of NVIDIA's driver, as its module says it.
    pub fn driver_release() -> Option<String> {
        let words = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
        let is_release = |word: &&str| {
            word.split('.').count() >= 2 && word.split('.').all(|part| part.parse::<u32>().is_ok())
        };
        words.lines().next()?.split_whitespace().find(is_release).map(str::to_owned)
    }
}

/// All of it.
#[derive(Debug, Default)]
pub struct Report {
    pub machine: Machine,
    /// Bytes a microsecond, read and written, of the driver's own copy within the device.
    pub ceiling: Option<f64>,
    pub rows: Vec<Row>,
    pub notes: Vec<String>,
    /// Copies that put wrong bytes somewhere.
    pub wrong: Vec<String>,
    pub seconds: f64,
}

impl Report {
    pub fn row(&self, group: &str, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.group == group && row.id == id)
    }

    pub fn time(&self, group: &str, id: &str, who: &str, span: Span) -> Option<f64> {
        self.row(group, id)?.time(who, span)
    }

    /// The microseconds that bytes take at the ceiling.
    pub fn at_ceiling(&self, bytes: u64) -> Option<f64> {
        self.ceiling.map(|ceiling| bytes as f64 / ceiling)
    }

    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        println!("{note}");
        self.notes.push(note);
    }

    /// Adds what was timed to a row; who failed has a note.
    pub fn add(&mut self, row: &mut Row, span: Span, timed: Timed) {
        for (who, outcome) in timed {
            match outcome {
                Ok(timing) => row.add(who, span, Some(timing)),
                Err(words) => {
                    self.note(format!(
                        "skipped: {who}, {}, of {} {}: {words}",
                        span.name(),
                        row.group,
                        row.id
                    ));
                }
            }
        }
    }

    fn groups(&self) -> Vec<&'static str> {
        let mut groups = Vec::new();
        for row in &self.rows {
            if !groups.contains(&row.group) {
                groups.push(row.group);
            }
        }
        groups
    }

    /// Everybody that has a time in the group, in the order of appearance. The device's time for a long loop, and for a call
    /// that is one within, is the host's: it is in the JSON alone.
    fn columns(&self, group: &str) -> Vec<(&'static str, Span)> {
        let mut columns: Vec<(&'static str, Span)> = Vec::new();
        for time in self.rows.iter().filter(|row| row.group == group).flat_map(|row| &row.times) {
            let is_loop = matches!(time.who, "loop" | "batch call") && time.span == Span::Device;
            if !is_loop && !columns.contains(&(time.who, time.span)) {
                columns.push((time.who, time.span));
            }
        }
        // A side's device time stands before its time end to end.
        let first = |who: &str| columns.iter().position(|column| column.0 == who);
        let mut sorted = columns.clone();
        sorted.sort_by_key(|(who, span)| (first(who), *span != Span::Device));
        sorted
    }

    /// A group's table as lines of cells, its head first.
    fn cells(&self, group: &str) -> Vec<Vec<String>> {
        let columns = self.columns(group);
        let moves = self.rows.iter().any(|row| row.group == group && row.bytes > 0);
        let has_best = |row: &Row| row.group == group && best_device(row).is_some();
        let has_share = moves && self.ceiling.is_some() && self.rows.iter().any(has_best);
        let mut head = vec![group.to_owned()];
        if moves {
            head.push("MB".to_owned());
        }
        head.extend(columns.iter().map(|(who, span)| match span {
            Span::Host => (*who).to_owned(),
            Span::Device => format!("{who}, device"),
            Span::EndToEnd => who.to_string(),
        }));
        if has_share {
            head.push("of ceiling".to_owned());
        }
        let mut peers: Vec<&'static str> = Vec::new();
        for row in self.rows.iter().filter(|row| row.group == group && own_time(row).is_some()) {
            for time in row.times.iter().filter(|time| is_peer(time)) {
                if !peers.contains(&time.who) {
                    peers.push(time.who);
                }
            }
        }
        head.extend(peers.iter().map(|peer| format!("faster than, {peer}")));
        let mut lines = vec![head];
        for row in self.rows.iter().filter(|row| row.group == group) {
            let mut line = vec![row.id.clone()];
            if moves {
                line.push(format!("{:.2}", row.bytes as f64 / 1e6));
            }
            let cell =
                |(who, span): &(&str, Span)| row.time(who, *span).map_or_else(|| "-".to_owned(), number);
            line.extend(columns.iter().map(cell));
            if has_share {
                let best = best_device(row).zip(self.at_ceiling(row.bytes));
                line.push(
                    best.map_or("-".to_owned(), |(best, bound)| format!("{:.1}%", 100.0 * bound / best)),
                );
            }
            let times = |peer: &&str| ratio(row, peer).map_or_else(|| "-".to_owned(), number);
            line.extend(peers.iter().map(times));
            lines.push(line);
        }
        lines
    }

    /// The tables, for a terminal.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for group in self.groups() {
            let lines = self.cells(group);
            let count = lines.first().map_or(0, Vec::len);
            // Heads are longer than what stands below: they are broken into words, but for the group's.
            let heads: Vec<Vec<&str>> = lines
                .first()
                .into_iter()
                .flatten()
                .enumerate()
                .map(|(at, head)| if at == 0 { vec![head.as_str()] } else { head.split(' ').collect() })
                .collect();
            let width = |column: usize| {
                let cells = lines.iter().skip(1).filter_map(|line| line.get(column)).map(|cell| cell.len());
                let head = heads.get(column).into_iter().flatten().map(|part| part.len());
                cells.chain(head).max().unwrap_or(0)
            };
            let widths: Vec<usize> = (0..count).map(width).collect();
            let deep = heads.iter().map(Vec::len).max().unwrap_or(0);
            text.push('\n');
            let mut put = |cells: &mut dyn Iterator<Item = &str>| {
                for (at, (cell, width)) in cells.zip(&widths).enumerate() {
                    let _ = if at == 0 {
                        write!(text, "{cell:<width$}")
                    } else {
                        write!(text, "  {cell:>width$}")
                    };
                }
                text.push('\n');
            };
            for part in 0..deep {
                put(&mut heads.iter().map(|head| head.get(part).copied().unwrap_or_default()));
            }
            for line in lines.iter().skip(1) {
                put(&mut line.iter().map(String::as_str));
            }
        }
        text
    }

    /// The same as Markdown.
    pub fn markdown(&self, verdicts: &[Verdict]) -> String {
        let mut text = format!(
            "Microseconds, medians of one run in turns; MB are read and written. {}.\n",
            self.machine.in_words()
        );
        if self.ceiling.is_some() {
            text.push('\n');
            text.push_str(LEGEND);
        }
        for group in self.groups() {
            text.push('\n');
            for (at, line) in self.cells(group).iter().enumerate() {
                let _ = writeln!(text, "| {} |", line.join(" | "));
                if at == 0 {
                    let _ = writeln!(text, "|{}", " --- |".repeat(line.len()));
                }
            }
        }
        if !verdicts.is_empty() {
            text.push_str("\n| aim | | measured | |\n| --- | --- | --- | --- |\n");
        }
        for verdict in verdicts {
            let Verdict { aim, bound, measured, word, explanation } = verdict;
            let _ = writeln!(text, "| {aim} | {bound} | {measured} | {word}{} |", joined(explanation));
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }

    /// All of it.
    pub fn json(&self, verdicts: &[Verdict]) -> Value {
        let Machine { device, architecture, driver, peers, processor, cores } = &self.machine;
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row_json(row)).collect();
        let aims: Vec<Value> = verdicts
            .iter()
            .map(|Verdict { aim, bound, measured, word, explanation }| {
                json!({ "aim": aim, "bound": bound, "measured": measured, "verdict": word, "explanation": explanation })
            })
            .collect();
        json!({
            "machine": {
                "device": device, "architecture": architecture, "driver": driver, "peers": peers,
                "processor": processor, "cores": cores,
            },
            "ceiling_gb_s": self.ceiling.map(|ceiling| ceiling / 1e3),
            "rows": rows,
            "aims": aims,
            "notes": self.notes,
            "wrong": self.wrong,
            "seconds": self.seconds,
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let times: Vec<Value> = row
            .times
            .iter()
            .map(|Time { who, span, timing }| {
                let Timing { median, least, most, rounds, runs } = timing;
                let mut object = Map::new();
                object.insert("who".into(), json!(who));
                object.insert("span".into(), json!(span.name()));
                object.insert("median_us".into(), json!(median));
                object.insert("least_us".into(), json!(least));
                object.insert("most_us".into(), json!(most));
                object.insert("rounds".into(), json!(rounds));
                object.insert("runs_a_round".into(), json!(runs));
                if *span == Span::Device && row.bytes > 0 {
                    let share = self.at_ceiling(row.bytes).map(|bound| bound / median);
                    object.insert("share_of_ceiling".into(), json!(share));
                }
                Value::Object(object)
            })
            .collect();
        let peers = row.times.iter().filter(|time| is_peer(time));
        let ratios: Map<String, Value> =
            peers.filter_map(|time| Some((time.who.to_owned(), json!(ratio(row, time.who)?)))).collect();
        json!({
            "group": row.group, "id": row.id, "ranges": row.ranges, "bytes_read_and_written": row.bytes,
            "times": times, "times_faster_than": ratios,
        })
    }
}

/// The crate's ways to copy a list.
const COPIES: [&str; 5] = ["copy", "three arrays", "prepared", "rows", "rows by number"];
/// The crate's side of what is no list.
const OTHERS: [&str; 4] = ["scrub", "staged", "own", "copy on the host"];

/// What the words of the tables mean.
const LEGEND: &str = "\
`, device` is by the device's events, of launches in a row; all else is from the call until the stream has passed, and of calls
of the host the call alone. `copy` is a list on the host in each call, `three arrays` the same from the peers' layout, `prepared`
a list that is on the device already, `rows` a base, a stride and a count. CUB's list is in pinned memory already. `Faster than`
is the peer's time over the crate's: that of `copy`, and above 4096 ranges the best of `prepared` and `rows`. `Of ceiling` is the
best device time's share of the fastest `cuMemcpyAsync` of the first table.
";

/// Ranges up to which a list is taken as it is on the host; above it is prepared, or rows.
const LISTED: u64 = 4096;

/// The crate's best device time for a list.
pub fn best_device(row: &Row) -> Option<f64> {
    COPIES.iter().filter_map(|who| row.time(who, Span::Device)).min_by(f64::total_cmp)
}

/// The crate's time that is compared with the peers': from a list on the host where it is not long.
pub fn own_time(row: &Row) -> Option<f64> {
    let ways: &[&str] = if row.ranges <= LISTED { &["copy"] } else { &["prepared", "rows"] };
    let listed = ways.iter().filter_map(|who| row.time(who, Span::EndToEnd)).min_by(f64::total_cmp);
    let other = |who: &&str| row.time(who, Span::EndToEnd).or_else(|| row.time(who, Span::Host));
    listed.or_else(|| OTHERS.iter().find_map(other))
}

/// How many times faster the crate is than that peer.
pub fn ratio(row: &Row, peer: &str) -> Option<f64> {
    let peer = row.time(peer, Span::EndToEnd).or_else(|| row.time(peer, Span::Host))?;
    Some(peer / own_time(row)?)
}

/// Whether somebody is compared with the crate.
fn is_peer(time: &Time) -> bool {
    time.span != Span::Device
        && !COPIES.contains(&time.who)
        && !OTHERS.contains(&time.who)
        && time.who != "empty launch"
}

fn joined(explanation: &str) -> String {
    if explanation.is_empty() { String::new() } else { format!(": {explanation}") }
}

/// As many digits as mean something.
pub fn number(number: f64) -> String {
    match number {
        ..0.0995 => format!("{number:.4}"),
        ..9.995 => format!("{number:.2}"),
        ..999.5 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}
