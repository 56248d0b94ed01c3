//! `wavetank bench suite`: every scenario in seconds, its files, and what is left after an interruption.

use std::fs;
use std::time::Duration;

use calamine::{Reader, Xlsx, open_workbook};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{Seat, Stand, invariants, keys, list};
use crate::sandbox::Run;

/// A suite of seconds that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(180);
/// The ten scenarios that compare tiers and loads, in seconds, with a modelled GPU.
const TEN: &str = "suite --quick --gpu-tier sim --only comparison --cache-dir cache --output out";
const NAMES: [&str; 13] = [
    "gpu-only",
    "cpu-only",
    "storage-only",
    "gpu-cpu",
    "cpu-storage",
    "gpu-cpu-storage",
    "storage-saturation",
    "production",
    "autoscale",
    "capacity-autoscale",
    "mlperf-stress-8b",
    "mlperf-throughput-8b",
    "mlperf-stress-70b",
];

fn suite(stand: &Stand, line: &str) -> Run {
    let _seat = Seat::take();
    stand.start(line).finish(LIMIT)
}

/// What is the same each time: rows without numbers and rules, sentences without what they say.
fn masked(stand: &Stand, text: &str) -> String {
    let mut lines = Vec::new();
    let mut says = false;
    for line in stand.sandbox.steady(text).lines() {
        let cells = line.split(['│', '┃']).map(str::trim);
        let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
        says = match line {
            "What this says" => true,
            _ => says && line.starts_with("  "),
        };
        let (name, said) = line.split_once(": ").unwrap_or((line, ""));
        match line.chars().next() {
            Some('┏' | '┡' | '└') => {}
            Some('│') => lines.push(cells.into_iter().map(mask).collect::<Vec<_>>().join(" ")),
            Some('┃') => lines.push(cells.join(" | ")),
            _ if says => {}
            Some(' ') if said.starts_with("skipped") || said.starts_with("failed") => {
                lines.push(line.to_owned());
            }
            Some(' ') => lines.push(format!("{name}: …")),
            _ if ["Processor", "Memory", "Kernel", "GPU", "Cache directory", "Not taken"].contains(&name) => {
                lines.push(format!("{name}: …"));
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.dedup();
    lines.join("\n")
}

/// A cell that differs from run to run.
fn mask(cell: &str) -> &str {
    let is_name = NAMES.contains(&cell);
    let differs = cell.contains(|c: char| c.is_ascii_digit() || c == '/') || cell == "-";
    if !is_name && (differs || ["PASS", "FAIL", "N/A"].contains(&cell)) { "#" } else { cell }
}

fn statuses(stand: &Stand) -> Vec<(String, String)> {
    let summary = stand.sandbox.report("out/summary.json").json();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    list(&summary, "/scenarios").iter().map(|row| (text(&row["name"]), text(&row["status"]))).collect()
}

fn sheets(stand: &Stand) -> Vec<String> {
    let book: Xlsx<_> = open_workbook(stand.sandbox.path("out/summary.xlsx")).expect("a workbook");
    book.sheet_names()
}

/// Broken by: a scenario that is left out, numbers of one that did not run, or files left behind.
#[test]
fn every_scenario_in_seconds() {
    let stand = Stand::new();
    let line = "suite --quick --gpu-tier sim --cache-dir cache";
    let before = stand.sandbox.names_in("");
    let planned = stand.run(&format!("{line} --dry-run"));
    assert_eq!((planned.code, planned.stderr.as_str()), (Some(0), ""));
    for name in NAMES {
        let own = format!("/cache/wavetank_suite_{name} ");
        assert!(planned.stdout.contains(&own), "{name}: {}", planned.stdout);
    }
    assert!(planned.stdout.contains("\n13 scenarios, at most about 21 s\n"), "{}", planned.stdout);
    assert_eq!(stand.sandbox.names_in(""), before, "a dry run writes nothing");
    let run = suite(&stand, &format!("{line} --output out"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    stand.is_clean("a suite");
    assert!(run.stderr.starts_with("wavetank bench suite (quick): 13 scenarios, about "), "{}", run.stderr);
    assert!(run.stderr.contains("\n[4/13] gpu-cpu: "), "{}", run.stderr);
    assert_snapshot!(masked(&stand, &run.stdout));
    assert_eq!(statuses(&stand), NAMES.map(|name| (name.to_owned(), "done".to_owned())));
    assert_eq!(sheets(&stand)[2..], NAMES);
    for (number, name) in (1..).zip(NAMES) {
        let report = stand.sandbox.report(&format!("out/{number:02}-{name}.json")).json();
        keys::check(&report, name);
        invariants::check(&report, name);
        assert_eq!(report["suite"], json!({ "scenario": name, "quick": true }));
    }
    let summary = stand.sandbox.report("out/summary.json").json();
    for (number, row) in (1..).zip(list(&summary, "/scenarios")) {
        let trials = list(row, "/trial_reports");
        assert_eq!(trials.len(), if number > 10 { 3 } else { 0 }, "{row}");
        for file in trials {
            let report = stand.sandbox.report(&format!("out/{}", file.as_str().expect("a name"))).json();
            assert_eq!(
                (&report["trial"]["of"], &report["suite"]["quick"]),
                (&3.into(), &true.into()),
                "{file}"
            );
        }
    }
    // A suite that has ended is shown again, and nothing is run.
    let again = suite(&stand, "suite --resume out");
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    assert_eq!(again.stdout, run.stdout);
}

/// Broken by: a signal that kills the process, an interrupted scenario that is counted, one that is lost or
/// run twice, or entries that stay.
#[test]
fn an_interrupted_suite_goes_on() {
    let stand = Stand::new();
    let seat = Seat::take();
    let mut running = stand.start(TEN);
    running.wait_for("the fourth scenario", || {
        stand.sandbox.path("cache/wavetank_suite_gpu-cpu/wavetank.store").exists()
    });
    running.interrupt();
    let run = running.finish(LIMIT);
    drop(seat);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    stand.is_clean("an interrupted suite");
    assert!(run.stdout.starts_with("wavetank bench suite (quick) (partial)\n"), "{}", run.stdout);
    let hint = "interrupted: what is missing is run by: wavetank bench suite --resume out\n";
    assert!(run.stderr.ends_with(hint), "{}", run.stderr);
    let expected = |at: usize| match at {
        ..3 => "done",
        3 => "interrupted",
        _ => "not_run",
    };
    let found: Vec<String> = statuses(&stand).into_iter().map(|(_, status)| status).collect();
    assert_eq!(found, (0..10).map(expected).collect::<Vec<_>>());
    assert_eq!(sheets(&stand).len(), 12);
    assert!(stand.sandbox.path("out/04-gpu-cpu.partial.json").exists());
    let first = stand.sandbox.read("out/01-gpu-only.json");
    refusals(&stand);

    let rest = suite(&stand, "suite --resume out");
    assert_eq!(rest.code, Some(0), "{}", rest.stderr);
    stand.is_clean("a suite that went on");
    assert!(rest.stderr.starts_with("wavetank bench suite (quick): 7 scenarios, about "), "{}", rest.stderr);
    let done: Vec<_> = NAMES[..10].iter().map(|name| ((*name).to_owned(), "done".to_owned())).collect();
    assert_eq!(statuses(&stand), done);
    assert_eq!(stand.sandbox.read("out/01-gpu-only.json"), first, "what was done is not run again");
    let left = stand.sandbox.names_in("out");
    assert!(
        !left.iter().any(|name| name.contains("part")),
        "whole reports take the place of others: {left:?}"
    );
}

/// What an unfinished suite is not gone on with.
fn refusals(stand: &Stand) {
    let refused = |line: &str| {
        let run = stand.run(line);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}: {}", run.stderr);
        run.stderr
    };
    let typed = refused("suite --resume out -t 5");
    assert!(typed.starts_with("error: --resume: the suite's plan is complete\n"), "{typed}");
    let taken = refused(TEN);
    assert!(taken.ends_with("holds the results of a suite\nhint: go on with it: --resume out\n"), "{taken}");
    let nothing = refused("suite --resume cache");
    assert!(nothing.contains("--resume takes the folder of a suite"), "{nothing}");
    let record = stand.sandbox.read("out/suite.json");
    for (change, said) in [
        (("\"cores\": ", "\"cores\": 1"), "this is not the machine the suite was begun on: cores: "),
        (("\"wavetank_version\": \"", "\"wavetank_version\": \"9."), "begun by wavetank 9."),
    ] {
        stand.sandbox.write("out/suite.json", record.replace(change.0, change.1));
        let refusal = refused("suite --resume out");
        assert!(refusal.contains(said), "{refusal}");
    }
    let gone = record.replace("/cache\"", "/gone\"").replace("/cache/", "/gone/");
    stand.sandbox.write("out/suite.json", gone);
    let refusal = refused("suite --resume out");
    assert!(refusal.contains("the cache directory is gone: "), "{refusal}");
    stand.sandbox.write("out/suite.json", record);
}

/// Broken by: a failure that ends the suite, that is not told, or that is taken for success.
#[test]
fn what_fails_or_is_skipped_is_said_and_the_rest_runs() {
    let stand = Stand::new();
    // A file where the store's directory would be.
    stand.sandbox.write("cache/wavetank_suite_cpu-only/wavetank.store", "not ours");
    let line = "suite tiny-1b --quick --gpu-tier off -w GPU,cpu_only,storage -c cache --output out";
    let run = suite(&stand, line);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert_snapshot!(masked(&stand, &run.stdout));
    let hint = "scenarios failed: what is missing is run by: wavetank bench suite --resume out\n";
    assert!(run.stderr.ends_with(hint), "{}", run.stderr);
    assert_eq!(stand.sandbox.read("cache/wavetank_suite_cpu-only/wavetank.store"), "not ours");
    fs::remove_dir_all(stand.sandbox.path("cache/wavetank_suite_cpu-only")).expect("it can be removed");
    stand.is_clean("a failed suite");
    let rest = suite(&stand, "suite --resume out --quiet");
    assert_eq!((rest.code, rest.stderr.as_str()), (Some(0), ""));
    let found: Vec<String> = statuses(&stand).into_iter().map(|(_, status)| status).collect();
    assert_eq!(found, ["skipped", "done", "done"]);
    stand.is_clean("a suite that went on");
    damaged(&stand);
}

/// Broken by: a report of no use that blocks the suite for good, or is taken for a result.
fn damaged(stand: &Stand) {
    let whole = stand.sandbox.read("out/03-storage-only.json");
    stand.sandbox.write("out/02-cpu-only.json", "{}");
    let run = suite(stand, "suite --resume out --quiet");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.contains("Warning: run again: "), "{}", run.stdout);
    assert!(run.stdout.contains("02-cpu-only.json: \"summary.total_requests\" is not"), "{}", run.stdout);
    keys::check(&stand.sandbox.report("out/02-cpu-only.json").json(), "a report that was lost");
    assert_eq!(stand.sandbox.read("out/03-storage-only.json"), whole, "only what was lost is run again");
}

/// Being told to terminate is the same; directories that were made for the suite go with it.
#[test]
fn a_terminated_suite_leaves_no_directory() {
    let stand = Stand::new();
    let _seat = Seat::take();
    let line = "suite --quick --gpu-tier off -w cpu,storage -t 300 -c made/for/it --output out";
    let mut running = stand.start(line);
    running.wait_for("the first scenario", || {
        stand.sandbox.path("made/for/it/wavetank_suite_cpu-only/wavetank.store").exists()
    });
    running.terminate();
    let run = running.finish(LIMIT);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(!stand.sandbox.path("made").exists());
    let found: Vec<String> = statuses(&stand).into_iter().map(|(_, status)| status).collect();
    assert_eq!(found, ["interrupted", "not_run"]);
}
