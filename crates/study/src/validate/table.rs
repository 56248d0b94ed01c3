//! A validation as text: the table for a terminal, and a CSV of every request.

use std::io::{self, Write};
use std::ptr;

use wavetank_report::render::table::{framed, precise};

use super::metrics::{Comparison, Latency, METRICS};

/// Every statistic of every metric, the worst error marked.
pub(super) fn comparison(comparison: &Comparison) -> String {
    let mut table = framed(&["Metric", "measured (ms)", "simulated (ms)", "error", ""]);
    let worst = comparison.worst();
    for cell in &comparison.cells {
        let is_worst = worst.is_some_and(|worst| ptr::eq(worst, cell));
        table.add_row(vec![
            cell.name(),
            cell.measured.map_or_else(absent, precise),
            cell.simulated.map_or_else(absent, precise),
            cell.error().map_or_else(absent, percent),
            if is_worst { "worst".to_owned() } else { String::new() },
        ]);
    }
    table.to_string()
}

/// A relative error with its sign.
pub(super) fn percent(error: f64) -> String {
    format!("{:+.2} %", error * 100.0)
}

fn absent() -> String {
    "N/A".to_owned()
}

/// One line per request; what does not exist is empty.
pub(super) fn scatter(
    measured: Option<&[Latency]>,
    simulated: &[Option<Latency>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut header = vec!["index".to_owned()];
    for name in METRICS.iter().map(|metric| metric.key).chain(["queued_s"]) {
        header.extend(["measured", "simulated"].map(|side| format!("{side}_{name}")));
    }
    writeln!(out, "{}", header.join(","))?;
    for (index, simulated) in simulated.iter().enumerate() {
        let sides = [measured.map(|measured| measured[index]), *simulated];
        let mut line = vec![index.to_string()];
        for of in METRICS.iter().map(|metric| metric.of).chain([queued_s as fn(&Latency) -> Option<f64>]) {
            let text = |side: Option<Latency>| side.as_ref().and_then(of).map(|value| format!("{value:.6}"));
            line.extend(sides.map(|side| text(side).unwrap_or_default()));
        }
        writeln!(out, "{}", line.join(","))?;
    }
    out.flush()
}

fn queued_s(latency: &Latency) -> Option<f64> {
    Some(latency.queued_s)
}
