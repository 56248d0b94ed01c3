//! `wavetank trace replay` and the files around it: none is lost, none is taken for another.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::sandbox::{Running, Sandbox};
use crate::trace_again::{bytes, run, sandbox};

const SOON: Duration = Duration::from_secs(20);

fn refused(sandbox: &Sandbox, line: &str) -> String {
    let refused = sandbox.run(&format!("trace replay {line}"));
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{line}: {}", refused.stderr);
    refused.stderr
}

/// Broken by: a part that replaces what is there, a second name of the input that is not seen to be one.
#[test]
fn a_recording_replaces_nothing_but_its_own_file() {
    let sandbox = sandbox();
    run(&sandbox, "x.lct --trace-output q.lct --trace-rotate-mb 0.01", 0);
    let second = bytes(&sandbox, "q.2.lct");
    let said = refused(&sandbox, "q.2.lct --trace-output q.lct --trace-rotate-mb 0.01");
    assert!(said.contains("q.2.lct: the recording would go on in the input"), "{said}");
    let said = refused(&sandbox, "x.lct --trace-output ./q.lct --trace-rotate-mb 0.01 --jsonl-out q.jsonl");
    assert!(said.contains("is there already, and the recording would go on in it"), "{said}");
    assert!(!sandbox.names_in("").contains(&"q.jsonl".to_owned()), "nothing was begun");
    assert!(bytes(&sandbox, "q.2.lct") == second);
    let said = refused(&sandbox, "x.lct --trace-output n.lct --trace-rotate-mb 0.01 --output ./n.3.lct");
    assert!(said.contains("./n.3.lct: the recording would go on in --output"), "{said}");
    let input = bytes(&sandbox, "x.lct");
    std::fs::hard_link(sandbox.path("x.lct"), sandbox.path("hard.lct")).expect("a link");
    let said = refused(&sandbox, "x.lct --trace-output hard.lct");
    assert!(said.contains("--trace-output hard.lct: is the same file as the input"), "{said}");
    assert!(bytes(&sandbox, "x.lct") == input);
    let said = refused(&sandbox, "x.lct --jsonl-out a --output ./a");
    assert!(said.contains("is the same file as"), "{said}");
}

fn json(sandbox: &Sandbox, name: &str) -> Value {
    serde_json::from_str(&sandbox.read(name)).expect("JSON")
}

/// Broken by: calls that a full recording does not take and nobody hears of, files that are not named.
#[test]
fn what_a_recording_of_a_replay_lacks_is_said() {
    let sandbox = sandbox();
    let line = "trace replay x.lct --trace-output c.lct --trace-rotate-mb 0.01 --trace-cap-mb 0.025";
    let capped = sandbox.run(&format!("{line} --output c.json"));
    assert_eq!(capped.code, Some(0), "{}", capped.stderr);
    let recorded = &json(&sandbox, "c.json")["recorded"];
    let count = |name: &str| recorded[name].as_u64().expect("a number");
    assert!(count("lost") > 0 && count("calls") > 0, "{recorded}");
    let said = format!("c.lct, c.2.lct, c.3.lct: {} calls, {} lost\n", count("calls"), count("lost"));
    assert!(capped.stderr.contains(&format!("the replay is recorded in {said}")), "{}", capped.stderr);
    let warned =
        format!("{} calls are in it, and {} are not (--trace-cap-mb)", count("calls"), count("lost"));
    assert!(capped.stdout.contains(&warned), "{}", capped.stdout);
}

fn interrupted(running: Running, said: &str) -> String {
    running.interrupt();
    let ended = running.finish(SOON);
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    ended.stdout
}

/// Broken by: virtual time that nobody can end, or whose results are lost then.
#[test]
fn virtual_time_can_be_ended_early() {
    let sandbox = sandbox();
    let line =
        "trace replay x.lct --loop 1000000 --jsonl-out v.jsonl --output v.json --against --l1-size-gb=1";
    let mut running = sandbox.start(line, Stdio::null());
    let is_draft = |name: &&String| name.starts_with(".part-") && name.ends_with("v.jsonl");
    let length = |name: &String| std::fs::metadata(sandbox.path(name)).map_or(0, |file| file.len());
    let written = || sandbox.names_in("").iter().find(is_draft).is_some_and(|name| length(name) > 0);
    running.wait_for("something written", written);
    assert!(!sandbox.path("v.jsonl").exists(), "it has its name when it is whole");
    let said = interrupted(running, "interrupted: writing what there is");
    assert!(said.contains("It was ended before the recording was.\n"), "{said}");
    assert!(said.contains("  1: --l1-size-gb=1 (not run, as it was ended early)\n"), "{said}");
    assert!(!said.contains("hit rate   "), "no differences: {said}");
    let report = json(&sandbox, "v.json");
    assert_eq!(report["tally"]["interrupted"], true);
    assert_eq!(report["against"][0]["tally"], Value::Null);
    let lines = sandbox.read("v.jsonl");
    assert!(lines.ends_with("}\n") && lines.lines().count() as u64 >= report["replayed"].as_u64().unwrap());
}

