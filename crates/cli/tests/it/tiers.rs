//! `--tier`: what is typed, what the plan holds, and what is refused.
//!
//! Breaks when a part of the grammar is read otherwise or passes unseen, or a plan needs its files again.

use serde_json::{Value, json};

use crate::sandbox::{GOOD_ROW, Sandbox};

const KV: &str = r#"--extra-engine-args {"kv_bytes_per_token":1000}"#;

fn sandbox() -> Sandbox {
    Sandbox::with_trace(&[GOOD_ROW])
}

fn tiers(report: &Value) -> &Value {
    &report["plan"]["simulation"]["engine"]["tiers"]
}

#[test]
fn every_part_of_the_grammar_is_refused_by_name() {
    let sandbox = sandbox();
    sandbox.write("tiers.toml", "[[tier]]\nname = 'a'\ncapacity = '1G'\nspeed = 3\n");
    for (tier, expected) in [
        ("64GiB", "error: --tier 64GiB: a tier begins with NAME=: \"64GiB\"\nhint: NAME=CAPACITY:MEDIUM"),
        ("cpu=64GiB", "error: --tier cpu=64GiB: no :MEDIUM after the capacity"),
        ("cpu=64:1GB/s", "error: --tier cpu=64:1GB/s: no tier: \"capacity\": must be a number and a unit"),
        (
            "cpu=1G:nvme.toml",
            "error: --tier cpu=1G:nvme.toml: no tier: \"medium\": \"nvme.toml\" is no medium",
        ),
        (
            "cpu=1G:queued",
            "error: --tier cpu=1G:queued: no tier: \"medium\": medium \"queued\": missing field",
        ),
        (
            "cpu=1G:1GB/s,fast",
            "error: --tier cpu=1G:1GB/s,fast: unknown option \"fast\"\nhint: known: shared",
        ),
        ("cpu=1G:1GB/s,shared,load=overlap", "error: --tier cpu: loads from a shared tier cannot overlap"),
        ("gpu=1G:1GB/s", "error: --tier: \"gpu\" is no name of a tier"),
        (
            "@tiers.toml",
            "error: tiers.toml: tier 1: no tier:\n  - unknown key \"speed\"\n  - \"medium\" is missing",
        ),
        ("@none.toml", "error: none.toml: cannot open"),
    ] {
        let message = sandbox.refuse(&format!("trace.jsonl {KV} --tier {tier}"));
        assert!(message.starts_with(expected), "{tier}: {message}");
        assert!(message.contains("\nhint: "), "{tier}: {message}");
    }
}

#[test]
fn what_has_no_tiers_says_so() {
    let sandbox = sandbox();
    let tier = "--tier cpu=1GiB:1GB/s";
    let bytes = sandbox.refuse(&format!("trace.jsonl {tier}"));
    assert!(bytes.contains("\"kv_bytes_per_token\", or \"model\""), "{bytes}");
    let online = sandbox.refuse(&format!("trace.jsonl {KV} {tier} --replay-mode online"));
    assert!(online.starts_with("error: --tier: live workers have no tiers"), "{online}");
    let keys = r#"{"kv_bytes_per_token":1000,"num_g2_blocks":100}"#;
    let both = sandbox.refuse(&format!("trace.jsonl --extra-engine-args {keys} {tier}"));
    assert!(both.starts_with("error: --tier: cannot be combined with \"num_g2_blocks\""), "{both}");
    let mock = sandbox.run(&format!("mock --port 0 --extra-engine-args {keys}"));
    assert_eq!(mock.code, Some(2), "{}", mock.stderr);
    assert!(mock.stderr.contains("live workers have no tiers"), "{}", mock.stderr);
}

/// Broken by: a report without its tiers, a plan that gives another report, or one that lost its profile.
#[test]
fn a_plan_with_tiers_runs_again() {
    let sandbox = sandbox();
    sandbox.write("medium.toml", "name = 'constant'\nlatency_us = 50\ngbps = 4\n");
    let flags = "--tier cpu=1GiB:32GB/s --tier disk=1TiB:medium.toml,shared,write=through";
    let first = sandbox.run(&format!("replay trace.jsonl {KV} {flags} --report-json first.json"));
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stdout.contains("Break-even: loading from disk"), "{}", first.stdout);
    assert!(!first.stderr.contains("warning"), "{}", first.stderr);
    std::fs::remove_file(sandbox.path("medium.toml")).unwrap();
    let again = sandbox.run("replay --plan first.json --report-json again.json");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let read = |name: &str| -> Value {
        let mut report: Value = serde_json::from_str(&sandbox.read(name)).unwrap();
        report.as_object_mut().unwrap().remove("wall");
        report
    };
    let (first, again) = (read("first.json"), read("again.json"));
    assert_eq!(first, again);
    assert_eq!(tiers(&first)[1]["medium"], json!({ "name": "constant", "latency_us": 50, "gbps": 4 }));
    let names: Vec<&Value> =
        first["tiers"]["tiers"].as_array().unwrap().iter().map(|tier| &tier["name"]).collect();
    assert_eq!(names, ["cpu", "disk"]);
}

/// Broken by: a report that changed for those who have no tiers.
#[test]
fn without_tiers_nothing_is_said_of_them() {
    let sandbox = sandbox();
    let run = sandbox.run("replay trace.jsonl --report-json plain.json");
    assert!(!run.stdout.contains("Tiers") && !sandbox.read("plain.json").contains("tier"), "{}", run.stdout);
}

#[test]
fn keys_of_the_reference_are_shown_as_tiers() {
    let sandbox = sandbox();
    let keys = r#"{"kv_bytes_per_token":1000,"num_g2_blocks":100,"num_g3_blocks":200}"#;
    sandbox.write("engine.json", keys);
    let run = sandbox.run("replay trace.jsonl --extra-engine-args @engine.json --report-json r.json");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report: Value = serde_json::from_str(&sandbox.read("r.json")).unwrap();
    let names: Vec<&Value> = tiers(&report).as_array().unwrap().iter().map(|tier| &tier["name"]).collect();
    assert_eq!(names, ["g2", "g3"]);
    assert_eq!(tiers(&report)[0]["capacity_bytes"], 6_400_000);
}

/// Broken by: an axis inside a tier that does not reach the plan, or a file that is not beside the spec.
#[test]
fn a_sweep_varies_tiers() {
    let sandbox = sandbox();
    sandbox.write("specs/medium.toml", "name = 'constant'\ngbps = 4\n");
    sandbox.write(
        "specs/sweep.toml",
        "[base]\ntrace = '../trace.jsonl'\nextra_engine_args = { kv_bytes_per_token = 1000 }\n\
         tier = ['cpu=1GiB:32GB/s', 'disk=1TiB:medium.toml']\n[axes]\n\
         'tier.cpu.capacity' = ['1GiB', '2GiB']\n'tier.disk.medium.gbps' = [4, 8]\n",
    );
    let run = sandbox.run("sweep specs/sweep.toml -o rows.csv");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rows = sandbox.read("rows.csv");
    let hashes: std::collections::BTreeSet<&str> =
        rows.lines().skip(1).filter_map(|row| row.split(',').nth(1)).collect();
    assert_eq!(hashes.len(), 4, "{rows}");
}
