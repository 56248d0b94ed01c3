//! Recordings of calls on the store: where they are, what is in them, and what is left of one whose process
//! was killed.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{SMALL, Seat, Stand, list, number};
use crate::sandbox::Sandbox;

/// Entries are booked, as fast as that goes.
const FAST: &str = "--model tiny-1b --config scaled.yaml --gpu-mem-gb 0 --cpu-mem-gb 0.05 --backend null \
    --storage-capacity-gb 0.2 --generation-mode none --num-users 8 --io-threads 2 --warmup 0";
const SOON: Duration = Duration::from_secs(20);

fn info(sandbox: &Sandbox, file: &str) -> Value {
    let run = sandbox.run(&format!("trace info {file} --json"));
    assert_eq!(run.code, Some(0), "{file}: {}", run.stderr);
    serde_json::from_str(&run.stdout).expect("JSON")
}

/// Whole frames after the header, and whether there is part of another.
fn frames(path: &Path) -> (u64, bool) {
    let bytes = fs::read(path).expect("a recording");
    let (mut at, mut count) = (0, 0);
    while let Some((length, _)) = bytes[at..].split_first_chunk::<4>() {
        let end = at + 4 + u32::from_be_bytes(*length) as usize;
        if end > bytes.len() {
            break;
        }
        (at, count) = (end, count + 1);
    }
    (u64::saturating_sub(count, 1), at < bytes.len())
}

/// Broken by: a recording that is not where it is said to be, holds something else than the report counts, or
/// says nothing of the store it was made on.
#[test]
fn a_benchmark_is_recorded() {
    let stand = Stand::new();
    let line = SMALL.replace("--duration 1", "--duration 60 --max-requests 40 --warmup 0");
    let flags = "--cpu-mem-gb 0.05 --num-users 4 --generation-mode none --trace-output c.lct";
    let run = stand.run(&format!("{line} {flags} --output r.json"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("recording calls on the store in c.lct\n"), "{}", run.stderr);
    let report = stand.sandbox.report("r.json").json();
    let calls = number(&report, "/recording/calls");
    assert!(
        run.stdout.contains(&format!("Recorded {calls} calls on the store, 0 lost: c.lct\n")),
        "{}",
        run.stdout
    );
    assert_eq!(
        (&report["recording"]["files"][0], &report["recording"]["lost"]),
        (&"c.lct".into(), &0.into())
    );
    let info = info(&stand.sandbox, "c.lct");
    assert_eq!(number(&info, "/total_records"), calls);
    let cache = |name: &str| number(&report, &format!("/summary/cache_stats/{name}"));
    let of = |name: &str| number(&info, &format!("/recorded/{name}"));
    assert_eq!(of("hit_first_tier") + of("hit_lower_tier"), cache("cache_hits"));
    assert_eq!(of("absent"), cache("cache_misses"));
    assert_eq!(info["level_meta"]["recorder"], "wavetank bench");
    assert_eq!(info["config"]["digest_is_right"], true);
    let tiers = list(&info, "/config/canonical/wavetank/tiers");
    assert_eq!((tiers.len(), &tiers[1]["backend"]), (2, &"direct".into()));
}

/// Broken by: a name without the process and the time, or in another place than is said.
#[test]
fn without_a_name_it_is_among_temporary_files() {
    let stand = Stand::new();
    let run = stand.run(&format!(
        "{FAST} --duration 60 --max-requests 100 --trace-level storage --trace-rotate-mb 0.5 --quiet"
    ));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let names = stand.sandbox.names_in("");
    let ours: Vec<&String> = names.iter().filter(|name| name.starts_with("wavetank-trace-")).collect();
    let second = ours.iter().find(|name| name.ends_with(".2.lct")).expect("it goes on in another file");
    let first = ours.last().expect("there are some");
    let place = stand.sandbox.path(first).display().to_string();
    assert!(run.stderr.contains(&format!("recording calls on the store in {place}\n")), "{}", run.stderr);
    assert_eq!(info(&stand.sandbox, second)["part"], 2);
}

#[test]
fn what_is_not_recorded_is_said_before_the_run() {
    let stand = Stand::new();
    for (flags, said) in [
        ("--trace-level events", "--trace-level: recordings of level events are read, not written"),
        ("--trace-cap-mb 5", "--trace-cap-mb: nothing is recorded"),
        ("--trace-output c.csv", "a recording is called .lct"),
        ("--trace-output scaled.yaml/c.lct", "cannot write"),
        ("--trace-output r.lct --output r.lct", "is the same file as --output"),
    ] {
        let run = stand.run(&format!("{FAST} --duration 1 {flags}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{flags}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{flags}: {}", run.stderr);
    }
}

/// Broken by: a signal that ends the process before what was noted is written.
#[test]
fn a_recording_is_closed_by_a_signal() {
    for file in ["t.lct", "t.lct.zst"] {
        let stand = Stand::new();
        let _seat = Seat::take();
        let mut running =
            stand.start(&format!("{FAST} --duration 300 --trace-output {file} --output r.json --quiet"));
        let path = stand.sandbox.path(file);
        running.wait_for("records", || fs::metadata(&path).is_ok_and(|file| file.len() > 50_000));
        running.terminate();
        let run = running.finish(SOON);
        assert_eq!(run.code, Some(130), "{}", run.stderr);
        let (info, report) = (info(&stand.sandbox, file), stand.sandbox.report("r.json").json());
        assert_eq!(info["left_out"]["cut_at"], Value::Null, "{file}");
        assert_eq!(number(&info, "/left_out/lost_calls"), number(&report, "/recording/lost"));
        let gaps = info["operations"]["wavetank.gap"].as_f64().unwrap_or(0.0);
        assert_eq!(number(&info, "/total_records") - gaps, number(&report, "/recording/calls"), "{file}");
    }
}

/// Kills recordings at moments further and further from their beginning. Every frame that is whole is a
/// record that is read, and no more than one is not whole. Gives records read, and cut frames.
fn killed(times: u64) -> (u64, u64) {
    let (mut records, mut cuts) = (0, 0);
    for time in 0..times {
        let stand = Stand::new();
        let _seat = Seat::take();
        let mut running = stand.start(&format!("{FAST} --duration 300 --trace-output k.lct --quiet"));
        let path = stand.sandbox.path("k.lct");
        let least = time % 25 * 10_000;
        running.wait_for("records", || fs::metadata(&path).is_ok_and(|file| file.len() > least));
        thread::sleep(Duration::from_millis(time * 7 % 60));
        drop(running);
        let (whole, is_cut) = frames(&path);
        let info = info(&stand.sandbox, "k.lct");
        assert_eq!(number(&info, "/total_records") as u64, whole, "kill {time}");
        assert_eq!(info["left_out"]["cut_at"] != Value::Null, is_cut, "kill {time}");
        assert!(list(&info, "/left_out/damaged").is_empty() && list(&info, "/left_out/unknown").is_empty());
        records += whole;
        cuts += u64::from(is_cut);
    }
    (records, cuts)
}

/// Broken by: a frame written in two parts, one of which a kill leaves behind in the middle of the file.
#[test]
fn what_a_killed_process_recorded_is_readable() {
    let (records, _) = killed(4);
    assert!(records > 100, "{records}: the last one has 30 KB");
}

#[test]
#[ignore = "takes a minute"]
fn what_a_hundred_killed_processes_recorded_is_readable() {
    let (records, cuts) = killed(100);
    println!("100 kills: {records} whole records, all read; {cuts} files end within a frame");
    assert!(records > 0);
}
