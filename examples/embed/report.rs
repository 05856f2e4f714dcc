//! What is printed: a table, or one line of JSON.

use std::fmt::{self, Display, Write};

use device_arena::Executor;
use device_arena::backend::Vendor;
use serde_json::{Value, json};

use crate::steady::{Attempt, Outcome, Refusals, WARM_UP};
use crate::texts::{Texts, grouped};
use crate::verbs::DIM;

pub struct Report<'a> {
    pub executor: &'a Executor,
    pub texts: &'a Texts,
    pub outcome: Outcome,
    pub refusals: Refusals,
    /// Every text's length in bytes, ascending.
    pub lengths: Vec<usize>,
    /// Which texts are nearest to the query, and how near, where there was one.
    pub nearest: Option<Vec<(usize, f32)>>,
}

impl Report<'_> {
    pub fn json(&self) -> String {
        let (outcome, refusals) = (&self.outcome, &self.refusals);
        let mut line = json!({
            "executor": self.executor.vendor().to_string(),
            "texts": self.texts.tape.len(),
            "tokens": outcome.tokens,
            "calls": outcome.calls,
            "allocations_warmup": outcome.allocations_warmup,
            "allocations_steady": outcome.allocations_steady,
            "high_water_bytes": outcome.high_water_bytes,
            "stale_refused": refusals.stale.json(),
            "contended_refused": refusals.contended.json(),
            "wrong_executor_refused": refusals.wrong_executor.json(),
        });
        if let Some(nearest) = &self.nearest {
            line["nearest"] = nearest.iter().map(|(text, score)| self.nearest_json(*text, *score)).collect();
        }
        format!("{line}\n")
    }

    fn nearest_json(&self, text: usize, score: f32) -> Value {
        let (file, line) = self.texts.place(text);
        json!({
            "score": score,
            "file": file.to_string_lossy(),
            "line": line,
            "text": self.texts.excerpt(text),
        })
    }

    pub fn table(&self) -> String {
        let (outcome, refusals, best) = (&self.outcome, &self.refusals, &self.outcome.best);
        let warm_up = WARM_UP.min(outcome.calls);
        let (before, after) = (outcome.allocations_warmup, outcome.allocations_steady);
        let rows = best.view.len() / DIM;
        let is_kept = if best.view.is_current() { "readable still" } else { "lost" };

        let mut table = Table(String::new());
        table.row("executor", self.executor());
        table.row("texts", grouped(self.texts.tape.len() as u64));
        table.row("tokens", grouped(outcome.tokens as u64));
        table.row("calls", format_args!("{}, warm-up: {warm_up}", grouped(outcome.calls)));
        table.row("driver allocations", format_args!("{before} in warm-up, {after} after"));
        table.row("high water", format_args!("{} bytes", grouped(outcome.high_water_bytes)));
        table.row("time a call", format_args!("{:.1?}", outcome.time));
        table.row("best call", format_args!("number {}, {:.1?}", best.call, best.time));
        table.row("kept result", format_args!("{rows} rows of {DIM}, {is_kept}"));
        table.row("deferred call", self.lengths());
        table.row("stale read", &refusals.stale);
        table.row("contended begin", &refusals.contended);
        table.row("wrong executor", &refusals.wrong_executor);
        if let Some(nearest) = &self.nearest {
            table.0 += &self.nearest_lines(nearest);
        }
        table.0
    }

    fn executor(&self) -> String {
        let vendor = self.executor.vendor();
        match self.executor.device() {
            Ok(device) if vendor != Vendor::Host => format!("{vendor} {}, {}", device.ordinal, device.name),
            _ => vendor.to_string(),
        }
    }

    fn lengths(&self) -> String {
        match (self.lengths.get(self.lengths.len() / 2), self.lengths.last()) {
            (Some(median), Some(longest)) => {
                format!("a text has {median} bytes (median), {longest} at most")
            }
            _ => "there is no text".into(),
        }
    }

    fn nearest_lines(&self, nearest: &[(usize, f32)]) -> String {
        if nearest.is_empty() {
            return "\nno line is near the query\n".into();
        }
        let mut lines = String::from("\nscore  line\n");
        for (text, score) in nearest {
            let (file, line) = self.texts.place(*text);
            let excerpt = self.texts.excerpt(*text);
            lines += &format!("{score:.3}  {}:{line}: {excerpt}\n", file.display());
        }
        lines
    }
}

struct Table(String);

impl Table {
    fn row(&mut self, name: &str, value: impl Display) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "{name:<20}{value}");
    }
}

impl Attempt {
    fn json(&self) -> Option<bool> {
        match self {
            Self::Refused(_) => Some(true),
            Self::NotRefused => Some(false),
            Self::NoDevice => None,
        }
    }
}

impl Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "refused: {error}"),
            Self::NotRefused => f.write_str("NOT REFUSED"),
            Self::NoDevice => f.write_str("no device executor"),
        }
    }
}
