//! A comparison as a table or as Markdown.

use super::table::{framed, precise};
use crate::compare::{Comparison, Row, Side};

/// What is shown unless all metrics are asked for.
const HEADLINE: &[&str] = &[
    "completed_requests",
    "duration_ms",
    "output_throughput_tok_s",
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

/// Which metrics are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The usual ones.
    Headline,
    /// Every number both reports have.
    All,
}

/// The table for a terminal.
pub fn table(comparison: &Comparison, sides: [&Side; 2], scope: Scope) -> String {
    let columns = ["Metric", &sides[0].name, &sides[1].name, "change", "change %", "spread", ""];
    let mut table = framed(&columns);
    for row in shown(comparison, scope) {
        table.add_row(cells(row));
    }
    format!("{table}\n{}", plan(comparison, "  "))
}

/// The same for a pull request or a document.
pub fn markdown(comparison: &Comparison, sides: [&Side; 2], scope: Scope) -> String {
    let mut text = format!(
        "| metric | {} | {} | change | change % | spread | |\n|---|---:|---:|---:|---:|---:|---|\n",
        sides[0].name, sides[1].name
    );
    for row in shown(comparison, scope) {
        text += &format!("| {} |\n", cells(row).join(" | "));
    }
    text + "\n" + &plan(comparison, "- ")
}

fn shown(comparison: &Comparison, scope: Scope) -> Vec<&Row> {
    match scope {
        Scope::All => comparison.rows.iter().collect(),
        Scope::Headline => {
            let find = |metric: &&str| comparison.rows.iter().find(|row| row.metric == *metric);
            HEADLINE.iter().filter_map(find).collect()
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

fn plan(comparison: &Comparison, bullet: &str) -> String {
    if comparison.plan.is_empty() {
        return String::new();
    }
    let lines = comparison.plan.iter().map(|(path, a, b)| format!("{bullet}{path}: {a} → {b}\n"));
    format!("What differs in the plans:\n{}", lines.collect::<String>())
}
