//! What was moved: over time, and by tier.

use super::super::Run;
use super::named;
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{items, number};

const TIERS: [&str; 3] = ["gpu", "cpu", "storage"];

pub(super) fn figures(runs: &[&Run]) -> Vec<Figure> {
    let mut figures = vec![
        over_time(
            runs,
            ["bandwidth-over-time", "Storage bandwidth over time", "GiB/s"],
            &[("storage_read_gbps", "read"), ("storage_write_gbps", "written")],
        ),
        over_time(
            runs,
            ["bench-tokens-over-time", "Tokens per second over time", "tokens/s"],
            &[("throughput_tokens_per_sec", "tokens")],
        ),
        bandwidth_by_tier(runs),
        operations_by_tier(runs),
        blame(runs),
    ];
    figures.retain(|figure| figure.series.iter().any(|series| !series.points.is_empty()));
    figures
}

fn over_time(runs: &[&Run], [id, title, unit]: [&str; 3], columns: &[(&str, &str)]) -> Figure {
    let lines = |run: &&Run| {
        let rows = items(&run.report, "/throughput_timeline");
        let line = |(column, name): &(&str, &str)| {
            let point = |row| (number(row, "/timestamp"), number(row, &format!("/{column}")));
            Series::of(named(runs, run, name), rows.iter().map(point).collect())
        };
        columns.iter().map(line).collect::<Vec<_>>()
    };
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        about: "Of each second of the window, or of longer steps when it is longer than a day.".to_owned(),
        kind: Kind::Lines,
        x: Axis::linear("time", "s"),
        y: Axis::linear(title, unit),
        series: runs.iter().flat_map(lines).collect(),
    }
}

/// Bars for each tier that any run used; `value` by run and tier.
fn by_tier(
    runs: &[&Run],
    [id, title, about, unit]: [&str; 4],
    columns: &[(&str, &str)],
    value: impl Fn(&Run, &str, &str) -> f64,
) -> Figure {
    let is_used = |tier: &&&str| {
        runs.iter().any(|run| columns.iter().any(|(column, _)| value(run, tier, column) > 0.0))
    };
    let tiers: Vec<&&str> = TIERS.iter().filter(is_used).collect();
    let bars = |run: &&Run| {
        let bar = |(column, name): &(&str, &str)| {
            let points = tiers.iter().enumerate().map(|(at, tier)| (at as f64, value(run, tier, column)));
            Series::of(named(runs, run, name), points.collect())
        };
        columns.iter().map(bar).collect::<Vec<_>>()
    };
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        kind: Kind::Bars,
        x: Axis::names("tier", tiers.iter().map(|tier| (**tier).to_owned()).collect()),
        y: Axis::linear(title, unit),
        series: runs.iter().flat_map(bars).collect(),
    }
}

fn bandwidth_by_tier(runs: &[&Run]) -> Figure {
    let about = "Bytes of KV that went in and out of each tier, over the seconds of the window.";
    let columns = [("read", "read"), ("write", "written")];
    by_tier(runs, ["tier-bandwidth", "Bandwidth by tier", about, "GiB/s"], &columns, |run, tier, column| {
        let pointer = format!("/summary/cache_stats/tier_{tier}_{column}_bandwidth_gbps");
        number(&run.report, &pointer)
    })
}

fn operations_by_tier(runs: &[&Run]) -> Figure {
    let about = "Entries that requests found in each tier (its hits), and entries written to it.";
    let columns = [("reads", "hits"), ("writes", "writes")];
    by_tier(
        runs,
        ["tier-hits", "Hits and writes by tier", about, "entries"],
        &columns,
        |run, tier, column| number(&run.report, &format!("/accounting/{tier}/{column}")),
    )
}

/// Shares of end-to-end latency.
fn blame(runs: &[&Run]) -> Figure {
    const PARTS: [(&str, &str); 7] = [
        ("queue_wait", "waiting for a worker"),
        ("lane_wait", "waiting for an I/O lane"),
        ("storage_read", "reading storage"),
        ("storage_write", "writing storage"),
        ("memory_tiers", "memory tiers"),
        ("generation", "generating"),
        ("other", "the rest"),
    ];
    let part = |(key, name): &(&str, &str)| {
        let share = |run: &&Run| number(&run.report, &format!("/summary/bottleneck/shares/{key}")) * 100.0;
        let points = runs.iter().enumerate().map(|(at, run)| (at as f64, share(run)));
        Series::of(*name, points.collect())
    };
    let matters = |series: &Series| series.points.iter().any(|(_, share)| *share > 0.0);
    Figure {
        id: "bench-parts".to_owned(),
        title: "Where the time of a request went".to_owned(),
        about: "Shares of the end-to-end latency of all requests.".to_owned(),
        kind: Kind::Stacked,
        x: Axis::names("run", runs.iter().map(|run| run.name.clone()).collect()),
        y: Axis::linear("share of end-to-end latency", "%"),
        series: PARTS.iter().map(part).filter(matters).collect(),
    }
}
