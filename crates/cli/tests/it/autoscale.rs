//! A replay that scales, and what its page and its plan know of it.

use std::fs;

use crate::sandbox::Sandbox;

/// Broken by: a change of a policy, or a page or a plan without it.
#[test]
fn a_page_and_a_plan_know_of_changes() {
    let sandbox = Sandbox::with_examples();
    let config = r#"--autoscale-config {"max":4,"busy_up":0.9,"busy_down":0.4}"#;
    let start = r#"--extra-engine-args {"startup_time":20}"#;
    let line = format!("replay examples/conversation.jsonl --autoscale load {config} {start}");
    let run = sandbox.run(&format!("{line} --report-json r.json --html page.html"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let page = fs::read_to_string(sandbox.path("page.html")).expect("the page");
    assert!(page.contains("workers-over-time") && page.contains("time in passes 96 %, above 90 %"));
    let again = sandbox.run("replay --plan r.json --report-json again.json");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(sandbox.report("again.json").json()["scaling"], sandbox.report("r.json").json()["scaling"]);
}
