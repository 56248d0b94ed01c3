//! A run that does not end as planned: what it has is written and says so, and nothing of the user's is
//! touched.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{SMALL, Seat, Stand, invariants, keys, list, number};

const SOON: Duration = Duration::from_secs(20);

/// Breaks when the signal kills the process, the report does not say that it is partial, or entries stay.
#[test]
fn an_interrupted_run_is_partial() {
    for flags in ["--generation-mode none --warmup 0", "--generation-mode realistic", "--warmup 60"] {
        let stand = Stand::new();
        let line = SMALL.replace("--duration 1", "--duration 300");
        let _seat = Seat::take();
        let mut running =
            stand.start(&format!("{line} --cpu-mem-gb 0 --num-users 4 --output r.json {flags}"));
        running.wait_for("an entry", || stand.entries() > 1);
        running.interrupt();
        let begun = Instant::now();
        let run = running.finish(SOON);
        assert_eq!(run.code, Some(130), "{flags}: {}", run.stderr);
        assert!(begun.elapsed() < Duration::from_secs(10), "{flags}: it ends soon");
        assert!(run.stdout.starts_with("wavetank bench (partial): "), "{flags}: {}", run.stdout);
        let report = stand.sandbox.report("r.json").json();
        assert_eq!((&report["partial"], &report["ended"]), (&true.into(), &"interrupted".into()), "{flags}");
        keys::check(&report, flags);
        invariants::check(&report, flags);
        stand.is_clean(flags);
    }
}

/// Ctrl-C while the drive is being filled ends it as well.
#[test]
fn preconditioning_can_be_interrupted() {
    let stand = Stand::new();
    let line = "--cpu-mem-gb 0 --num-users 1 --precondition --precondition-size-gb 10000 --output r.json";
    let _seat = Seat::take();
    let mut running = stand.start(&format!("{SMALL} {line}"));
    running.wait_for("an entry", || stand.entries() > 1);
    running.interrupt();
    let run = running.finish(SOON);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    let report = stand.sandbox.report("r.json").json();
    assert_eq!(report["partial"], true);
    assert!(number(&report, "/filled/preconditioned/entries") > 0.0);
    stand.is_clean("preconditioning");
}

/// What was left by a run that was killed is removed by the next one; the user's files are not.
#[test]
fn leftovers_of_a_killed_run_are_removed() {
    let stand = Stand::new();
    let line = SMALL.replace("--duration 1", "--duration 300");
    let seat = Seat::take();
    let mut running = stand.start(&format!("{line} --cpu-mem-gb 0 --num-users 4 --generation-mode none"));
    running.wait_for("entries", || stand.entries() > 5);
    drop(running);
    assert!(stand.entries() > 5, "a killed run leaves its entries");
    drop(seat);
    stand.bench(&format!("{SMALL} --cpu-mem-gb 0 --num-users 2 --generation-mode none"));
}

/// Broken by: throwing away what was measured because entries could not be removed, after the last trial or
/// between two, or keeping quiet about it.
#[test]
fn what_cannot_be_removed_is_said_and_the_report_stands() {
    let line = format!("{SMALL} --cpu-mem-gb 0 --num-users 2 --generation-mode none --output r.json");
    for flags in ["", "--trials 2"] {
        let stand = Stand::new();
        let seat = Seat::take();
        let mut running = stand.start(&format!("{line} {flags}"));
        running.wait_for("an entry", || stand.entries() > 1);
        // A store of another version is not opened, so nothing can be removed from it.
        let format = "cache/wavetank.store/FORMAT";
        let ours = stand.sandbox.read(format);
        stand.sandbox.write(format, "another");
        let run = running.finish(SOON);
        drop(seat);
        assert_eq!(run.code, Some(1), "{flags}: {}", run.stderr);
        let said = "entries may be left in the cache directory, it could not be cleaned: ";
        assert_eq!(run.stderr.matches(said).count(), 1, "{flags}: {}", run.stderr);
        assert!(run.stderr.contains(&format!("error: {said}")), "{flags}: {}", run.stderr);
        let report = stand.sandbox.report("r.json").json();
        assert_eq!((&report["partial"], &report["trials"]["run"]), (&false.into(), &1.into()), "{flags}");
        let warnings = list(&report, "/warnings");
        let is_said = |warning: &serde_json::Value| warning.as_str().is_some_and(|it| it.starts_with(said));
        assert!(warnings.iter().any(is_said), "{flags}: {warnings:?}");
        keys::check(&report, flags);
        invariants::check(&report, flags);
        stand.sandbox.write(format, ours);
        stand.bench(&line.replace("--output r.json", ""));
    }
}

/// Runs a benchmark on a drive of 96 MiB that is there for it alone. None where that is not allowed.
fn on_a_small_drive(stand: &Stand, flags: &str) -> Option<Output> {
    let path = |name: &str| stand.sandbox.path(name).display().to_string();
    let script = format!(
        "mkdir -p {drive} && mount -t tmpfs -o size=96m none {drive} && echo mine > {drive}/thesis.npy && \
         cd {folder} && {bench} bench --model tiny-1b --config scaled.yaml --gpu-mem-gb 0 --cpu-mem-gb 0 \
         --backend buffered --cache-dir drive --storage-capacity-gb 2 --num-users 8 --duration 30 \
         --generation-mode none --warmup 0 --output r.json {flags}; \
         code=$?; ls {drive} > left.txt; exit $code",
        drive = path("drive"),
        folder = path(""),
        bench = env!("CARGO_BIN_EXE_wavetank"),
    );
    let alone = ["--user", "--map-root-user", "--mount"];
    let mounts = Command::new("unshare").args(alone).args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !mounts.is_ok_and(|tried| tried.status.success()) {
        skipped("a full drive: this machine does not let a process mount one of its own");
        return None;
    }
    let _seat = Seat::take();
    let run = Command::new("unshare").args(alone).args(["sh", "-c", &script]).stdin(Stdio::null()).output();
    let run = run.expect("unshare runs");
    let said = String::from_utf8_lossy(&run.stderr);
    let drive = stand.sandbox.path("drive").canonicalize().expect("it is there");
    assert!(said.contains(&format!("the drive is full: {}: ", drive.display())), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(stand.sandbox.read("left.txt"), "thesis.npy\n", "ours is gone, the user's is not");
    Some(run)
}

#[test]
fn a_full_drive_is_named() {
    let stand = Stand::new();
    let Some(run) = on_a_small_drive(&stand, "") else { return };
    assert_eq!(run.status.code(), Some(1));
    let report = stand.sandbox.report("r.json").json();
    assert_eq!(report["partial"], true);
    assert!(report["ended"].as_str().is_some_and(|why| why.starts_with("failed: the drive is full")));
    keys::check(&report, "a full drive");
    invariants::check(&report, "a full drive");
}

/// Nothing was measured, so there is nothing to report; but nothing is left either.
#[test]
fn a_drive_that_is_full_before_the_run_is_named() {
    let stand = Stand::new();
    let Some(run) = on_a_small_drive(&stand, "--precondition") else { return };
    assert_eq!(run.status.code(), Some(2));
    assert!(!stand.sandbox.path("r.json").exists());
}

/// Says why a test did not test; cargo shows it with `--nocapture`.
#[allow(clippy::print_stderr, reason = "a test talks to who runs it")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
