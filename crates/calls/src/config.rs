//! What calls are made on, as recordings hold it (spec/storage-trace.md 1.10).

use serde_json::{Value, json};

use crate::plan::{EvictionPlan, LoadPolicy, Plan, QuotaPlan, StorePolicy};

impl Plan {
    /// The configuration in full; `adapters` as they were typed.
    pub fn config(&self, adapters: &[Value]) -> Value {
        let l1 = &self.l1;
        let mut config = json!({
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
            "prefetch_policy": match self.load_policy {
                LoadPolicy::Default => "default",
                LoadPolicy::Retain => "retain",
            },
            "store_delay_ms": number(self.store_delay.as_ms()),
            "store_policy": match self.store_policy {
                StorePolicy::Default => "default",
                StorePolicy::SkipL1 => "skip_l1",
            },
        });
        if l1.quotas != QuotaPlan::default() {
            config["l1_manager_config"]["quotas"] = json!(l1.quotas);
        }
        config
    }
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
