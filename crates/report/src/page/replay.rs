//! Simulated serving runs: what users would have seen, and why.

mod advice;
mod caches;
mod clock;
mod glance;
mod latency;
mod parts;
mod rates;
mod tiers;
mod workers;

use serde_json::Value;

use super::{Entry, Run, Section};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "replay", is, sections };

fn is(report: &Value) -> bool {
    let simulates = report.get("plan").is_some_and(|plan| plan.get("simulation").is_some());
    simulates && report.get("attribution").is_some()
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    let section = |title: &str, figures| Section { title: title.to_owned(), tables: Vec::new(), figures };
    let mut sections = vec![
        Section { tables: vec![glance::table(runs)], ..section("At a glance", Vec::new()) },
        section("Latency", latency::figures(runs)),
        section("Throughput", rates::figures(runs)),
        section("Queues and caches", caches::figures(runs)),
        Section { tables: tiers::tables(runs), ..section("Tiers", tiers::figures(runs)) },
        Section { tables: workers::tables(runs), ..section("Workers", workers::figures(runs)) },
        Section { tables: vec![parts::table(runs)], ..section("Where the time went", parts::figures(runs)) },
    ];
    sections.extend(advice::sections(runs));
    sections.retain(|section| !section.figures.is_empty() || !section.tables.is_empty());
    sections
}

#[cfg(test)]
mod tests;