/// Broken by: lines of an older replay that are gone before the recording of this one is read.
#[test]
fn a_recording_that_is_none_costs_no_lines() {
    let sandbox = sandbox();
    sandbox.write("calls.jsonl", "before\n");
    let cut = bytes(&sandbox, "x.lct");
    sandbox.write("cut.lct", &cut[..20]);
    let run = sandbox.run("trace replay cut.lct --jsonl-out calls.jsonl --output r.json");
    assert_eq!(run.code, Some(2), "{}{}", run.stdout, run.stderr);
    assert_eq!(sandbox.read("calls.jsonl"), "before\n");
    assert!(!sandbox.names_in("").iter().any(|name| name.starts_with(".part-")), "no part stays");
}

/// Broken by: a read of standard input that takes two to end.
#[test]
fn waiting_for_a_recording_ends_at_once() {
    let sandbox = Sandbox::empty();
    for pace in ["max", "virtual"] {
        let line = format!("trace replay - --format lct --pace {pace} --output r.json");
        let running = sandbox.start(&line, Stdio::piped());
        thread::sleep(Duration::from_millis(700));
        interrupted(running, "interrupted: nothing was written");
    }
    assert_eq!(sandbox.names_in(""), [""; 0]);
}

/// Broken by: a part that is taken for the whole.
#[test]
fn a_recording_in_several_files_is_one() {
    let sandbox = sandbox();
    run(&sandbox, "x.lct --trace-output one.lct --output one.json", 0);
    run(&sandbox, "x.lct --trace-output q.lct --trace-rotate-mb 0.01", 0);
    run(&sandbox, "one.lct --strict --output one.json", 0);
    run(&sandbox, "q.lct --strict --output q.json", 0);
    let (one, parts) = (json(&sandbox, "one.json"), json(&sandbox, "q.json"));
    assert_eq!(one["tally"], parts["tally"]);
    let said = refused(&sandbox, "q.2.lct");
    assert!(said.contains("it is part 2 of a recording"), "{said}");
    std::fs::remove_file(sandbox.path("q.3.lct")).expect("a part");
    let cut = run(&sandbox, "q.lct", 0);
    assert!(cut.contains("Left out: parts that the recording goes on in: q.3.lct"), "{cut}");
    run(&sandbox, "q.lct --strict", 1);
    let info = sandbox.run("trace info q.lct").stdout;
    assert!(info.contains("the recording goes on in part 3, which is missing: q.3.lct"), "{info}");
}

/// Broken by: two verbs that take the same standard input for different things.
#[test]
fn standard_input_is_what_it_begins_as() {
    let sandbox = sandbox();
    std::fs::copy(sandbox.path("x.lct"), sandbox.path("nameless")).expect("a copy");
    for verb in ["info", "replay"] {
        let named = sandbox.run(&format!("trace {verb} x.lct"));
        let read = sandbox.run_reading(&format!("trace {verb} -"), "x.lct");
        let nameless = sandbox.run(&format!("trace {verb} nameless"));
        let first = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!((read.code, nameless.code), (Some(0), Some(0)), "{}{}", read.stderr, nameless.stderr);
        assert_eq!(first(&read.stdout), first(&named.stdout), "{verb}");
        assert_eq!(first(&nameless.stdout), first(&named.stdout), "{verb}");
        sandbox.write("log", "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n");
        let log = sandbox.run_reading(&format!("trace {verb} -"), "log");
        let said = log.stdout + &log.stderr;
        assert!(said.contains("mlperf-csv") || said.contains("no operation of it was played"), "{said}");
    }
}

/// Broken by: a file called -.
#[test]
fn a_dash_is_no_file() {
    let sandbox = sandbox();
    let before = sandbox.names_in("");
    for flag in ["--output", "--jsonl-out"] {
        let said = refused(&sandbox, &format!("x.lct {flag} -"));
        assert!(said.contains(&format!("{flag} -: output goes to a file")), "{said}");
    }
    assert_eq!(sandbox.names_in(""), before);
}
