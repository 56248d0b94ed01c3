//! What a recording of a benchmark says of itself: the store it was made on, in the reference's words as far
//! as they apply (spec/storage-trace.md 1.10) and in ours.

use serde_json::{Map, Value, json};
use wavetank_bench::TierPlan;
use wavetank_report::storage::GIB;
use wavetank_trace::calls::lct::{Header, canonical};

use crate::bench::BenchPlan;

/// Of a recording that began at this time.
pub(super) fn of(plan: &BenchPlan, wall_start_s: f64) -> Header {
    let config = config(plan).to_string();
    // Keys are sorted, so that one store has one text and one digest.
    let config = canonical(&config).map_or(config, |sorted| sorted.to_string());
    let mut level_meta = Map::new();
    level_meta.insert("recorder".to_owned(), "wavetank bench".into());
    level_meta.insert("wavetank_version".to_owned(), env!("CARGO_PKG_VERSION").into());
    Header { level_meta, ..Header::storage(wall_start_s, config) }
}

fn config(plan: &BenchPlan) -> Value {
    let run = &plan.run;
    let (first, lower) = run.tiers.split_first().expect("a store has a tier");
    let mut memory = Map::new();
    memory.insert("align_bytes".to_owned(), 1.into());
    memory.extend(first.capacity_bytes.map(|bytes| ("size_in_bytes".to_owned(), bytes.into())));
    let tier = |tier: &TierPlan| {
        json!({
            "role": tier.role,
            "backend": tier.backend,
            "capacity_bytes": tier.capacity_bytes,
            "eviction": tier.eviction,
        })
    };
    json!({
        "eviction_config": eviction(first),
        "l1_manager_config": { "eviction": eviction(first), "memory_config": memory },
        "l2_adapter_config": { "adapters": lower.iter().map(adapter).collect::<Vec<_>>() },
        "wavetank": {
            "command": "bench",
            "clock": run.time,
            "model": plan.model.name,
            "rules": run.rules,
            "seed": plan.seed(),
            "tiers": run.tiers.iter().map(tier).collect::<Vec<_>>(),
        },
    })
}

/// Room is made when it is needed, not above a mark.
fn eviction(tier: &TierPlan) -> Value {
    let policy = match tier.eviction.as_str() {
        "isolated_lru" => "IsolatedLRU".to_owned(),
        "noop" => "noop".to_owned(),
        other => other.to_uppercase(),
    };
    json!({ "eviction_policy": policy, "trigger_watermark": 1.0 })
}

fn adapter(tier: &TierPlan) -> Value {
    let size = tier.capacity_bytes.map(|bytes| bytes as f64 / GIB);
    json!({ "type": tier.backend, "max_size_gb": size, "eviction": eviction(tier) })
}
