//! Ctrl-C: the run ends soon and writes what it has.
//!
//! Breaks when the signal kills the process, is not looked at during a run, or a partial report does not say
//! that it is one.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::sandbox::{Sandbox, WAVETANK};

const WARM_UP: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(10);

/// Minutes of work: preemptions in a small cache, and no queue that grows.
const LONG: &str = "replay --input-tokens 2000 --output-tokens 200 --request-count 100000000 \
    --replay-concurrency 64 --extra-engine-args {\"num_gpu_blocks\":200} --report-json r.json \
    --per-request-jsonl q.jsonl";

#[test]
fn a_partial_report_is_written_and_says_so() {
    let sandbox = Sandbox::empty();
    let mut running = sandbox.start(LONG, Stdio::null());
    thread::sleep(WARM_UP);
    assert!(!running.has_ended(), "the run is long enough to be interrupted");
    running.interrupt();
    let run = running.finish(SOON);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(run.stdout.starts_with("wavetank replay (partial)\n"), "{}", run.stdout);
    assert!(run.stdout.ends_with("\nSaved full report to: r.json\n"), "{}", run.stdout);
    let report = sandbox.report("r.json");
    assert_eq!(report.json()["partial"], true);
    let warning = "interrupted: the numbers cover what had happened by then";
    assert_eq!(report.json()["warnings"][0], warning);
    assert!(run.stderr.contains(&format!("warning: {warning}\n")), "{}", run.stderr);
    let completed = report.count("/counts/completed");
    assert!(completed > 0);
    assert_eq!(report.count("/counts/arrived"), completed + report.count("/counts/in_flight"));
    assert_eq!(sandbox.read("q.jsonl").lines().count() as u64, completed);
}

/// Broken by: a handler for hangups in place of whoever wanted them to be ignored, or no end for others.
#[test]
fn a_hangup_is_ignored_if_it_was_before() {
    let sandbox = Sandbox::empty();
    for (how, is_outliving) in [("--ignore-signal=HUP", true), ("--default-signal=HUP", false)] {
        let mut command = Command::new("env");
        command.args([how, WAVETANK]);
        let mut running = sandbox.spawn(command, LONG, Stdio::null());
        thread::sleep(WARM_UP);
        running.hang_up();
        if is_outliving {
            thread::sleep(WARM_UP);
            assert!(!running.has_ended(), "who was started with nohup goes on");
            running.interrupt();
        }
        let run = running.finish(6 * SOON);
        assert_eq!(run.code, Some(130), "{how}: {}", run.stderr);
        assert_eq!(sandbox.report("r.json").json()["partial"], true);
    }
}

#[test]
fn waiting_for_standard_input_ends_too() {
    let sandbox = Sandbox::empty();
    // The write end of the pipe stays open in this process, so the command waits for its first row.
    let running = sandbox.start("replay -", Stdio::piped());
    thread::sleep(WARM_UP);
    running.interrupt();
    let run = running.finish(SOON);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert_eq!(sandbox.names_in(""), [""; 0], "there is nothing to write");
}
