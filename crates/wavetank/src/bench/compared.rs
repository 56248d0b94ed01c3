//! What the trials of one plan say together, of one process or of all ranks.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wavetank_model::TierRole;
use wavetank_report::storage::{LaneSummary, MetricName, TierSummary};
use wavetank_report::{Spread, StorageSummary};

use super::plan::BenchPlan;
use super::trials::{self, Agreement};

/// A number of one trial: its key, and where it comes from.
type Number = (&'static str, fn(&StorageSummary) -> f64);

/// What trials are compared by besides their primary metric.
const NUMBERS: &[Number] = &[
    ("avg_throughput_tokens_per_sec", |run| run.metric(MetricName::WallClock).value),
    ("tier_storage_read_bandwidth_gbps", |run| run.bandwidth(TierRole::Storage).read_gbps),
    ("tier_storage_write_bandwidth_gbps", |run| run.bandwidth(TierRole::Storage).write_gbps),
    ("end_to_end_p95_ms", |run| run.requests.end_to_end.p95),
    ("end_to_end_p99_ms", |run| run.requests.end_to_end.p99),
    ("storage_read_device_p95_ms", |run| storage(run).map_or(0.0, |tier| tier.reads.device.p95)),
    ("storage_read_device_p99_ms", |run| storage(run).map_or(0.0, |tier| tier.reads.device.p99)),
    ("storage_write_device_p95_ms", |run| storage(run).map_or(0.0, |tier| tier.writes.device.p95)),
    ("storage_write_device_p99_ms", |run| storage(run).map_or(0.0, |tier| tier.writes.device.p99)),
];

fn storage(run: &StorageSummary) -> Option<&TierSummary> {
    run.tier(TierRole::Storage)
}

/// The time at the device of the storage tier.
fn lane(run: &StorageSummary, which: fn(&TierSummary) -> &LaneSummary) -> Spread {
    storage(run).map(|tier| which(tier).device.clone()).unwrap_or_default()
}

/// Trials side by side; there is at least one.
pub(super) struct Compared<'a> {
    plan: &'a BenchPlan,
    all: Vec<&'a StorageSummary>,
    /// Those that went to their end; all of them if none did.
    whole: Vec<usize>,
}

impl<'a> Compared<'a> {
    /// Each trial with whether it went to its end.
    pub(super) fn of(
        plan: &'a BenchPlan,
        trials: impl IntoIterator<Item = (&'a StorageSummary, bool)>,
    ) -> Self {
        let (all, ended): (Vec<_>, Vec<bool>) = trials.into_iter().unzip();
        let whole: Vec<usize> = (0..all.len()).filter(|&at| ended[at]).collect();
        let whole = if whole.is_empty() { (0..all.len()).collect() } else { whole };
        Self { plan, all, whole }
    }

    fn whole(&self) -> impl Iterator<Item = &'a StorageSummary> {
        self.whole.iter().map(|&at| self.all[at])
    }

    fn agreement(&self, value: impl Fn(&StorageSummary) -> f64) -> Agreement {
        Agreement::of(&self.whole().map(value).collect::<Vec<_>>())
    }

    fn primary(&self) -> Agreement {
        self.agreement(|summary| summary.primary_metric().value)
    }

    /// The one that is reported: the median of those that went to their end.
    pub(super) fn reported(&self) -> usize {
        self.whole[self.primary().median_trial()]
    }

    fn advice(&self) -> Option<String> {
        trials::advice(self.whole.len() as u32, self.plan.run.users)
    }

    /// What to know about all of them together.
    pub(super) fn warnings(&self) -> Vec<String> {
        let (asked, primary) = (self.plan.trials, self.primary());
        let metric = self.all[self.reported()].primary_metric().name.title();
        let mut warnings: Vec<String> = primary.drift(metric).into_iter().collect();
        if (self.all.len() > 1 || asked.most > 1) && (self.whole.len() as u32) < trials::FEWEST {
            warnings.extend(self.advice());
        }
        if let Some(percent) = asked.until_ci_percent
            && !primary.is_tight(percent)
            && self.all.len() as u32 == asked.most
        {
            let most = asked.most;
            warnings
                .push(format!("after {most} trials they do not agree within {percent} %: see --trials-max"));
        }
        warnings
    }

    /// The `trials` key of a report; `rows` is what else is known of each trial.
    pub(super) fn json(&self, rows: impl IntoIterator<Item = Map<String, Value>>) -> Value {
        let row = |(summary, more): (&&StorageSummary, Map<String, Value>)| {
            let mut row: Map<String, Value> =
                NUMBERS.iter().map(|(key, value)| ((*key).to_owned(), json!(value(summary)))).collect();
            row.insert("primary_metric".to_owned(), json!(summary.primary_metric().value));
            row.insert("requests_completed".to_owned(), json!(summary.requests.completed()));
            row.extend(more);
            row
        };
        let numbers = NUMBERS.iter().map(|(key, value)| (*key, self.agreement(value)));
        let reported = self.reported();
        json!({
            "asked_for": self.plan.trials.most,
            "run": self.all.len(),
            "compared": self.whole.len(),
            "reported": reported + 1,
            "metric": self.all[reported].primary_metric().name.key(),
            "agreement": self.primary(),
            "agreement_by_number": numbers.collect::<BTreeMap<_, _>>(),
            "pooled_latency_ms": self.pooled(),
            "advice": self.advice(),
            "trials": self.all.iter().zip(rows).map(row).collect::<Vec<_>>(),
        })
    }

    /// Latencies of all trials that are compared, as if they were one run.
    fn pooled(&self) -> Value {
        let union = |spread: fn(&StorageSummary) -> Spread| {
            let spreads: Vec<Spread> = self.whole().map(spread).collect();
            let all = Spread::merged(&spreads);
            let mut keys: Map<String, Value> =
                all.percentiles().into_iter().map(|(name, ms)| (name.to_owned(), json!(ms))).collect();
            keys.insert("mean".to_owned(), json!(all.mean));
            keys.insert("samples".to_owned(), json!(all.count()));
            keys
        };
        json!({
            "end_to_end": union(|run| run.requests.end_to_end.clone()),
            "storage_io": union(|run| run.requests.storage.clone()),
            "storage_read_device": union(|run| lane(run, |tier| &tier.reads)),
            "storage_write_device": union(|run| lane(run, |tier| &tier.writes)),
        })
    }
}
