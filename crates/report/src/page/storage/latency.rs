//! How long entries and requests took: distributions out of the report's histograms.

use super::super::Run;
use super::named;
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{items, number};

/// Histograms by key and name.
type Histograms = &'static [(&'static str, &'static str)];

/// Id, title, and histograms.
const FIGURES: [(&str, &str, Histograms); 3] = [
    (
        "device-latency",
        "Latency of the storage device",
        &[("storage_read_device", "read"), ("storage_write_device", "write")],
    ),
    (
        "tier-latency",
        "Latency of entries, waiting included",
        &[
            ("gpu_read_total", "GPU read"),
            ("gpu_write_total", "GPU write"),
            ("cpu_read_total", "memory read"),
            ("cpu_write_total", "memory write"),
            ("storage_read_total", "storage read"),
            ("storage_write_total", "storage write"),
        ],
    ),
    (
        "request-latency",
        "Latency of requests",
        &[("end_to_end", "end to end"), ("storage", "in storage"), ("queue_wait", "waiting")],
    ),
];

pub(super) fn figures(runs: &[&Run]) -> Vec<Figure> {
    let figure = |(id, title, histograms): &(&str, &str, Histograms)| {
        let curves = |run: &&Run| {
            let curve = |(key, name): &(&str, &str)| Series::of(named(runs, run, name), curve(run, key));
            histograms.iter().map(curve).collect::<Vec<_>>()
        };
        let series: Vec<Series> =
            runs.iter().flat_map(curves).filter(|series| !series.points.is_empty()).collect();
        Figure {
            id: (*id).to_owned(),
            title: format!("{title}: distribution"),
            about: format!("{title}: for each time, the share that took no longer."),
            kind: Kind::Lines,
            x: Axis::log("latency", "ms"),
            y: Axis::linear("share", "%"),
            series,
        }
    };
    FIGURES.iter().map(figure).filter(|figure| !figure.series.is_empty()).collect()
}

/// Milliseconds and the share of values up to there.
fn curve(run: &Run, key: &str) -> Vec<(f64, f64)> {
    let buckets = items(&run.report, &format!("/histograms/{key}/buckets"));
    let total: f64 = buckets.iter().map(|bucket| number(bucket, "/1")).sum();
    let mut before = 0.0;
    let point = |bucket| {
        before += number(bucket, "/1");
        (number(bucket, "/0") / 1e6, before / total * 100.0)
    };
    buckets.iter().map(point).collect()
}
