//! The flags of a replay as files write them: a JSON object of names and values, engine and router arguments,
//! tiers and scaling among them.

use serde_json::{Map, Value};
use wavetank::{Plan, ReplayArgs};

use super::{Entry, inputs};
use crate::said::{Met, refused_anywhere};
use crate::{small_run, texts};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "flags",
    about: "flags of a replay: engine, router, tier and scaling arguments as JSON",
    samples: &["crates/fuzz/samples/flags"],
    seeds: || inputs(&["{}", r#"{"input_tokens": 1}"#, r#"{"router_config": "@none.json"}"#]),
    changed: texts::changed,
    check,
    most_memory: 512 << 20,
};

/// Text in which this stands would start an interpreter.
const INTERPRETED: &str = "aic";

/// What is a plan is written, read again, and runs where it is small.
fn check(bytes: &[u8]) -> Met {
    let Ok(flags) = serde_json::from_slice::<Map<String, Value>>(bytes) else {
        return Met::Refused("no object".to_owned());
    };
    if String::from_utf8_lossy(bytes).contains(INTERPRETED) {
        return Met::Refused("not tried".to_owned());
    }
    let mut args = ReplayArgs::default();
    for (name, value) in &flags {
        if let Err(error) = args.set(name, value) {
            return refused_anywhere(&error);
        }
    }
    match Plan::of(&args) {
        Ok(plan) => Met::Read(small_run::all_holds(&plan)),
        Err(error) => refused_anywhere(&error),
    }
}
