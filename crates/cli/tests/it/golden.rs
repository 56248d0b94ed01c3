//! The numbers of every example. They change only when the simulation does, and the change is then reviewed.
//!
//! Breaks on any change of scheduling, timing, routing, caching or statistics that reaches a report.

use insta::assert_snapshot;

use crate::sandbox::{Sandbox, examples};

#[test]
fn examples_keep_their_numbers() {
    let sandbox = Sandbox::with_examples();
    for example in examples() {
        let report = sandbox.replay(&format!("{example} --num-workers 4"));
        let version = format!("\"wavetank_version\": \"{}\"", env!("CARGO_PKG_VERSION"));
        let report = report.without_wall();
        assert!(report.contains(&version), "{report}");
        let report = report.replace(&version, "\"wavetank_version\": \"…\"");
        let name = example.trim_start_matches("examples/").trim_end_matches(".jsonl");
        assert_snapshot!(name, report);
    }
}
