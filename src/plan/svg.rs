//! A picture of a plan: time across, addresses up.

use std::fmt::Write;

use super::{MemoryPlan, Slot};

/// How a plan is drawn as SVG.
///
/// ```
/// use device_arena::plan::{MemoryPlan, Picture, Slot};
///
/// let slots = [Slot::new(1, 0, 300).live(0..2).named("a < b"), Slot::new(2, 300, 100).live(1..3)];
/// let plan = MemoryPlan::builder().slots(slots).build()?;
/// let svg = Picture::new().title("two layers").capacity(512).draw(&plan);
/// assert!(svg.starts_with("<svg ") && svg.contains("<title>node 1 `a &lt; b` (300 bytes at 0, live in 0..2)</title>"));
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    title: Option<String>,
    capacity: Option<u64>,
    is_true_to_time: bool,
}

impl Default for Picture {
    fn default() -> Self {
        Self { width: 1440, height: 900, title: None, capacity: None, is_true_to_time: false }
    }
}

impl Picture {
    /// A picture of 1440 by 900 pixels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The size in pixels; at least 320 by 240.
    #[must_use]
    pub fn size(self, width: u32, height: u32) -> Self {
        Self { width: width.max(320), height: height.max(240), ..self }
    }

    /// A line above the picture.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Marks how many bytes there are to be had.
    #[must_use]
    pub fn capacity(self, bytes: u64) -> Self {
        Self { capacity: Some(bytes), ..self }
    }

    /// Every step takes the same room. Without this call the time between two changes does, however long it is, so that what
    /// is live for a short time can be seen beside what is live for long.
    #[must_use]
    pub fn true_to_time(self) -> Self {
        Self { is_true_to_time: true, ..self }
    }

    /// Draws a plan: a rectangle a node, which says on hovering what it is; the peak as a line; the steps in which the most
    /// bytes are live as a band. Aliases have a dashed outline, and what is live always a thick one.
    #[must_use]
    pub fn draw(&self, plan: &MemoryPlan) -> String {
        Drawing::new(self, plan).draw()
    }
}

impl MemoryPlan {
    /// The plan as an SVG picture with the usual settings of [`Picture`].
    #[must_use]
    pub fn to_svg(&self) -> String {
        Picture::new().draw(self)
    }
}

/// Text as it may stand in an element. What XML can't hold at all is left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' | '\t' => escaped.push(' '),
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {}
            character => escaped.push(character),
        }
    }
    escaped
}

/// Bytes in the unit that keeps them short.
fn in_words(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut found = format!("{bytes} B");
    let mut unit_bytes = 1u64;
    for unit in UNITS {
        unit_bytes = unit_bytes.saturating_mul(1024);
        if bytes < unit_bytes {
            break;
        }
        let count = bytes as f64 / unit_bytes as f64;
        found = if bytes.is_multiple_of(unit_bytes) {
            format!("{count} {unit}")
        } else {
            format!("{count:.2} {unit}")
        };
    }
    found
}

const LEFT: f64 = 92.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 44.0;

const STYLE: &str = "<style>text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:11px;fill:#333}\
     .h{font-size:16px;font-weight:600;fill:#111}.s{fill:#555}.r{text-anchor:end}.m{text-anchor:middle}\
     .b{stroke:#fff;stroke-width:.6}.b:hover{stroke:#000;stroke-width:1.5}\
     .w{stroke:#222;stroke-width:1.2}.a{stroke:#222;stroke-width:1;stroke-dasharray:3 2;fill:none}\
     .l{pointer-events:none;fill:#111;text-anchor:middle;font-size:10px}\
     .g{stroke:#e2e2e2}.p{stroke:#c2185b;stroke-width:1.6}.pt{fill:#c2185b;font-weight:600}\
     .c{stroke:#111;stroke-width:1.2;stroke-dasharray:7 4}.k{fill:#ffb300;fill-opacity:.28;pointer-events:none}</style>\n";

