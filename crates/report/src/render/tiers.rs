//! What tiers did, on standard output: a column for each.

use super::table::{framed, number};
use crate::Distribution;
use crate::tiers::{TierSummary, TiersSummary};

/// The table and what follows from it.
pub fn text(summary: &TiersSummary) -> String {
    let names: Vec<&str> = summary.tiers.iter().map(|tier| tier.shape.name.as_str()).collect();
    let mut table = framed(&[&["Tiers"][..], &names].concat());
    for (name, value) in ROWS {
        let values = summary.tiers.iter().map(|tier| value(summary, tier));
        table.add_row([(*name).to_owned()].into_iter().chain(values));
    }
    let sources: Vec<String> = summary
        .sources()
        .into_iter()
        .map(|(name, _, share)| match name {
            "gpu" => format!("{:.1} % in GPU memory", share * 100.0),
            "computed" => format!("{:.1} % computed", share * 100.0),
            tier => format!("{:.1} % in {tier}", share * 100.0),
        })
        .collect();
    let worth = summary.tiers.iter().map(|tier| tier.shape.break_even.sentence(&tier.shape.name));
    let worth: String = worth.map(|sentence| format!("Break-even: {sentence}\n")).collect();
    format!("{table}\nPrompt tokens: {}\n{worth}", sources.join(", "))
}

type Cell = fn(&TiersSummary, &TierSummary) -> String;

/// Every row: what it is called and what it says of a tier.
const ROWS: &[(&str, Cell)] = &[
    ("Capacity", |_, tier| match tier.shape.copies {
        1 => bytes(tier.shape.capacity_bytes),
        copies => format!("{copies} x {}", bytes(tier.shape.capacity_bytes)),
    }),
    ("Loads (requests)", |_, tier| format!("{} ({})", tier.loads, tier.requests)),
    ("Hit tokens (blocks)", |_, tier| format!("{} ({})", tier.hit_tokens, tier.hit_blocks)),
    ("Load wait, mean (ms)", |_, tier| shown(&tier.load_wait_ms, |wait| wait.mean)),
    ("Load wait, P50 (ms)", |_, tier| shown(&tier.load_wait_ms, |wait| wait.median)),
    ("Load wait, P95 (ms)", |_, tier| shown(&tier.load_wait_ms, |wait| wait.p95)),
    ("Load wait, P99 (ms)", |_, tier| shown(&tier.load_wait_ms, |wait| wait.p99)),
    ("Load wait, max (ms)", |_, tier| shown(&tier.load_wait_ms, |wait| wait.max)),
    ("Read", |_, tier| bytes(tier.bytes_read)),
    ("Written", |_, tier| bytes(tier.bytes_written)),
    ("Transfer, mean read (ms)", |_, tier| shown(&tier.read_ms, |time| time.mean)),
    ("Transfer, mean write (ms)", |_, tier| shown(&tier.write_ms, |time| time.mean)),
    ("Evicted blocks", |_, tier| tier.evicted_blocks.to_string()),
    ("Dropped blocks", |_, tier| tier.dropped_blocks.to_string()),
    ("Busy (%)", |all, tier| number(tier.utilisation(all.span) * 100.0)),
    ("While busy (GB/s)", |_, tier| number(tier.bandwidth() / 1e9)),
    ("Prefill saved (s)", |_, tier| number(tier.saved_prefill_ms / 1000.0)),
];

fn shown(values: &Distribution, statistic: fn(&Distribution) -> f64) -> String {
    if values.count > 0 { number(statistic(values)) } else { "N/A".to_owned() }
}

/// Binary units, as capacities are typed.
fn bytes(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, bits)| bytes >= 1 << bits) {
        Some((unit, bits)) => format!("{:.2} {unit}", bytes as f64 / (1u64 << bits) as f64),
        None => format!("{bytes} B"),
    }
}
