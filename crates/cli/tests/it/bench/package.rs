//! A submission as a folder: what is in it, and what `bench check` says of it.

use std::process::Command;

use super::{SMALL, Stand};

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
    assert_eq!(stand.sandbox.names_in("package"), ["SHA256SUMS", "manifest.json", "run", "system.json"]);
    let files = ["plan.json", "report.json", "trial_1.json", "trial_2.json"];
    assert_eq!(stand.sandbox.names_in("package/run"), files);
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--strict", "SHA256SUMS"]).current_dir(stand.sandbox.path("package"));
    assert!(sums.output().expect("sha256sum runs").status.success());
    let check = stand.run("check package");
    assert_eq!(check.code, Some(1));
    insta::assert_snapshot!(stand.sandbox.steady(&check.stdout));

    stand.sandbox.write("package/run/plan.json", "{}");
    let broken = stand.run("check package");
    assert_eq!(broken.code, Some(2), "{}", broken.stdout);
    assert!(broken.stderr.contains("plan.json:1: not as this version writes it"), "{}", broken.stderr);
    let again = stand.run(&line);
    assert_eq!(again.code, Some(0), "a benchmark of the same name takes the place: {}", again.stderr);
    let none = stand.run("check cache");
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("manifest.json"), "{}", none.stderr);
    let refused = stand.run(&line.replace("--mlperf package", "--mlperf cache"));
    assert_eq!(refused.code, Some(2));
    stand.is_clean("a package");
}
