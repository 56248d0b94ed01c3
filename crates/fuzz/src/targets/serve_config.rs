//! The configuration file of the cache server, and tiers behind memory as JSON.

use wavetank_calls::AdapterPlan;
use wavetank_serve::{Args, Plan, Secret};

use super::{Entry, inputs};
use crate::said::{Met, refused, refused_anywhere};
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "serve_config",
    about: "the TOML file of `serve`, and JSON of --l2-adapter",
    samples: &["crates/fuzz/samples/serve_config"],
    seeds: || {
        inputs(&[
            "l1_size_gb = 1",
            r#"{"type": "mock", "max_size_gb": 1, "mock_bandwidth_gb": 2}"#,
            r#"{"type": "fs", "base_path": "a", "eviction": {"eviction_policy": "LRU"}}"#,
            r#"{"type": "resp", "host": "::1", "port": 6379, "username": "u", "quotas": {"default_gb": 1}}"#,
            r#"{"type": "direct", "location": "a", "options": {"a": 4}, "wrappers": [{"type": "verify"}]}"#,
        ])
    },
    changed: texts::changed,
    check,
    most_memory: 128 << 20,
};

const FILE: &str = "kv.toml";
const PASSWORD: &str = "open-sesame-1001";

/// What a server is told of its plan never has the password.
fn check(bytes: &[u8]) -> Met {
    let Ok(text) = std::str::from_utf8(bytes) else { return Met::Refused("not text".to_owned()) };
    if text.starts_with('{') {
        return match AdapterPlan::typed(text) {
            Ok(plan) => Met::Read(format!("{:?}", std::mem::discriminant(&plan.medium))),
            Err(error) => refused_anywhere(&error),
        };
    }
    let args = match Args::from_toml(text, FILE) {
        Ok(args) => args,
        Err(error) => return refused(&error, FILE),
    };
    let args = Args { password: Some(Secret::of(PASSWORD)), ..args };
    match Plan::of(&args, None) {
        Ok(plan) => {
            let shown = [plan.told(), format!("{plan:?}"), format!("{args:?}")];
            assert!(shown.iter().all(|shown| !shown.contains(PASSWORD)), "{shown:?}");
            Met::Read(format!("{} tiers", plan.storage.adapters.len()))
        }
        Err(error) => {
            assert!(!error.to_string().contains(PASSWORD), "{error}");
            refused_anywhere(&error)
        }
    }
}
