//! A comparison as a table or as Markdown.

use super::table::{framed, precise};
use crate::compare::{Comparison, Failure, Judged, Label, Row, Verdict};

/// What is shown unless all metrics are asked for.
const HEADLINE: &[&str] = &[
    "completed_requests",
    "duration_ms",
    "output_throughput_tok_s",
    "total_throughput_tok_s",
    "total_tokens_per_sec",
    "request_throughput_rps",
    "prefix_cache_reused_ratio",
    "mean_ttft_ms",
    "median_ttft_ms",
    "p90_ttft_ms",
    "p99_ttft_ms",
    "mean_itl_ms",
    "median_itl_ms",
    "p99_itl_ms",
    "mean_tpot_ms",
    "mean_e2e_latency_ms",
    "p99_e2e_latency_ms",
    "goodput_request_throughput_rps",
];

/// What is shown of tiers, whatever they are called.
const OF_TIERS: &[&str] =
    &[".share_of_prompt_tokens", ".load_wait_ms.mean", ".load_wait_ms.p99", ".utilisation"];

/// Which metrics are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The usual ones.
    Headline,
    /// Every number both sides have, and the names of those that one lacks.
    All,
}

/// The table for a terminal.
pub fn table(comparison: &Comparison, scope: Scope) -> String {
    let [before, after] = &comparison.sides;
    let columns = ["Metric", &before.name, &after.name, "change", "change %", "spread", ""];
    let mut table = framed(&columns);
    for row in shown(comparison, scope) {
        table.add_row(cells(row));
    }
    format!("{table}\n{}{}", sides(comparison, scope, "  "), plan(comparison, "  "))
}

/// The same for a pull request or a document.
pub fn markdown(comparison: &Comparison, scope: Scope) -> String {
    let [before, after] = &comparison.sides;
    let mut text = format!(
        "| metric | {} | {} | change | change % | spread | |\n|---|---:|---:|---:|---:|---:|---|\n",
        before.name, after.name
    );
    for row in shown(comparison, scope) {
        text += &format!("| {} |\n", cells(row).join(" | "));
    }
    format!("{text}\n{}{}", sides(comparison, scope, "- "), plan(comparison, "- "))
}

/// How many metrics were judged, and which.
pub fn verdict(verdict: &Verdict) -> String {
    let (judged, failed) = (verdict.judged.len(), verdict.failures.len());
    let names = verdict.judged.join(", ");
    format!("Within tolerance: {} of {judged} metrics ({names})\n", judged - failed)
}

/// A line for everything that is not kept.
pub fn failures(judged: &Judged) -> Vec<String> {
    judged.held.iter().cloned().chain(judged.verdict.failures.iter().map(failure)).collect()
}

/// One line for a metric that is off.
fn failure(failure: &Failure) -> String {
    let Failure { metric, before, after, off_percent, allowed_percent } = failure;
    let (before, after) = (precise(*before), precise(*after));
    format!("{metric} is {after}, {off_percent:+.2} % from {before} and not within {allowed_percent} %")
}

fn shown(comparison: &Comparison, scope: Scope) -> Vec<&Row> {
    match scope {
        Scope::All => comparison.rows.iter().collect(),
        Scope::Headline => {
            let find = |metric: &&str| comparison.rows.iter().find(|row| row.metric == *metric);
            let of_tier = |row: &&Row| {
                let end = |end: &&str| row.metric.ends_with(end);
                row.metric.starts_with("tiers.") && OF_TIERS.iter().any(end)
            };
            HEADLINE.iter().filter_map(find).chain(comparison.rows.iter().filter(of_tier)).collect()
        }
    }
}

fn cells(row: &Row) -> Vec<String> {
    let signed = |value: f64| format!("{}{}", if value > 0.0 { "+" } else { "" }, precise(value));
    let relative = row.relative().map_or("N/A".to_owned(), |part| format!("{:+.2} %", part * 100.0));
    let repeated = row.before.count() > 1 || row.after.count() > 1;
    let spread =
        if repeated { precise(row.before.spread().max(row.after.spread())) } else { "N/A".to_owned() };
    vec![
        row.metric.clone(),
        precise(row.before.mean()),
        precise(row.after.mean()),
        signed(row.change()),
        relative,
        spread,
        if row.is_noise() { "noise".to_owned() } else { String::new() },
    ]
}

/// What the sides are, what to know about them, and what could not be compared.
fn sides(comparison: &Comparison, scope: Scope, bullet: &str) -> String {
    let mut text = format!("{} metrics in both:\n", comparison.rows.len());
    for side in &comparison.sides {
        let Label { name, format, runs, remarks, alone } = side;
        let runs = if *runs > 1 { format!(", {runs} runs") } else { String::new() };
        text += &format!("{bullet}{name} is {format}{runs}");
        if !remarks.is_empty() {
            text += &format!(", and {}", remarks.join(", "));
        }
        match (alone.len(), scope) {
            (0, _) => {}
            (count, Scope::Headline) => text += &format!("; {count} more in it alone, which --all names"),
            (_, Scope::All) => text += &format!("; in it alone: {}", alone.join(", ")),
        }
        text += "\n";
    }
    text
}

fn plan(comparison: &Comparison, bullet: &str) -> String {
    if comparison.plan.is_empty() {
        return String::new();
    }
    let lines = comparison.plan.iter().map(|(path, a, b)| format!("{bullet}{path}: {a} → {b}\n"));
    format!("What differs in the plans:\n{}", lines.collect::<String>())
}
