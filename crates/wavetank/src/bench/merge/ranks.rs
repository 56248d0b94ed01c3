//! The ranks beside each other: did they run at the same time, and is one slower than the others?

use serde::Serialize;
use serde_json::{Value, json};
use wavetank_model::{Nanos, TierRole};
use wavetank_report::StorageSummary;
use wavetank_report::storage::{Clock, MetricName};

use super::read::RankReport;
use crate::bench::share::{SharedTrial, Span};

/// With less of the time in common, bandwidths that are added up are of different times.
pub(in crate::bench) const ENOUGH: f64 = 0.9;
/// A rank that moves less than this part of what the others move is slow …
const SLOW_RATE: f64 = 0.75;
/// … and so is one whose requests take so many times as long …
const SLOW_LATENCY: f64 = 2.0;
/// … where there are as many of them.
const LEAST_REQUESTS: u64 = 20;

/// What the windows of all ranks have in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Overlap {
    /// The time in which all ranks measured, as a part of that in which any did.
    share: f64,
    /// From the first beginning to the last end.
    union: Span,
    /// Whether bandwidths can be added up.
    enough: bool,
}

impl Overlap {
    /// None in virtual time, which is not the same on two hosts.
    pub(super) fn of(merged: &StorageSummary) -> Option<Self> {
        if merged.setting.clock != Clock::Wall {
            return None;
        }
        let windows = || merged.parts.iter().map(|run| &run.window);
        let begin = windows().map(|window| window.began).max()?;
        let end = windows().map(|window| window.end()).min()?;
        let union = merged.window.elapsed.as_seconds();
        let is_empty = windows().any(|window| window.elapsed == Nanos::ZERO);
        let share = if is_empty { 0.0 } else { end.since(begin).as_seconds() / union };
        Some(Self { share, union: Span::of(merged), enough: share >= ENOUGH })
    }

    pub(super) fn is_enough(&self) -> bool {
        self.enough
    }

    pub(super) fn warning(&self) -> Option<String> {
        let percent = self.share * 100.0;
        (!self.enough).then(|| {
            format!(
                "all ranks measured at the same time for only {percent:.0} % of the time that any did: the \
                 bandwidths that are added up are of different times; start ranks together, run longer, and \
                 keep the clocks of hosts alike"
            )
        })
    }
}

/// Ranks that are much slower than the others, and how it shows.
pub(super) fn stragglers(ranks: &[RankReport], merged: &StorageSummary) -> Vec<(u32, String)> {
    let find = |(at, rank): (usize, &RankReport)| {
        let sentence = slow_rate(&merged.parts, at).or_else(|| slow_latency(&merged.parts, at))?;
        Some((rank.share.rank.number, format!("{} is slow: {sentence}", rank.name())))
    };
    ranks.iter().enumerate().filter_map(find).collect()
}

fn slow_rate(parts: &[StorageSummary], at: usize) -> Option<String> {
    let moved = |run: &StorageSummary| {
        let storage = run.bandwidth(TierRole::Storage);
        storage.read_gbps + storage.write_gbps
    };
    let tokens = |run: &StorageSummary| run.metric(MetricName::WallClock).value;
    let is_used = parts.iter().any(|run| moved(run) > 0.0);
    let ((own, others), unit) = match is_used {
        true => (apart(parts, at, moved), "GiB/s in and out of storage"),
        false => (apart(parts, at, tokens), "tokens/s"),
    };
    let others = others?;
    (own < others * SLOW_RATE).then(|| format!("{own:.2} {unit}, and {others:.2} of the others"))
}

fn slow_latency(parts: &[StorageSummary], at: usize) -> Option<String> {
    if parts.iter().any(|run| run.requests.completed() < LEAST_REQUESTS) {
        return None;
    }
    let (own, others) = apart(parts, at, |run| run.requests.end_to_end.p95);
    let others = others?;
    (own > others * SLOW_LATENCY)
        .then(|| format!("P95 is {own:.1} ms end to end, and {others:.1} of the others"))
}

/// The value of one, and the median of the others.
fn apart(parts: &[StorageSummary], at: usize, value: impl Fn(&StorageSummary) -> f64) -> (f64, Option<f64>) {
    let mut others: Vec<f64> =
        parts.iter().enumerate().filter(|(number, _)| *number != at).map(|(_, run)| value(run)).collect();
    others.sort_by(f64::total_cmp);
    (value(&parts[at]), others.get(others.len() / 2).copied())
}

/// What the report says about one rank.
pub(super) fn row(rank: &RankReport, trial: &SharedTrial) -> Value {
    let (share, summary) = (&rank.share, &trial.summary);
    let storage = summary.bandwidth(TierRole::Storage);
    let device = summary.tier(TierRole::Storage).map(|tier| (tier.reads.device.p95, tier.writes.device.p95));
    json!({
        "rank": share.rank.number,
        "local": share.rank.local,
        "told_by": share.rank.told_by,
        "host": share.host,
        "seed": share.seed,
        "file": rank.place(),
        "window": Span::of(summary),
        "elapsed_time": summary.window.elapsed.as_seconds(),
        "requests_completed": summary.requests.completed(),
        "tokens_per_sec": summary.metric(MetricName::WallClock).value,
        "storage_read_gbps": storage.read_gbps,
        "storage_write_gbps": storage.write_gbps,
        "end_to_end_p95_ms": summary.requests.end_to_end.p95,
        "storage_read_device_p95_ms": device.map(|(read, _)| read),
        "storage_write_device_p95_ms": device.map(|(_, write)| write),
        "ended": trial.ended,
        "partial": trial.partial,
        "harness": rank.harness,
    })
}
