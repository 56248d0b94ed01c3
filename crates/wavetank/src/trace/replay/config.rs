//! What calls are made on, as recordings hold it (spec/storage-trace.md 1.10): written into those of a
//! replay, and compared with what a recording says of itself.

use serde::Serialize;
use serde_json::{Value, json};
use wavetank_calls::{EvictionPlan, LoadPolicy, Plan, StorePolicy};
use wavetank_trace::calls::lct::{self, canonical_digest, differences};

use super::plan::is_of_bench;

/// How the configuration of a replay stands to that of its recording.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigCheck {
    /// Ours of what is recorded, without what differs in every run; absent if nothing is.
    pub recorded_digest: Option<String>,
    /// Ours of what is replayed on.
    pub digest: String,
    /// Whether it is of a benchmark, whose tiers are taken as one without limits: nothing is compared.
    pub of_bench: bool,
    /// Whether every field that we have is as recorded.
    pub matches: bool,
    /// Those that are not.
    pub differences: Vec<ConfigDifference>,
}

/// A field that is not as recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigDifference {
    /// Its place: names and positions, joined by dots.
    pub field: String,
    /// What was recorded; absent if it is not there.
    pub recorded: Option<Value>,
    /// What is replayed on; absent if it is not there.
    pub replayed: Option<Value>,
}

/// The configuration in full; `adapters` as they were typed.
pub(super) fn config_of(plan: &Plan, adapters: &[Value]) -> Value {
    let l1 = &plan.l1;
    json!({
        "l1_manager_config": {
            "eviction": eviction(&l1.eviction),
            "memory_config": {
                "align_bytes": l1.align_bytes,
                "size_in_bytes": l1.capacity_bytes,
            },
            "read_ttl_seconds": number(l1.read_ttl.as_seconds()),
            "write_ttl_seconds": number(l1.write_ttl.as_seconds()),
        },
        "l2_adapter_config": { "adapters": adapters },
        "prefetch_policy": match plan.load_policy {
            LoadPolicy::Default => "default",
            LoadPolicy::Retain => "retain",
        },
        "store_delay_ms": number(plan.store_delay.as_ms()),
        "store_policy": match plan.store_policy {
            StorePolicy::Default => "default",
            StorePolicy::SkipL1 => "skip_l1",
        },
    })
}

fn eviction(plan: &EvictionPlan) -> Value {
    let policy = match plan.policy.as_str() {
        "lru" => "LRU",
        "arc" => "ARC",
        "isolated_lru" => "IsolatedLRU",
        other => other,
    };
    json!({
        "eviction_policy": policy,
        "eviction_ratio": number(plan.eviction_ratio),
        "trigger_watermark": number(plan.trigger_watermark),
    })
}

/// Whole numbers without a point, as the reference writes seconds and bytes.
fn number(value: f64) -> Value {
    let is_whole = value.fract() == 0.0 && (0.0..1e15).contains(&value);
    if is_whole { json!(value as u64) } else { json!(value) }
}

/// Fields of `ours` that are not as recorded; of what else is recorded nothing is known here.
pub(super) fn unlike(recorded: &Value, ours: &Value) -> Vec<ConfigDifference> {
    let ours_has = |found: &lct::Difference| {
        // A tier that was there and is not any more is ours to know too.
        found.ours.is_some() || found.field.starts_with("l2_adapter_config.adapters")
    };
    let found = differences(recorded, ours).into_iter().filter(ours_has);
    // What few recordings say has its usual value where they do not.
    let is_usual = |field: &str| ["prefetch_policy", "store_delay_ms", "store_policy"].contains(&field);
    let is_stated = |found: &lct::Difference| found.recorded.is_some() || !is_usual(&found.field);
    found
        .filter(is_stated)
        .map(|found| ConfigDifference { field: found.field, recorded: found.recorded, replayed: found.ours })
        .collect()
}

impl ConfigCheck {
    pub(super) fn of(recorded: &str, ours: &Value) -> Self {
        let recorded = lct::canonical(recorded);
        let of_bench = recorded.as_ref().is_some_and(is_of_bench);
        let compared = recorded.as_ref().filter(|_| !of_bench);
        let differences = compared.map_or(Vec::new(), |recorded| unlike(recorded, ours));
        Self {
            of_bench,
            matches: compared.is_some() && differences.is_empty(),
            recorded_digest: recorded.as_ref().map(canonical_digest),
            digest: canonical_digest(ours),
            differences,
        }
    }
}
