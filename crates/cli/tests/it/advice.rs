//! `replay --advise` through the binary: the sections it adds, what it is refused with.

use std::fs;

use insta::assert_snapshot;

use crate::sandbox::Sandbox;

#[test]
fn a_page_and_a_plan_have_advice() {
    let sandbox = Sandbox::with_examples();
    let line = "examples/conversation.jsonl --num-workers 4 --advise --per-request-jsonl q.jsonl";
    let report = sandbox.replay(&format!("{line} --html page.html")).json();
    assert_eq!(report["advice"]["goal"], "p99_ttft_ms");
    let page = sandbox.read("page.html");
    assert!(page.contains("What more or less of each thing would do"));
    assert!(page.contains("one worker fewer"));
    fs::copy(sandbox.path("replayed.json"), sandbox.path("first.json")).expect("a copy");
    let again = sandbox.replay("--plan first.json --advise").json();
    assert_eq!(report["advice"], again["advice"], "with names or without, from flags or from a plan");
    let plain = sandbox.replay("--plan first.json").json();
    assert!(plain.get("advice").is_none());
}

#[test]
fn what_cannot_be_advised_is_refused() {
    let sandbox = Sandbox::with_examples();
    let refused = [
        "examples/conversation.jsonl --advise --seeds 3",
        "examples/conversation.jsonl --advise --replay-mode online",
        "examples/conversation.jsonl --advise=p98_ttft_ms",
        "examples/conversation.jsonl --advise --price gpu_hour=-1",
        "examples/conversation.jsonl --advise --price ram_gib_hour=1",
        "mooncake:- --advise",
    ];
    let said: Vec<String> = refused.iter().map(|line| format!("{line}\n{}", sandbox.refuse(line))).collect();
    assert_snapshot!(said.join("\n"));
    let alone = sandbox.run("replay examples/conversation.jsonl --price gpu_hour=1");
    assert_eq!(alone.code, Some(2), "{}", alone.stderr);
    assert!(alone.stderr.contains("--advise"), "{}", alone.stderr);
}
