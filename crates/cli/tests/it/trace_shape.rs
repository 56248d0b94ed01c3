//! `wavetank trace anonymize`, `slice`, `scale` and `merge`: other traces that share what the first shared.

use std::collections::{BTreeMap, BTreeSet};

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::{Run, Sandbox};

const KEY: &str = "correct horse battery staple";
const CHAT: &str = "examples/conversation.jsonl";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_examples();
    sandbox.write("key", format!("{KEY}\n"));
    sandbox
}

fn done(sandbox: &Sandbox, line: &str) -> Run {
    let run = sandbox.run(&format!("trace {line}"));
    assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
    run
}

fn refused(sandbox: &Sandbox, line: &str) -> String {
    let before = sandbox.names_in("");
    let run = sandbox.run(&format!("trace {line}"));
    assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{line}: {}", run.stderr);
    assert_eq!(sandbox.names_in(""), before, "{line}: nothing is left behind");
    run.stderr
}

fn rows(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    sandbox.read(name).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn ids(row: &Value) -> Vec<u64> {
    row["hash_ids"].as_array().expect("a list").iter().map(|id| id.as_u64().expect("an id")).collect()
}

/// For each block of the trace, the request and place where it was met last.
fn sharing(rows: &[Value]) -> Vec<Option<(usize, usize)>> {
    let mut met = BTreeMap::new();
    let blocks = rows
        .iter()
        .enumerate()
        .flat_map(|(number, row)| ids(row).into_iter().enumerate().map(move |(at, id)| (id, (number, at))));
    blocks.map(|(id, place)| met.insert(id, place)).collect()
}

/// Broken by: ids that meet or part, names of one key under another, a replay that reuses other blocks.
#[test]
fn an_anonymous_trace_reuses_what_the_trace_did() {
    let sandbox = sandbox();
    done(&sandbox, &format!("anonymize {CHAT} a.jsonl --key-file key"));
    done(&sandbox, &format!("anonymize {CHAT} again.jsonl --key-file key"));
    done(
        &sandbox,
        &format!(
            "anonymize {CHAT} dense.jsonl --key-file key --dense-ids --jitter-ms 100 --round-lengths 64"
        ),
    );
    let (before, after, dense) =
        (rows(&sandbox, CHAT), rows(&sandbox, "a.jsonl"), rows(&sandbox, "dense.jsonl"));
    assert_eq!(sharing(&before), sharing(&after));
    assert_eq!(sharing(&before), sharing(&dense));
    assert_eq!(sandbox.read("a.jsonl"), sandbox.read("again.jsonl"));
    let names = |rows: &[Value]| -> BTreeSet<String> {
        rows.iter().map(|row| row["session_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&before).len(), names(&after).len());
    assert!(names(&before).is_disjoint(&names(&after)));
    sandbox.write("key", "another key of enough bytes");
    done(&sandbox, &format!("anonymize {CHAT} other.jsonl --key-file key"));
    assert!(names(&rows(&sandbox, "other.jsonl")).is_disjoint(&names(&after)));
    let reused = |file: &str| {
        sandbox.replay(&format!("{file} --num-workers 2")).json()["prefix_cache_reused_ratio"].clone()
    };
    assert_eq!(reused(CHAT), reused("a.jsonl"));
    for name in ["a.jsonl", "dense.jsonl"] {
        assert!(!sandbox.read(name).contains(KEY) && !sandbox.read(name).contains("session-"));
    }
}

#[test]
fn without_a_key_nothing_is_written() {
    let sandbox = sandbox();
    sandbox.write("short", "too short");
    let mut said = String::new();
    for line in ["", " --key-file missing", " --key-file short", " --key-env NO_SUCH_VARIABLE"] {
        said += &refused(&sandbox, &format!("anonymize {CHAT} a.jsonl{line}"));
    }
    assert_snapshot!("keys", said);
    assert!(
        refused(&sandbox, &format!("anonymize {CHAT} a.jsonl --key-file key --jitter-ms=-1"))
            .contains("--jitter-ms")
    );
}

/// Broken by: a session of which a part is kept.
#[test]
fn slices_hold_whole_sessions() {
    let sandbox = sandbox();
    let before = rows(&sandbox, CHAT);
    let turns = |rows: &[Value]| -> BTreeMap<String, usize> {
        let mut turns = BTreeMap::new();
        rows.iter().for_each(|row| *turns.entry(row["session_id"].to_string()).or_default() += 1);
        turns
    };
    let all = turns(&before);
    let mut said = String::new();
    for choice in [
        "--from 10 --to 60",
        "--requests 20..40",
        "--sessions 7",
        "--sample 0.3 --seed 1",
        "--from 30 --sessions 3",
    ] {
        said += &format!("{choice}: {}", done(&sandbox, &format!("slice {CHAT} s.jsonl {choice}")).stderr);
        let kept = turns(&rows(&sandbox, "s.jsonl"));
        assert!(!kept.is_empty() && kept.len() < all.len(), "{choice}");
        assert!(kept.iter().all(|(session, turns)| all[session] == *turns), "{choice}");
    }
    assert_snapshot!("slices", said);
    for choice in
        ["--from 5 --to 5", "--requests 9..3", "--sample 0", "--sample 1.5", "--sessions 0", "--from 1e9"]
    {
        refused(&sandbox, &format!("slice {CHAT} t.jsonl {choice}"));
    }
}

#[test]
fn traces_are_scaled() {
    let sandbox = sandbox();
    let before = rows(&sandbox, CHAT);
    let starts =
        |rows: &[Value]| -> Vec<f64> { rows.iter().filter_map(|row| row["timestamp"].as_f64()).collect() };
    let sum = |rows: &[Value], key: &str| -> u64 { rows.iter().map(|row| row[key].as_u64().unwrap()).sum() };
    done(&sandbox, &format!("scale {CHAT} s.jsonl --rate 4"));
    let fast = rows(&sandbox, "s.jsonl");
    assert!(starts(&before).iter().zip(starts(&fast)).all(|(a, b)| a / 4.0 == b));
    assert_eq!(before[1]["delay"].as_f64().unwrap() / 4.0, fast[1]["delay"].as_f64().unwrap());
    done(&sandbox, &format!("scale {CHAT} s.jsonl --span 10 --keep-pauses"));
    let short = rows(&sandbox, "s.jsonl");
    assert_eq!(starts(&short).into_iter().fold(0.0, f64::max), 10_000.0);
    assert_eq!(before[1]["delay"], short[1]["delay"]);
    done(&sandbox, &format!("scale {CHAT} s.jsonl --copies 3"));
    let copies = rows(&sandbox, "s.jsonl");
    assert_eq!(copies.len(), 3 * before.len());
    let part = |n: usize| -> Vec<Value> { copies.iter().skip(n).step_by(3).cloned().collect() };
    assert!((0..3).all(|n| sharing(&part(n)) == sharing(&before)));
    assert_eq!(sharing(&copies).iter().flatten().count(), 3 * sharing(&before).iter().flatten().count());
    done(&sandbox, &format!("scale {CHAT} s.jsonl --depth 2 --output-scale 2"));
    let deep = rows(&sandbox, "s.jsonl");
    assert_eq!(sum(&deep, "input_length"), 2 * sum(&before, "input_length"));
    assert_eq!(sum(&deep, "output_length"), 2 * sum(&before, "output_length"));
    done(&sandbox, &format!("scale {CHAT} s.jsonl --input-scale 0.5"));
    assert_eq!(sandbox.run("trace lint s.jsonl").code, Some(0));
    for line in
        ["", "--rate 0", "--rate 1 --span 2", "--depth 2 --input-scale 2", "--copies 0", "--keep-pauses"]
    {
        refused(&sandbox, &format!("scale {CHAT} t.jsonl {line}"));
    }
}

#[test]
fn traces_are_merged() {
    let sandbox = sandbox();
    let other = "examples/single_turn.jsonl";
    done(&sandbox, &format!("merge {CHAT} {other} m.jsonl"));
    let (merged, a, b) = (rows(&sandbox, "m.jsonl"), rows(&sandbox, CHAT), rows(&sandbox, other));
    assert_eq!(merged.len(), a.len() + b.len());
    let blocks = |rows: &[Value]| -> BTreeSet<u64> { rows.iter().flat_map(ids).collect() };
    assert_eq!(blocks(&merged).len(), blocks(&a).len() + blocks(&b).len(), "ids are kept apart");
    let starts: Vec<f64> = merged.iter().filter_map(|row| row["timestamp"].as_f64()).collect();
    assert!(starts.is_sorted());
    done(&sandbox, &format!("merge {CHAT} {other} m.jsonl --same-ids"));
    assert_eq!(blocks(&rows(&sandbox, "m.jsonl")), &blocks(&a) | &blocks(&b));
    sandbox
        .write("late.csv", "Timestamp,Request tokens,Response tokens\n1700000000,100,5\n1700000001,100,5\n");
    done(&sandbox, "merge late.csv late.csv burstgpt:m.csv --align");
    assert_eq!(sandbox.read("m.csv").lines().nth(2), Some("0,,100,5,105"));
    done(&sandbox, &format!("merge late.csv {CHAT} m.jsonl --align --to mooncake"));
    assert_eq!(sandbox.run("trace lint m.jsonl").code, Some(0));
    let said = refused(&sandbox, &format!("merge {CHAT} t.jsonl"));
    assert!(said.contains("IN..."), "{said}");
}
