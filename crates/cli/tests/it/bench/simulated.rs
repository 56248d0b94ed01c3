//! `bench --simulate` and `bench residual`: the same command with and without devices.

use super::Stand;

const LINE: &str = "--model tiny-1b --config scaled.yaml --gpu-mem-gb 0 --cpu-mem-gb 0.01 --cache-dir cache \
    --storage-capacity-gb 0.5 --dataset-path talks.json --num-users 1 --max-requests 30 --duration 60 \
    --generation-mode none";
const MEDIA: &str =
    r#"--simulate cpu={"name":"queued","gbps":8.0} --simulate disk={"name":"queued","gbps":1.0}"#;

/// Broken by: a simulation that touches the cache directory, is not marked, cannot be run again or held
/// against the real run, or passes for a result.
#[test]
fn a_simulation_is_held_against_the_real_run() {
    let stand = Stand::new();
    let run = stand.run(&format!("{LINE} {MEDIA} --output sim.json"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains(" (simulated: times are those of models, nothing moved)\n"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("\nSimulated: "), "{}", run.stdout);
    stand.is_clean("a simulation");
    let again = stand.run("--plan sim.json --output again.json");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let [first, second] = ["sim.json", "again.json"].map(|name| stand.sandbox.report(name).without_wall());
    assert_eq!(first, second);

    assert_eq!(stand.run(&format!("{LINE} --output real.json")).code, Some(0));
    let held = stand.run("residual sim.json real.json --output residual.json");
    assert_eq!(held.code, Some(0), "{}", held.stderr);
    let rows = stand.sandbox.report("residual.json").json();
    let counts: Vec<_> =
        rows["rows"].as_array().expect("rows").iter().filter(|row| row["kind"] == "count").collect();
    assert!(counts.len() > 3, "{rows:#}");
    assert!(counts.iter().all(|row| row["error"] == 0.0), "{rows:#}");
    let other = stand.run("residual real.json sim.json");
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("real.json: is no report of a simulated benchmark"), "{}", other.stderr);
    let package = stand.run(&format!("{LINE} {MEDIA} --mlperf package"));
    assert_eq!(package.code, Some(2));
    assert!(package.stderr.contains("--mlperf: is not for a simulation"), "{}", package.stderr);
    let job = stand.run(&format!("{LINE} {MEDIA} --fio-job job.fio"));
    assert!(job.code == Some(2) && job.stderr.contains("that is simulated"), "{}", job.stderr);
}
