//! Measured profiles of tiers, TOML or JSON: read, written, and simulated with.

use serde_json::json;
use wavetank::profile::tier;
use wavetank::{Plan, ReplayArgs};

use super::{Entry, inputs};
use crate::said::{Met, refused, sketch};
use crate::scratch::Scratch;
use crate::{small_run, texts};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "tier_profile",
    about: "measured profiles of tiers",
    samples: &["crates/fuzz/samples/tier_profile"],
    seeds: || inputs(&["", "{}", "layout = \"wavetank-tier/1\"\n"]),
    changed: texts::changed,
    check,
    most_memory: 384 << 20,
};

/// What is a profile is written and read as it is, and a small replay with it ends.
fn check(bytes: &[u8]) -> Met {
    let name = if bytes.starts_with(b"{") { "tier.json" } else { "tier.toml" };
    let file = Scratch::of(name, bytes);
    let profile = match tier::read(file.path()) {
        Ok(profile) => profile,
        Err(error) => return refused(&error, &file.place()),
    };
    let text = tier::file_text(&profile, file.path()).expect("a profile can be written");
    let again = tier::read(Scratch::of(name, text.as_bytes()).path()).expect("what is written is a profile");
    assert!(again == profile, "{again:?} is not {profile:?}");
    assert!(!tier::table(&profile).is_empty());
    assert_eq!(tier::Drift::between(&profile, &profile).beyond(), 0, "a profile does not differ from itself");
    Met::Read(simulated(&file))
}

/// A tier that is as fast as the file says, behind a small cache.
fn simulated(file: &Scratch) -> String {
    let mut args = ReplayArgs::default();
    let flags = json!({
        "input_tokens": 256, "output_tokens": 4, "request_count": 12, "arrival_interval_ms": 5.0,
        "shared_prefix_ratio": 0.5, "num_prefix_groups": 3,
        "extra_engine_args": { "num_gpu_blocks": 40, "block_size": 16, "kv_bytes_per_token": 1024 },
        "tier": format!("disk=1MiB:{}", file.place()),
    });
    for (name, value) in flags.as_object().expect("an object") {
        args.set(name, value).expect("flags of a replay");
    }
    match Plan::of(&args) {
        Ok(plan) => small_run::all_holds(&plan),
        Err(error) => sketch(&error.to_string()),
    }
}
