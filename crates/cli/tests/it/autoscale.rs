//! What docs/autoscale.md shows is what the command prints, and the page and the plan know of it.

use std::fs;

use crate::sandbox::{Sandbox, repository};

const PROMPT: &str = "$ wavetank ";

/// Broken by: a change of a policy, of what is printed, or of the example in the text.
#[test]
fn the_documented_example_is_real() {
    let text = fs::read_to_string(repository().join("docs/autoscale.md")).expect("docs/autoscale.md");
    let block = text.split("```").find(|part| part.contains(PROMPT)).expect("there is an example");
    let mut lines = block.lines().skip_while(|line| !line.starts_with(PROMPT));
    let typed = lines.next().expect("a command").trim_start_matches(PROMPT).replace('\'', "");
    let sandbox = Sandbox::with_examples();
    let run = sandbox.run(&format!("{typed} --report-json r.json --html page.html"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let shown: Vec<&str> = lines.collect();
    let printed: Vec<&str> =
        run.stdout.lines().skip_while(|line| !line.starts_with("Scaling")).take(shown.len()).collect();
    assert!(!shown.is_empty());
    assert_eq!(printed, shown);
    let page = fs::read_to_string(sandbox.path("page.html")).expect("the page");
    assert!(page.contains("workers-over-time") && page.contains("time in passes 96 %, above 90 %"));
    let again = sandbox.run("replay --plan r.json --report-json again.json");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(sandbox.report("again.json").json()["scaling"], sandbox.report("r.json").json()["scaling"]);
}
