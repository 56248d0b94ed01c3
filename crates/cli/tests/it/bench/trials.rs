//! Several runs of one plan: how many there are, what they agree on, and what is done between them.

use std::time::Duration;

use serde_json::Value;

use super::{SMALL, Seat, Stand, list, number};

/// Ten requests, as fast as they go.
const TEN: &str = "--cpu-mem-gb 0 --num-users 4 --generation-mode none --max-requests 10 --duration 30 \
    --output r.json";

fn line(flags: &str) -> String {
    format!("{} {TEN} {flags}", SMALL.replace("--duration 1 ", ""))
}

fn rows(report: &Value) -> Vec<f64> {
    let rows = list(report, "/trials/trials");
    assert!(rows.iter().all(|row| row["requests_completed"] == 10), "{rows:?}");
    rows.iter().map(|row| number(row, "/primary_metric")).collect()
}

/// Broken by: ending early, reporting another trial than the median, files left between trials.
#[test]
fn trials_are_compared() {
    let stand = Stand::new();
    let run = stand.run(&line("--trials 3"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let told = run.stdout.lines().find(|line| line.starts_with("Trials: 3, ")).expect("a line about them");
    assert!(["median", "MAD", "CV", "P95", "P99"].iter().all(|word| told.contains(word)), "{told}");
    let report = stand.sandbox.report("r.json").json();
    let trials = &report["trials"];
    assert_eq!(
        (&trials["asked_for"], &trials["run"], &trials["compared"]),
        (&3.into(), &3.into(), &3.into())
    );
    let values = rows(&report);
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(number(trials, "/agreement/median"), sorted[1]);
    assert_eq!(number(trials, "/agreement/p95"), sorted[2]);
    let reported = trials["reported"].as_u64().expect("a trial") as usize;
    assert_eq!(values[reported - 1], sorted[1], "the median trial is reported");
    assert_eq!(number(&report, "/summary/primary_metric/value"), sorted[1]);
    let p95 = list(trials, "/trials").iter().map(|row| number(row, "/end_to_end_p95_ms")).collect::<Vec<_>>();
    assert_eq!(list(trials, "/agreement_by_number/end_to_end_p95_ms/values").len(), p95.len());
    stand.is_clean("trials");
}

/// Broken by: `auto` that ignores the interval or its limit, a disagreement that is not told.
#[test]
fn auto_ends_when_trials_agree() {
    let stand = Stand::new();
    let soon = stand.run(&line("--trials auto --trials-ci 100 --trials-max 9"));
    assert_eq!(soon.code, Some(0), "{}", soon.stderr);
    let report = stand.sandbox.report("r.json").json();
    let run = report["trials"]["run"].as_u64().expect("a number");
    assert!((3..=9).contains(&run));
    if run < 9 {
        assert!(number(&report, "/trials/agreement/ci95_percent") <= 100.0);
    }
    let never = stand.run(&line("--trials auto --trials-ci 0.1 --trials-max 4"));
    assert_eq!(never.code, Some(0), "{}", never.stderr);
    let report = stand.sandbox.report("r.json").json();
    let half = number(&report, "/trials/agreement/ci95_percent");
    if half > 0.1 {
        assert_eq!(report["trials"]["run"], 4);
        assert!(never.stdout.contains("after 4 trials they do not agree within 0.1 %"), "{}", never.stderr);
    }
    stand.is_clean("auto");
}

/// Broken by: silence about runs that cannot be compared.
#[test]
fn too_few_trials_are_told() {
    let stand = Stand::new();
    let one = stand.run(&line(""));
    assert!(one.stdout.contains("\nTrials: 1 trial says nothing about the spread"), "{}", one.stdout);
    let two = stand.run(&line("--trials 2"));
    let said = two.stdout.matches("2 trials say nothing about the spread").count();
    assert_eq!(said, 1, "it is said, and once: {}", two.stdout);
    assert!(two.stdout.contains(": too few trials to tell\n"), "{}", two.stdout);
}

/// Broken by: sleeping through Ctrl-C, or losing the trial before the pause.
#[test]
fn a_pause_between_trials_can_be_interrupted() {
    let stand = Stand::new();
    let _seat = Seat::take();
    let users = "--cpu-mem-gb 0 --num-users 4 --generation-mode none --output r.json";
    let mut running = stand.start(&format!("{SMALL} {users} --trials 2 --cooldown 3600"));
    running.wait_for("an entry", || stand.entries() > 0);
    running.wait_for("the pause", || stand.entries() == 0);
    running.interrupt();
    let run = running.finish(Duration::from_secs(20));
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(run.stderr.contains("cooling down for 3600 s"), "{}", run.stderr);
    let report = stand.sandbox.report("r.json").json();
    assert_eq!((&report["partial"], &report["trials"]["run"]), (&false.into(), &1.into()));
    assert!(run.stdout.contains("the numbers are those of the trials that had ended"), "{}", run.stderr);
    stand.is_clean("a pause");
}
