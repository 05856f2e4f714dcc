//! Rows as a picture: a panel a group, both axes by powers of ten, a line for everybody.

use std::fmt::Write;

use crate::report::Report;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 44.0;
/// Below the axis: its numbers, and who is who.
const BOTTOM: f64 = 132.0;
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f"];

const STYLE: &str = "<style>text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:#333}\
     .h{font-size:15px;font-weight:600;fill:#111}.m{text-anchor:middle}.r{text-anchor:end}.g{stroke:#e2e2e2}\
     .l{fill:none;stroke-width:2}</style>\n";

/// A line of the plot.
struct Line {
    who: &'static str,
    /// Number and microseconds.
    points: Vec<(f64, f64)>,
}

/// The powers of ten that hold all numbers.
fn decades(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let least = numbers.clone().fold(f64::INFINITY, f64::min).log10().floor();
    let most = numbers.fold(f64::NEG_INFINITY, f64::max).log10().ceil();
    (least, if most > least { most } else { least + 1.0 })
}

/// A time with the unit that keeps it short. Powers of ten have one digit.
fn of_time(microseconds: f64) -> String {
    let (number, unit) = match microseconds {
        ..0.9999e0 => (microseconds * 1e3, "ns"),
        ..0.9999e3 => (microseconds, "us"),
        ..0.9999e6 => (microseconds / 1e3, "ms"),
        _ => (microseconds / 1e6, "s"),
    };
    format!("{} {unit}", (number * 1000.0).round() / 1000.0)
}

fn of_number(number: f64) -> String {
    match number {
        ..0.9999e3 => format!("{number:.0}"),
        ..0.9999e6 => format!("{:.0} k", number / 1e3),
        ..0.9999e9 => format!("{:.0} M", number / 1e6),
        _ => format!("{:.0} G", number / 1e9),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The lines of a group, in the order of appearance.
fn lines(report: &Report, group: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in report.rows.iter().filter(|row| row.group == group) {
        // What is nothing has no place on such an axis.
        for time in row.times.iter().filter(|time| time.timing.median > 0.0) {
            let at = lines.iter().position(|line| line.who == time.who).unwrap_or_else(|| {
                lines.push(Line { who: time.who, points: Vec::new() });
                lines.len() - 1
            });
            lines[at].points.push((row.ranges as f64, time.timing.median));
        }
    }
    lines
}

/// A group of rows, below and beside the others.
fn panel(svg: &mut String, report: &Report, group: &str, origin: (f64, f64)) {
    let lines = lines(report, group);
    let points = lines.iter().flat_map(|line| &line.points);
    if points.clone().next().is_none() {
        return;
    }
    let (first, last) = decades(points.clone().map(|point| point.0));
    let (low, high) = decades(points.map(|point| point.1));
    let (left, right) = (origin.0 + LEFT, origin.0 + WIDTH - RIGHT);
    let (top, bottom) = (origin.1 + TOP, origin.1 + HEIGHT - BOTTOM);
    let across = |number: f64| left + (number.log10() - first) / (last - first) * (right - left);
    let down = |time: f64| bottom - (time.log10() - low) / (high - low) * (bottom - top);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{:.1}\" class=\"h\">Time by {}</text>",
        top - 16.0,
        escaped(group)
    );
    for power in first as i32..=last as i32 {
        let (number, y) = (10f64.powi(power), bottom + 18.0);
        let x = across(number);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {top:.1}V{bottom:.1}\" class=\"g\"/>");
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"m\">{}</text>", of_number(number));
    }
    for power in low as i32..=high as i32 {
        let time = 10f64.powi(power);
        let y = down(time);
        let _ = writeln!(svg, "<path d=\"M{left:.1} {y:.1}H{right:.1}\" class=\"g\"/>");
        let (x, y) = (left - 8.0, y + 4.0);
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"r\">{}</text>", of_time(time));
    }
    for (at, line) in lines.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let path: Vec<String> = line
            .points
            .iter()
            .map(|(number, time)| format!("{:.1} {:.1}", across(*number), down(*time)))
            .collect();
        let _ = writeln!(svg, "<path d=\"M{}\" class=\"l\" stroke=\"{colour}\"/>", path.join("L"));
        for (number, time) in &line.points {
            let (x, y) = (across(*number), down(*time));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{}: {number}, {}</title></circle>",
                escaped(line.who),
                of_time(*time)
            );
        }
        // Two columns of names.
        let x = left + (at % 2) as f64 * (right - left) / 2.0;
        let y = bottom + 42.0 + (at / 2) as f64 * 19.0;
        let _ = writeln!(svg, "<path d=\"M{x:.1} {:.1}h22\" class=\"l\" stroke=\"{colour}\"/>", y - 4.0);
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>", x + 28.0, escaped(line.who));
    }
}

/// The groups, two beside each other.
pub fn draw(report: &Report, groups: &[&str]) -> String {
    let (width, height) = (2.0 * WIDTH, groups.len().div_ceil(2) as f64 * HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n"
    );
    svg += STYLE;
    let _ = writeln!(svg, "<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>");
    for (at, group) in groups.iter().enumerate() {
        panel(&mut svg, report, group, ((at % 2) as f64 * WIDTH, (at / 2) as f64 * HEIGHT));
    }
    svg + "</svg>\n"
}