struct Drawing<'a> {
    picture: &'a Picture,
    plan: &'a MemoryPlan,
    /// The steps at which something changes.
    changes: Vec<u64>,
    /// The bytes at the upper edge.
    ceiling: f64,
    svg: String,
}

impl<'a> Drawing<'a> {
    fn new(picture: &'a Picture, plan: &'a MemoryPlan) -> Self {
        let mut changes: Vec<u64> = plan
            .iter()
            .filter_map(|slot| slot.lifetime.as_ref())
            .flat_map(|steps| [steps.start, steps.end])
            .collect();
        changes.sort_unstable();
        changes.dedup();
        if changes.is_empty() {
            changes = vec![0, 1];
        }
        let highest = plan.total().max(picture.capacity.unwrap_or(0)).max(1);
        Self { picture, plan, changes, ceiling: highest as f64 * 1.02, svg: String::new() }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.svg, "{line}");
    }

    fn right(&self) -> f64 {
        f64::from(self.picture.width) - RIGHT
    }

    fn bottom(&self) -> f64 {
        f64::from(self.picture.height) - BOTTOM
    }

    /// Where a step begins, across.
    fn across(&self, step: u64) -> f64 {
        let (first, last) =
            (self.changes.first().copied().unwrap_or(0), self.changes.last().copied().unwrap_or(1));
        let share = if self.picture.is_true_to_time {
            step.saturating_sub(first) as f64 / (last - first).max(1) as f64
        } else {
            let place = self.changes.partition_point(|change| *change < step);
            place as f64 / (self.changes.len() - 1).max(1) as f64
        };
        LEFT + share.min(1.0) * (self.right() - LEFT)
    }

    /// Where an address is, down.
    fn down(&self, address: u64) -> f64 {
        self.bottom() - address as f64 / self.ceiling * (self.bottom() - TOP)
    }

    fn draw(mut self) -> String {
        let (width, height) = (self.picture.width, self.picture.height);
        self.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
        ));
        self.svg += STYLE;
        self.line(format_args!("<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>"));
        self.heading();
        self.addresses();
        self.steps();
        let mut slots: Vec<&Slot> = self.plan.iter().filter(|slot| slot.size > 0).collect();
        slots.sort_by_key(|slot| (slot.alias_of.is_some(), slot.node));
        for slot in slots {
            self.slot(slot);
        }
        self.marks();
        self.svg += "</svg>\n";
        self.svg
    }

    fn heading(&mut self) {
        let title = escaped(self.picture.title.as_deref().unwrap_or("Memory plan"));
        self.line(format_args!("<text x=\"{LEFT}\" y=\"26\" class=\"h\">{title}</text>"));
        let (nodes, total) = (self.plan.len(), self.plan.total());
        let mut words = format!("{nodes} nodes, peak {total} bytes ({})", in_words(total));
        if let Some(busiest) = self.plan.busiest() {
            let (bytes, steps) = (busiest.bytes, busiest.steps);
            let share = super::report::percent(bytes, total);
            words += &format!(
                "; most live: {bytes} bytes ({share}) in steps {}..{}, the band",
                steps.start, steps.end
            );
        }
        self.line(format_args!("<text x=\"{LEFT}\" y=\"46\" class=\"s\">{words}</text>"));
    }

    fn addresses(&mut self) {
        const MOST: u64 = 8;
        let mut apart = 1u64;
        while self.ceiling / apart as f64 > MOST as f64 && apart < 1 << 62 {
            apart *= 2;
        }
        let right = self.right();
        for count in 0..=MOST {
            let Some(address) = apart.checked_mul(count).filter(|address| *address as f64 <= self.ceiling)
            else {
                break;
            };
            let (y, words) = (self.down(address), in_words(address));
            self.line(format_args!("<path d=\"M{LEFT} {y:.1}H{right}\" class=\"g\"/>"));
            self.line(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" class=\"r\">{words}</text>",
                LEFT - 6.0,
                y + 4.0
            ));
        }
    }

    fn steps(&mut self) {
        const MOST: usize = 12;
        let y = self.bottom();
        let mut ticks: Vec<u64> = if self.picture.is_true_to_time {
            let (first, last) =
                (self.changes.first().copied().unwrap_or(0), self.changes.last().copied().unwrap_or(1));
            let part = |at: u64| first + ((last - first) as u128 * u128::from(at) / MOST as u128) as u64;
            (0..=MOST as u64).map(part).collect()
        } else {
            let every = (self.changes.len() / MOST).max(1);
            self.changes.iter().copied().step_by(every).collect()
        };
        ticks.dedup();
        for step in ticks {
            let x = self.across(step);
            self.line(format_args!("<path d=\"M{x:.1} {y}v5\" stroke=\"#888\"/>"));
            self.line(format_args!("<text x=\"{x:.1}\" y=\"{}\" class=\"m\">{step}</text>", y + 17.0));
        }
        let (x, words) = ((LEFT + self.right()) / 2.0, self.words_of_scale());
        self.line(format_args!("<text x=\"{x:.1}\" y=\"{}\" class=\"m s\">{words}</text>", y + 34.0));
    }

    fn words_of_scale(&self) -> &'static str {
        if self.picture.is_true_to_time {
            "steps"
        } else {
            "steps; the time between two changes is drawn alike, however long it is"
        }
    }

    fn slot(&mut self, slot: &Slot) {
        let (x, end) = match &slot.lifetime {
            Some(steps) => (self.across(steps.start), self.across(steps.end)),
            None => (LEFT, self.right()),
        };
        let (y, bottom) = (self.down(slot.checked_end()), self.down(slot.offset));
        let (width, height) = ((end - x).max(0.5), (bottom - y).max(0.5));
        let class = match (&slot.alias_of, &slot.lifetime) {
            (Some(_), _) => "a",
            (None, None) => "b w",
            (None, Some(_)) => "b",
        };
        let title = escaped(&slot.to_string());
        // Neighbours in the order of nodes get colours that are far apart.
        let hue = slot.node.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let fill = if slot.alias_of.is_some() {
            String::new()
        } else {
            format!(" fill=\"hsl({},{}%,{}%)\"", hue % 360, 42 + hue / 360 % 20, 66 + hue / 7200 % 14)
        };
        self.line(format_args!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" class=\"{class}\"{fill}><title>{title}</title></rect>"
        ));
        let words = slot.name.clone().unwrap_or_else(|| slot.node.to_string());
        let room = width / 6.2;
        if height >= 11.0 && words.chars().count() as f64 <= room && slot.alias_of.is_none() {
            let (x, y) = (x + width / 2.0, y + height / 2.0 + 3.5);
            self.line(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"l\">{}</text>", escaped(&words)));
        }
    }

    fn marks(&mut self) {
        let (top, right) = (self.down(self.plan.total()), self.right());
        if let Some(busiest) = self.plan.busiest() {
            let (x, end) = (self.across(busiest.steps.start), self.across(busiest.steps.end));
            let (width, height) = ((end - x).max(2.0), self.bottom() - top);
            self.line(format_args!(
                "<rect x=\"{x:.2}\" y=\"{top:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" class=\"k\"/>"
            ));
        }
        self.line(format_args!("<path d=\"M{LEFT} {top:.2}H{right}\" class=\"p\"/>"));
        let capacity = self.picture.capacity;
        let words = format!("peak {}", in_words(self.plan.total()));
        // Two lines that are close to each other have their words on either side.
        let y = if capacity.is_some_and(|capacity| capacity > self.plan.total()) {
            top + 13.0
        } else {
            top - 4.0
        };
        self.line(format_args!("<text x=\"{right}\" y=\"{y:.1}\" class=\"r pt\">{words}</text>"));
        if let Some(capacity) = capacity {
            let (y, words) = (self.down(capacity), in_words(capacity));
            self.line(format_args!("<path d=\"M{LEFT} {y:.2}H{right}\" class=\"c\"/>"));
            let y = if capacity > self.plan.total() { y - 4.0 } else { y + 13.0 };
            self.line(format_args!("<text x=\"{:.1}\" y=\"{y:.1}\">capacity {words}</text>", LEFT + 4.0));
        }
    }
}
