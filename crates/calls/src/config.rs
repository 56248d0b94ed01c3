//! What calls are made on, as recordings hold it (spec/storage-trace.md 1.10).

use serde_json::{Map, Value, json};

use crate::plan::{AdapterPlan, EvictionPlan, LoadPolicy, Medium, Plan, QuotaPlan, StorePolicy, Wrapping};

const GIB: f64 = (1u64 << 30) as f64;

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

impl AdapterPlan {
    /// As [`AdapterPlan::typed`] reads it.
    pub fn described(&self) -> Value {
        let mut fields = Map::new();
        let mut tell = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        match &self.medium {
            Medium::Mock => tell("type", "mock".into()),
            Medium::Backend { name, location, options, wrappers } => {
                tell("type", name.as_str().into());
                tell("location", location.as_str().into());
                if !options.is_empty() {
                    tell("options", json!(options));
                }
                if !wrappers.is_empty() {
                    tell("wrappers", wrappers.iter().map(wrapping).collect());
                }
            }
        }
        if let Some(bytes) = self.capacity_bytes {
            tell("max_size_gb", number(bytes as f64 / GIB));
        }
        if let Some(rate) = self.bytes_per_second {
            tell("mock_bandwidth_gb", number(rate / GIB));
        }
        if let Some(plan) = &self.eviction {
            tell("eviction", eviction(plan));
        }
        if self.quotas != QuotaPlan::default() {
            let gib = |bytes: u64| number(bytes as f64 / GIB);
            let by_salt: Map<String, Value> =
                self.quotas.by_salt.iter().map(|(salt, bytes)| (salt.clone(), gib(*bytes))).collect();
            tell("quotas", json!({ "default_gb": self.quotas.default_bytes.map(gib), "by_salt": by_salt }));
        }
        Value::Object(fields)
    }
}

fn wrapping(wrapping: &Wrapping) -> Value {
    let options = wrapping.options.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
    let kind = [("type".to_owned(), wrapping.name.as_str().into())];
    Value::Object(kind.into_iter().chain(options).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a field that is not told, or is told in another unit.
    #[test]
    fn a_description_is_read_as_what_it_describes() {
        for text in [
            r#"{"type": "mock", "max_size_gb": 0.3, "mock_bandwidth_gb": 2.5}"#,
            r#"{"type": "fs", "base_path": "/a", "eviction": {"eviction_policy": "IsolatedLRU"},
                "quotas": {"default_gb": 0.001, "by_salt": {"a": 2, "": 1}}}"#,
            r#"{"type": "direct", "location": "/b", "options": {"durable": true}, "max_size_gb": 0.0001,
                "wrappers": [{"type": "fault", "read_error": 0.5}, {"type": "verify"}]}"#,
        ] {
            let plan = AdapterPlan::typed(text).unwrap();
            assert_eq!(AdapterPlan::typed(&plan.described().to_string()).unwrap(), plan, "{text}");
        }
    }
}
