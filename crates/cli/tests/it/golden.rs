//! The numbers of every example. They change only when the simulation does, and the change is then reviewed.
//!
//! Breaks on any change of scheduling, timing, routing, caching or statistics that reaches a report.

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::{Sandbox, examples};

#[test]
fn examples_keep_their_numbers() {
    let sandbox = Sandbox::with_examples();
    for example in examples() {
        let report = sandbox.replay(&format!("{example} --num-workers 4"));
        let version = format!("\"wavetank_version\": \"{}\"", env!("CARGO_PKG_VERSION"));
        let report = report.without_wall();
        assert!(report.contains(&version), "{report}");
        let report = brief(&report.replace(&version, "\"wavetank_version\": \"…\""));
        let name = example.trim_start_matches("examples/").trim_end_matches(".jsonl");
        assert_snapshot!(name, report);
    }
}

/// Lists that pictures are drawn from are told by their length and sum.
fn brief(report: &str) -> String {
    let mut report: Value = serde_json::from_str(report).expect("a report is JSON");
    for key in ["course", "curves"] {
        shorten(&mut report[key]);
    }
    serde_json::to_string_pretty(&report).expect("JSON is text")
}

fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) if items.iter().all(|item| item.is_number() || item.is_null()) => {
            let sum: f64 = items.iter().filter_map(Value::as_f64).sum();
            *value = format!("{} numbers, sum {sum:.4e}", items.len()).into();
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(entries) => entries.values_mut().for_each(shorten),
        _ => {}
    }
}
