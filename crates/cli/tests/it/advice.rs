//! `replay --advise` through the binary: the page of the docs, the sections it adds, what it is refused with.

use std::fs;

use insta::assert_snapshot;

use crate::sandbox::{Sandbox, repository};

const FENCE: &str = "```";

/// Every command that docs/advice.md shows, and its output.
fn shown(text: &str) -> Vec<(&str, &str)> {
    let blocks = text.split(FENCE).filter_map(|block| block.strip_prefix("console\n$ wavetank "));
    blocks.map(|block| block.split_once('\n').expect("a command and its output")).collect()
}

/// Broken by: a number, a row or the layout of the table that changes; `WAVETANK_BLESS=1` writes it again.
#[test]
fn the_output_of_the_docs_is_real() {
    let path = repository().join("docs/advice.md");
    let text = fs::read_to_string(&path).expect("docs/advice.md");
    let mut real = text.clone();
    assert_eq!(shown(&text).len(), 2);
    for (command, output) in shown(&text) {
        // A shell takes the quotes away.
        let run = Sandbox::with_examples().run(&command.replace('\'', ""));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        let advice = &run.stdout[run.stdout.find("Advice: ").expect("advice")..];
        real = real.replace(output, advice);
    }
    if std::env::var_os("WAVETANK_BLESS").is_some_and(|value| value == "1") && real != text {
        fs::write(&path, real).expect("docs/advice.md is writable");
        return;
    }
    assert_eq!(text, real, "WAVETANK_BLESS=1 writes it again");
}

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
