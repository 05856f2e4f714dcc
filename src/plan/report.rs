//! What a plan comes to, in words.

use std::cmp::Reverse;
use std::fmt::Write;

use super::{MemoryPlan, Planned, Stop};

impl MemoryPlan {
    /// A report of several lines: the total, when the most bytes are live and how many, and the `count` largest nodes
    /// of those. What shares bytes on purpose counts once: what lies within another that is live is not named. Sizes and offsets are bytes.
    ///
    /// ```
    /// use device_arena::plan::{MemoryPlan, Slot};
    ///
    /// let slots = [Slot::new(1, 0, 300).live(0..2).named("scores"), Slot::new(2, 300, 100).live(1..3)];
    /// let report = MemoryPlan::builder().slots(slots).build()?.report(1);
    /// assert_eq!(
    ///     report,
    ///     "peak 400 bytes, 2 nodes, alignment 1\n\
    ///      most live in steps 1..2: 400 bytes, 100.0% of the peak, in 2 nodes\n\
    ///      \u{20}       bytes         share        offset  node\n\
    ///      \u{20}         300         75.0%             0  1 `scores`, live in 0..2\n\
    ///      \u{20}         100         25.0%                1 smaller ones\n"
    /// );
    /// # Ok::<(), device_arena::Error>(())
    /// ```
    #[must_use]
    pub fn report(&self, count: usize) -> String {
        let (total, busiest) = (self.total(), self.busiest());
        let mut text = String::new();
        let (nodes, alignment) = (self.len(), self.alignment());
        let mut line = |line: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{line}");
        };
        line(format_args!("peak {total} bytes, {nodes} nodes, alignment {alignment}"));
        let mut live = self.holders(busiest.as_ref().map(|busiest| busiest.steps.start));
        let all = || live.iter().fold(0u64, |sum, slot| sum.saturating_add(slot.size));
        let bytes = busiest.as_ref().map_or_else(all, |busiest| busiest.bytes);
        match &busiest {
            Some(busiest) => line(format_args!(
                "most live in steps {}..{}: {bytes} bytes, {} of the peak, in {} nodes",
                busiest.steps.start,
                busiest.steps.end,
                percent(bytes, total),
                live.len()
            )),
            None => line(format_args!(
                "always live: {bytes} bytes, {} of the peak, in {} nodes",
                percent(bytes, total),
                live.len()
            )),
        }
        live.sort_by_key(|slot| (Reverse(slot.size), slot.node));
        let (largest, smaller) = live.split_at(count.min(live.len()));
        if !largest.is_empty() {
            line(format_args!("{:>13} {:>13} {:>13}  node", "bytes", "share", "offset"));
        }
        for slot in largest {
            let name = slot.name.as_ref().map_or(String::new(), |name| format!(" `{}`", name.escape_debug()));
            let lifetime = slot.lifetime.as_ref();
            let lifetime =
                lifetime.map_or("always".to_owned(), |steps| format!("in {}..{}", steps.start, steps.end));
            let (size, offset, node) = (slot.size, slot.offset, slot.node);
            let share = percent(size, bytes);
            line(format_args!("{size:>13} {share:>13} {offset:>13}  {node}{name}, live {lifetime}"));
        }
        if !smaller.is_empty() && !largest.is_empty() {
            let rest = smaller.iter().fold(0u64, |sum, slot| sum.saturating_add(slot.size));
            let share = percent(rest, bytes);
            line(format_args!("{rest:>13} {share:>13} {:>13}  {} smaller ones", "", smaller.len()));
        }
        text
    }
}

pub(super) fn percent(part: u64, whole: u64) -> String {
    let of = if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 };
    format!("{of:.1}%")
}

/// One line.
impl std::fmt::Display for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (peak, bound, waste) = (self.peak(), self.lower_bound(), self.waste());
        let waste_share = if waste == 0 { "0.0%".to_owned() } else { percent(waste, bound) };
        write!(f, "peak {peak} bytes, lower bound {bound}, waste {waste} ({waste_share}), ")?;
        write!(f, "greedy {}; {} steps, {}", self.greedy_peak(), self.steps(), self.stop())?;
        if self.is_least() { f.write_str("; no plan needs less") } else { Ok(()) }
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Steps => "ended by the step budget",
            Self::Deadline => "ended by the deadline",
            Self::Cancelled => "cancelled",
        })
    }
}
