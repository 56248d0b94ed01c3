//! What tiers behind the GPU's memory did: where prompts came from, and how long loads took.

use serde_json::Value;

use super::super::{Cell, Run, Table};
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{items, number};

/// Runs that have tiers.
fn tiered<'a>(runs: &[&'a Run]) -> Vec<&'a Run> {
    runs.iter().copied().filter(|run| run.report.get("tiers").is_some()).collect()
}

pub(super) fn figures(runs: &[&Run]) -> Vec<Figure> {
    let runs = tiered(runs);
    if runs.is_empty() { Vec::new() } else { vec![sources(&runs), waits(&runs)] }
}

fn name(item: &Value) -> &str {
    item.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Where prompt tokens came from, a stack for each run.
fn sources(runs: &[&Run]) -> Figure {
    let of = |run: &&Run| items(&run.report, "/tiers/prompt_tokens").to_vec();
    // Tiers of every run, between the GPU and what is computed.
    let mut names: Vec<String> = Vec::new();
    for item in runs.iter().flat_map(of) {
        if !names.iter().any(|known| known == name(&item)) {
            names.push(name(&item).to_owned());
        }
    }
    names.sort_by_key(|name| name == "computed");
    let series = names.iter().map(|source| {
        let share = |run: &Run| {
            let found = items(&run.report, "/tiers/prompt_tokens").iter().find(|item| name(item) == source);
            found.map_or(0.0, |item| number(item, "/share") * 100.0)
        };
        let points = runs.iter().enumerate().map(|(at, run)| (at as f64, share(run)));
        let title = match source.as_str() {
            "gpu" => "GPU memory",
            tier => tier,
        };
        Series::of(title, points.collect())
    });
    Figure {
        id: "prompt-sources".to_owned(),
        title: "Where prompt tokens came from".to_owned(),
        about:
            "Shares of the prompt tokens of completed requests that were in the GPU's memory when they were \
                admitted first, were loaded from a tier, or were computed."
                .to_owned(),
        kind: Kind::Stacked,
        x: Axis::names("run", runs.iter().map(|run| run.name.clone()).collect()),
        y: Axis::linear("prompt tokens", "%"),
        series: series.collect(),
    }
}

/// Every tier of every run, with what it is called among them.
fn each<'a>(runs: &[&'a Run]) -> Vec<(String, &'a Value)> {
    let several = runs.len() > 1;
    let of = |run: &&'a Run| {
        let called = |tier: &'a Value| match several {
            true => (format!("{}: {}", run.name, name(tier)), tier),
            false => (name(tier).to_owned(), tier),
        };
        items(&run.report, "/tiers/tiers").iter().map(called).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of).collect()
}

fn waits(runs: &[&Run]) -> Figure {
    let tiers = each(runs);
    let statistic = |(key, title): &(&str, &str)| {
        let value = |tier: &Value| number(tier, &format!("/load_wait_ms/{key}"));
        let points = tiers.iter().enumerate().map(|(at, (_, tier))| (at as f64, value(tier)));
        Series::of(*title, points.collect())
    };
    let statistics = [("mean", "mean"), ("p50", "P50"), ("p95", "P95"), ("p99", "P99")];
    Figure {
        id: "load-waits".to_owned(),
        title: "How long loads took".to_owned(),
        about:
            "From asking for what a tier has of a prompt until all of it is there, over the loads that found \
                something in it."
                .to_owned(),
        kind: Kind::Bars,
        x: Axis::names("tier", tiers.iter().map(|(name, _)| name.clone()).collect()),
        y: Axis::linear("load wait", "ms"),
        series: statistics.iter().map(statistic).collect(),
    }
}

/// Pointer and name.
const ROWS: [(&str, &str); 15] = [
    ("/capacity_bytes", "capacity (bytes)"),
    ("/copies", "copies"),
    ("/loads", "loads"),
    ("/requests", "requests"),
    ("/hit_tokens", "tokens loaded"),
    ("/share_of_prompt_tokens", "share of prompt tokens"),
    ("/bytes_read", "read (bytes)"),
    ("/bytes_written", "written (bytes)"),
    ("/evicted_blocks", "evicted blocks"),
    ("/dropped_blocks", "blocks not written for want of room"),
    ("/read_ms/mean", "a read, mean (ms)"),
    ("/write_ms/mean", "a write, mean (ms)"),
    ("/utilisation", "utilisation"),
    ("/bandwidth_bytes_per_s", "bytes per second while busy"),
    ("/saved_prefill_ms", "prefill time saved (ms)"),
];

pub(super) fn tables(runs: &[&Run]) -> Vec<Table> {
    let tiers = each(&tiered(runs));
    if tiers.is_empty() {
        return Vec::new();
    }
    let row = |(pointer, name): &(&str, &str)| {
        let values = tiers.iter().map(|(_, tier)| Cell::Number(number(tier, pointer)));
        std::iter::once(Cell::Text((*name).to_owned())).chain(values).collect()
    };
    let told = tiers.iter().map(|(_, tier)| {
        let text = tier.pointer("/break_even/text").and_then(Value::as_str);
        Cell::Text(text.unwrap_or_default().to_owned())
    });
    let worth = std::iter::once(Cell::Text("break-even".to_owned())).chain(told).collect();
    let names = tiers.iter().map(|(name, _)| name.clone());
    vec![Table {
        title: "What each tier did".to_owned(),
        columns: std::iter::once("number".to_owned()).chain(names).collect(),
        rows: ROWS.iter().map(row).chain([worth]).collect(),
        of_figure: None,
    }]
}
