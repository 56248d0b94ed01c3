//! What went to the drive: a job for fio, run by fio where it is installed; what bpftrace saw where it may.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::{BOOKED, LIMIT, SMALL, Seat, Stand, list, number};

/// Ends after a second or two, with pauses.
const LOAD: &str = "--num-users 4 --cpu-mem-gb 0 --generation-mode fast";

/// `program` if it is there. Else the test is skipped, unless this run has to have it.
fn installed(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file());
    if found.is_none() {
        let required = std::env::var_os("WAVETANK_REQUIRE_PEERS").is_some_and(|value| value == "1");
        assert!(!required, "{program} is not installed, and WAVETANK_REQUIRE_PEERS is 1");
    }
    found
}

/// The value of an option of a job.
fn option<'j>(job: &'j str, name: &str) -> &'j str {
    let value = job.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("{name} is missing in {job}"))
}

/// Broken by: a window that is not the report's, a way or a size that is left out of the split.
#[test]
fn a_job_says_what_the_report_counted() {
    let stand = Stand::new();
    let report = stand.bench(&format!("{SMALL} {LOAD} --io-threads 2 --fio-job job.fio")).json();
    let job = stand.sandbox.read("job.fio");
    let sent = &report["block_layer"]["sent"];
    assert_eq!((option(&job, "numjobs"), option(&job, "rw")), ("2", "randrw"));
    assert_eq!(
        option(&job, "directory"),
        stand.sandbox.path("cache").canonicalize().unwrap().to_str().unwrap()
    );
    let count = |way: &str| list(sent, way).iter().map(|row| row[1].as_f64().expect("a count")).sum::<f64>();
    let bytes = |way: &str| {
        let bytes = |row: &Value| row[0].as_f64().zip(row[1].as_f64()).map(|(size, count)| size * count);
        list(sent, way).iter().map(|row| bytes(row).expect("numbers")).sum::<f64>()
    };
    assert_eq!(bytes("/reads_by_size"), number(sent, "/read_bytes"));
    assert_eq!(bytes("/writes_by_size"), number(sent, "/written_bytes"));
    let (reads, writes) = (count("/reads_by_size"), count("/writes_by_size"));
    let mix: f64 = option(&job, "rwmixread").parse().expect("a percentage");
    assert!((mix - 100.0 * reads / (reads + writes)).abs() <= 0.5, "{mix} {reads} {writes}");
    let threads = number(sent, "/busy_seconds") + number(sent, "/idle_seconds");
    assert!((threads / 2.0 - number(sent, "/window_seconds")).abs() < 1e-6);
    // The same plan gives a job again.
    stand.sandbox.write("first.json", report.to_string());
    stand.bench("--plan first.json --fio-job again.fio");
    assert_eq!(option(&stand.sandbox.read("again.fio"), "numjobs"), "2");
}

#[test]
fn fio_runs_the_job() {
    let Some(fio) = installed("fio") else { return };
    let stand = Stand::new();
    let report = stand.bench(&format!("{SMALL} {LOAD} --fio-job job.fio")).json();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&fio);
        let done = command.args(arguments).current_dir(stand.sandbox.path("")).output().expect("fio");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    run(&["--parse-only", "job.fio"]);
    let told = run(&["--output-format=json", "job.fio"]);
    let told: Value = serde_json::from_str(&told[told.find('{').expect("JSON")..]).expect("JSON");
    let job = &told["jobs"][0];
    assert_eq!(job["error"], 0);
    // Broken by: fio's rounding of sizes to multiples of the smallest.
    let sent = &report["block_layer"]["sent"];
    for (way, ours, sizes) in
        [("read", "/read_bytes", "/reads_by_size"), ("write", "/written_bytes", "/writes_by_size")]
    {
        let counts = list(sent, sizes).iter().map(|row| row[1].as_f64().expect("a count"));
        let mean = number(sent, ours) / counts.sum::<f64>();
        let theirs = number(&job[way], "/io_bytes") / number(&job[way], "/total_ios");
        assert!((0.7..1.4).contains(&(theirs / mean)), "{way}: {theirs} {mean}");
    }
    assert!(number(job, "/read/io_bytes") > 0.0 && number(job, "/write/io_bytes") > 0.0, "{job:#}");
    stand.is_clean("fio's file is gone too");
}

#[test]
fn nothing_to_distil_is_said_before_the_run() {
    let stand = Stand::new();
    for (line, says) in [
        (format!("{BOOKED} --duration 2"), "its backend is null"),
        (format!("{SMALL} {LOAD}").replace("fast", "deterministic"), "virtual clock"),
        (format!("{SMALL} --io-trace-log log.csv"), "its backend is null"),
        (SMALL.replace(" --cache-dir cache", ""), "hint: name a directory that stays: --cache-dir DIR"),
    ] {
        let run = stand.run(&format!("{line} --fio-job job.fio --output r.json"));
        assert_eq!(run.code, Some(2), "{line}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: --fio-job: there is nothing to distil: "), "{}", run.stderr);
        assert!(run.stderr.contains(says), "{line}: {}", run.stderr);
        let left = stand.sandbox.names_in("");
        assert!(!left.iter().any(|name| name == "job.fio" || name == "r.json"), "{left:?}");
    }
}

#[test]
fn without_bpftrace_nothing_is_run() {
    let stand = Stand::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wavetank"));
    command.arg("bench").args(SMALL.split_whitespace()).args([
        "--enable-latency-tracing",
        "--output",
        "r.json",
    ]);
    let done = command.current_dir(stand.sandbox.path("")).env("PATH", "").output().expect("it starts");
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{told}");
    assert!(told.contains("--enable-latency-tracing: bpftrace is not installed"), "{told}");
    assert!(told.contains("hint: apt-get install bpftrace"), "{told}");
    let virtual_time = stand.run(&format!("{BOOKED} --duration 2 --enable-latency-tracing"));
    assert_eq!(virtual_time.code, Some(2));
    assert!(virtual_time.stderr.contains("on no drive of this machine: its backend is null"));
}

/// Where it may not look, that is what it says; where it may, the disk's requests are seen.
#[test]
fn bpftrace_looks_where_it_may() {
    let stand = Stand::new();
    let _seat = Seat::take();
    let line = format!("bench {SMALL} {LOAD} --enable-latency-tracing --output r.json");
    let run = stand.sandbox.start(&line, std::process::Stdio::null()).finish(LIMIT);
    if run.code == Some(2) {
        assert!(
            run.stderr.contains("--enable-latency-tracing: ") && run.stderr.contains("hint: "),
            "{}",
            run.stderr
        );
        return;
    }
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report = stand.sandbox.report("r.json").json();
    let traced = &report["block_layer"]["traced"];
    assert_eq!(traced.get("failed"), None, "where it may look, it does");
    assert!(number(traced, "/d2c_us/write/count") > 0.0, "{traced:#}");
    assert!(number(traced, "/block_bytes/write/count") >= number(traced, "/d2c_us/write/count"));
    assert!(run.stdout.contains("Block layer (bpftrace"), "{}", run.stdout);
    stand.is_clean("tracing");
}
