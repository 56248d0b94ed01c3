//! Latencies as buckets, so that percentiles of many runs together can be computed from their reports.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wavetank_model::Error;

use crate::storage::StorageSummary;
use crate::{Buckets, SIGNIFICANT_DIGITS, Spread};

const DIGITS_KEY: &str = "significant_digits";

/// Those that have values, and the number of their digits.
pub(super) fn write(run: &StorageSummary) -> Map<String, Value> {
    let filled = named(run).into_iter().filter(|(_, spread)| spread.count() > 0);
    let mut keys: Map<String, Value> = filled.map(|(name, spread)| (name, json!(spread.buckets))).collect();
    keys.insert(DIGITS_KEY.to_owned(), json!(SIGNIFICANT_DIGITS));
    keys
}

fn named(run: &StorageSummary) -> Vec<(String, &Spread)> {
    let requests = &run.requests;
    let of_requests = [
        ("end_to_end", &requests.end_to_end),
        ("storage_io", &requests.storage),
        ("generation", &requests.generation),
        ("queue_wait", &requests.waited),
        ("prefill", &requests.prefill),
        ("decode", &requests.decode),
    ];
    let mut all: Vec<(String, &Spread)> =
        of_requests.into_iter().map(|(name, spread)| (name.to_owned(), spread)).collect();
    let by_class = requests.classes.iter();
    all.extend(by_class.map(|class| (format!("end_to_end_{}", class.class.name()), &class.end_to_end)));
    for tier in &run.tiers {
        for (direction, lane) in [("read", &tier.reads), ("write", &tier.writes)] {
            let name = format!("{}_{direction}", tier.role.name());
            all.push((format!("{name}_total"), &lane.total));
            all.push((format!("{name}_device"), &lane.device));
            all.push((format!("{name}_host"), &lane.host));
            all.push((format!("{name}_wait"), &lane.wait));
            all.push((format!("{name}_service"), &lane.service));
        }
    }
    all
}

/// The histograms of a report, by name.
pub fn read(report: &Value) -> Result<BTreeMap<String, Buckets>, Error> {
    let bad = |what: String| Error::input(format!("the report's histograms: {what}"));
    let Some(keys) = report["histograms"].as_object() else { return Err(bad("there are none".to_owned())) };
    let digits = keys.get(DIGITS_KEY).and_then(Value::as_u64);
    if digits != Some(u64::from(SIGNIFICANT_DIGITS)) {
        return Err(bad(format!("`{DIGITS_KEY}` is not {SIGNIFICANT_DIGITS}, so buckets do not match")));
    }
    let named = keys.iter().filter(|(name, _)| *name != DIGITS_KEY);
    let histogram = |(name, value): (&String, &Value)| {
        let buckets = serde_json::from_value(value.clone()).map_err(|e| bad(format!("`{name}`: {e}")))?;
        Ok((name.clone(), buckets))
    };
    named.map(histogram).collect()
}
