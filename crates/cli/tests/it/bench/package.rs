//! A submission as a folder: what is in it, and what `bench check` says of it.

use std::process::Command;

use super::{SMALL, Seat, Stand};

const TEN: &str = "--cpu-mem-gb 0 --num-users 4 --generation-mode none --max-requests 10 --duration 30";

/// Broken by: a file that is not there, sums that `sha256sum` does not read, a run that passes for more than
/// it is.
#[test]
fn a_package_is_written_and_checked() {
    let stand = Stand::new();
    let line = format!("{} {TEN} --trials 2 --mlperf package", SMALL.replace("--duration 1 ", ""));
    let run = stand.run(&line);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.ends_with("\nSaved package to: package\n"), "{}", run.stdout);
    assert_eq!(stand.sandbox.names_in("package"), ["SHA256SUMS", "manifest.json", "run"]);
    let files = ["plan.json", "report.json", "system.json", "trial_1.json", "trial_2.json"];
    assert_eq!(stand.sandbox.names_in("package/run"), files);
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--strict", "SHA256SUMS"]).current_dir(stand.sandbox.path("package"));
    assert!(sums.output().expect("sha256sum runs").status.success());
    let check = stand.run("check package");
    assert_eq!(check.code, Some(1));
    let is_steady = |line: &&str| !line.contains("system description: ");
    let told: Vec<&str> = check.stdout.lines().filter(is_steady).collect();
    let told = stand.sandbox.steady(&told.join("\n")).replace("trial 2 is reported", "trial 1 is reported");
    insta::assert_snapshot!(told);
    let systems = stand.sandbox.report("package/run/system.json").json();
    let cache = stand.sandbox.path("cache").canonicalize().expect("a directory");
    assert_eq!(systems[0]["place"]["directory"], cache.to_str().expect("a text"), "{systems}");

    stand.sandbox.write("package/run/plan.json", "{}");
    let broken = stand.run("check package");
    assert_eq!(broken.code, Some(1), "{}", broken.stderr);
    assert!(broken.stdout.contains("plan.json:1: not as this version writes it"), "{}", broken.stdout);
    let again = stand.run(&line);
    assert_eq!(again.code, Some(0), "a benchmark of the same name takes the place: {}", again.stderr);
    let none = stand.run("check cache");
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("manifest.json"), "{}", none.stderr);
    let refused = stand.run(&line.replace("--mlperf package", "--mlperf cache"));
    assert_eq!(refused.code, Some(2));
    stand.is_clean("a package");
}

/// Broken by: adding to a package whatever came of a run.
#[test]
fn a_run_that_was_cut_short_leaves_the_package_alone() {
    let stand = Stand::new();
    let small = SMALL.replace("--duration 1 ", "");
    let run = stand.run(&format!("{small} {TEN} --mlperf package"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let sums = stand.sandbox.read("package/SHA256SUMS");
    {
        let _seat = Seat::take();
        let users = "--cpu-mem-gb 0 --num-users 4 --generation-mode none --duration 600";
        let mut running = stand.start(&format!("{small} {users} --mlperf package"));
        running.wait_for("an entry", || stand.entries() > 0);
        running.interrupt();
        let cut = running.finish(super::LIMIT);
        assert_eq!(cut.code, Some(130), "{}", cut.stderr);
        assert!(
            cut.stdout.contains("Not added to the package package: it was interrupted\n"),
            "{}",
            cut.stdout
        );
    }
    assert_eq!(stand.sandbox.read("package/SHA256SUMS"), sums);
    stand.is_clean("a run that was cut short");
}

/// Broken by: seconds of a small model in a package, or a suite that is begun although its package cannot be.
#[test]
fn a_suite_that_cannot_be_packaged_is_not_begun() {
    let stand = Stand::new();
    let quick = stand.run("suite --quick --cache-dir cache --output suite --mlperf package");
    assert_eq!(quick.code, Some(2), "{}", quick.stdout);
    assert!(quick.stderr.contains("--mlperf: is not for a suite with --quick"), "{}", quick.stderr);
    let line = "suite --cache-dir cache --storage-capacity-gb 1 --output suite --mlperf cache";
    let refused = stand.run(line);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("is not empty and is no package"), "{}", refused.stderr);
    for name in ["suite", "package"] {
        assert!(!stand.sandbox.path(name).exists(), "{name}");
    }
}
