//! `wavetank trace replay` of a recording with bytes: at a pace, on devices, ended early.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::trace_again::{L2, bytes, json, run, sandbox};

/// A tier behind of the same size on a device.
fn tier(medium: &str) -> String {
    L2.replace(r#""type":"mock""#, medium).replace(r#""mock_bandwidth_gb":0.01,"#, "")
}

fn lines(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    sandbox.read(name).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Broken by: a decision that depends on bytes or on the pace, a device that keeps what was written.
#[test]
fn bytes_change_no_outcome() {
    let sandbox = sandbox();
    for medium in
        [r#""type":"memory""#, r#""type":"buffered","location":"d""#, r#""type":"direct","location":"d""#]
    {
        let tier = tier(medium);
        std::fs::create_dir_all(sandbox.path("d")).expect("a directory");
        run(&sandbox, &format!("x.lct {tier} --trace-output v.lct --jsonl-out v.jsonl --output v.json"), 0);
        let without = json(&sandbox, "v.json");
        assert!(without["measured"].is_null() && without["tally"]["hits_l2"].as_u64() > Some(0));
        for flags in ["--pace max --threads 3 --payload seeded", "--pace 20x"] {
            let files = "--trace-output p.lct --jsonl-out p.jsonl --output p.json";
            let text = run(&sandbox, &format!("x.lct {tier} {flags} {files}"), 0);
            let with = json(&sandbox, "p.json");
            assert_eq!(with["tally"], without["tally"], "{medium} {flags}");
            assert_eq!(with["measured"]["wrong"], 0);
            assert_eq!(with["measured"]["adapters"][0]["loaded"]["objects"], with["tally"]["hits_l2"]);
            assert!(text.contains("behind 1 loaded: "), "{text}");
            assert_eq!(text.contains("Pace: calls were begun "), flags.contains("20x"), "{text}");
            assert!(bytes(&sandbox, "p.lct") == bytes(&sandbox, "v.lct"), "{medium} {flags}");
            assert_eq!(sandbox.names_in("d"), [""; 0], "what was written is removed");
            let (p, v) = (lines(&sandbox, "p.jsonl"), lines(&sandbox, "v.jsonl"));
            let plain = |line: &Value| (line["at_s"].clone(), line["fates"].clone(), line["surplus"].clone());
            assert_eq!(p.iter().map(plain).collect::<Vec<_>>(), v.iter().map(plain).collect::<Vec<_>>());
            assert!(p.iter().any(|line| line["latency_ms"].as_f64() > Some(0.0)));
        }
    }
}

/// Broken by: bytes that are not compared, a device whose failure ends in success.
#[test]
fn other_bytes_than_were_written_are_a_failure() {
    let sandbox = sandbox();
    let medium = r#""type":"memory","wrappers":[{"type":"fault","bit_flip":1}]"#;
    let told = sandbox.run(&format!("trace replay x.lct {} --pace max --payload seeded", tier(medium)));
    assert_eq!(told.code, Some(1), "{}{}", told.stdout, told.stderr);
    assert!(
        told.stderr.contains("error: objects that did not come as they were written: "),
        "{}",
        told.stderr
    );
}

/// Broken by: stores or loads that a device failed and no count, no line or no exit code tells.
#[test]
fn what_a_device_fails_is_told() {
    let sandbox = sandbox();
    for (fault, complaint) in [
        ("write_error", "error: objects that a device failed to store: "),
        ("read_error", "error: objects that did not come as they were written: "),
    ] {
        std::fs::create_dir_all(sandbox.path("d")).expect("a directory");
        let medium =
            format!(r#""type":"buffered","location":"d","wrappers":[{{"type":"fault","{fault}":1}}]"#);
        let line = format!("trace replay x.lct {} --pace max --output f.json", tier(&medium));
        let told = sandbox.run(&line);
        assert_eq!(told.code, Some(1), "{fault}: {}{}", told.stdout, told.stderr);
        assert!(told.stderr.contains(complaint), "{fault}: {}", told.stderr);
        let report = json(&sandbox, "f.json");
        let moved = |way: &str| report["measured"]["adapters"][0][way]["errors"].as_u64().expect("a count");
        let (unstored, unloaded) = (moved("stored"), moved("loaded"));
        assert_eq!(unstored > 0, fault == "write_error", "{fault}");
        assert!(unloaded > 0, "{fault}");
        let line = format!("Devices failed to store {unstored} objects and to load {unloaded}: ");
        assert!(told.stdout.contains(&line), "{}", told.stdout);
        let line = format!("; of these {unloaded} did not come from the device\n");
        assert!(told.stdout.contains(&line), "{}", told.stdout);
        // The same calls without bytes fail less.
        run(&sandbox, &format!("x.lct {L2} --output v.json"), 0);
        let failed = |report: &Value| report["failed"].as_u64().expect("a count");
        assert!(failed(&report) > failed(&json(&sandbox, "v.json")), "{}", told.stdout);
    }
}

/// Broken by: a sleep that nobody ends, a partial result that is thrown away or not called one.
#[test]
fn it_can_be_ended_early() {
    let sandbox = sandbox();
    std::fs::create_dir_all(sandbox.path("d")).expect("a directory");
    let tier = tier(r#""type":"buffered","location":"d""#);
    let line = format!("trace replay x.lct {tier} --pace 0.1x --trace-output p.lct --output p.json");
    let mut running = sandbox.start(&line, Stdio::null());
    let has_objects = |digit: char| {
        let folder = sandbox.path(&format!("d/wavetank.calls-0/wavetank.store/{digit}"));
        std::fs::read_dir(folder).is_ok_and(|mut objects| objects.next().is_some())
    };
    running.wait_for("something written", || "0123456789abcdef".chars().any(has_objects));
    running.interrupt();
    let ended = running.finish(Duration::from_secs(20));
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("It was ended before the recording was.\n"), "{}", ended.stdout);
    let report = json(&sandbox, "p.json");
    assert_eq!((&report["measured"]["interrupted"], &report["partial"]), (&true.into(), &true.into()));
    assert_eq!(sandbox.names_in("d"), [""; 0]);
    run(&sandbox, "p.lct --strict", 0);
}
