//! One benchmark by many processes, and the one report that is made of theirs.

use std::process::{Command, Stdio};

use insta::assert_snapshot;
use serde_json::Value;

use super::{BOOKED, LIMIT, SMALL, Seat, Stand, list, number};
use crate::sandbox::{Run, Running, WAVETANK};

/// Users who ask as fast as they are answered.
const BUSY: &str = "--cpu-mem-gb 0 --num-users 4 --generation-mode none";
/// A dozen requests in virtual time.
const FEW: &str = "--cpu-mem-gb 0.01 --num-users 4 --max-requests 12";

impl Stand {
    /// Starts a benchmark as Open MPI starts a rank.
    fn start_rank(&self, number: u32, of: u32, arguments: &str) -> Running {
        let mut command = Command::new(WAVETANK);
        command.env("OMPI_COMM_WORLD_RANK", number.to_string());
        command.env("OMPI_COMM_WORLD_SIZE", of.to_string());
        command.env("OMPI_COMM_WORLD_LOCAL_RANK", number.to_string());
        self.sandbox.spawn(command, &format!("bench {arguments}"), Stdio::null())
    }

    /// Runs every rank, all at a time.
    fn run_ranks(&self, of: u32, arguments: &str) {
        let _seat = Seat::take();
        let ranks: Vec<Running> = (0..of).map(|number| self.start_rank(number, of, arguments)).collect();
        for rank in ranks {
            let run = rank.finish(LIMIT);
            assert_eq!(run.code, Some(0), "{arguments}: {}", run.stderr);
        }
    }

    /// Merges what must go together and returns the report.
    fn merge(&self, arguments: &str) -> (Run, Value) {
        let run = self.run(&format!("merge {arguments} --output merged.json"));
        assert_eq!(run.code, Some(0), "{arguments}: {}", run.stderr);
        let report = self.sandbox.report("merged.json").json();
        (run, report)
    }

    fn json(&self, name: &str) -> Value {
        self.sandbox.report(name).json()
    }
}

/// The values of a list of latencies in nanoseconds, which it has in seconds.
fn nanoseconds(report: &Value, key: &str) -> Vec<u64> {
    let values = list(report, key).iter();
    values.map(|value| (value.as_f64().expect("a number") * 1e9).round() as u64).collect()
}

/// What every percentile of the pooled lists of `reports` is, by nearest rank, against what `merged` says.
fn percentiles_are_pooled(reports: &[Value], merged: &Value) {
    for (lists, latency) in [
        ("/end_to_end_latencies", "/summary/end_to_end_latency_ms"),
        ("/storage_latencies", "/summary/storage_io_latency_ms"),
        ("/generation_latencies", "/summary/generation_latency_ms"),
        ("/prefill_latencies", "/summary/prefill_latency_ms"),
        ("/decode_latencies", "/summary/decode_latency_ms"),
    ] {
        let mut pooled: Vec<u64> = reports.iter().flat_map(|report| nanoseconds(report, lists)).collect();
        pooled.sort_unstable();
        assert!(pooled.len() > 1, "{lists}: {} values", pooled.len());
        for (name, percent) in [("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9), ("p9999", 99.99)]
        {
            let rank = ((pooled.len() - 1) as f64 * percent / 100.0).round() as usize;
            let found = (number(merged, &format!("{latency}/{name}")) * 1e6).round() as u64;
            assert_eq!(found, pooled[rank], "{latency}/{name}");
        }
    }
}

fn adds_up(reports: &[Value], merged: &Value, pointer: &str) {
    let sum: f64 = reports.iter().map(|report| number(report, pointer)).sum();
    let found = number(merged, pointer);
    assert!((found - sum).abs() <= 1e-9 * sum, "{pointer}: {found} and {sum}");
}

/// Broken by: the largest or the mean of the ranks' percentiles, a bandwidth over the union of the windows,
/// ranks that share a seed or a directory, a directory that stays.
#[test]
fn two_ranks_are_one_benchmark() {
    let stand = Stand::new();
    stand.run_ranks(2, &format!("{SMALL} {BUSY} --output r.json --xlsx-output r.csv"));
    stand.is_clean("two ranks");
    let reports = ["r_rank0.json", "r_rank1.json"].map(|name| stand.json(name));
    for (number, report) in reports.iter().enumerate() {
        assert_eq!((&report["rank"]["number"], &report["rank"]["of"]), (&number.into(), &2.into()));
        assert_eq!(
            (&report["seed"], &report["rank"]["told_by"]),
            (&(42 + number).into(), &"open_mpi".into())
        );
        assert!(stand.sandbox.path(&format!("r_rank{number}.csv")).exists());
    }
    let (run, merged) = stand.merge("r_rank1.json r_rank0.json --xlsx-output m.csv");
    percentiles_are_pooled(&reports, &merged);
    for pointer in [
        "/requests_completed",
        "/total_tokens_generated",
        "/summary/avg_throughput_tokens_per_sec",
        "/summary/requests_per_second",
        "/summary/cache_stats/cache_hits",
        "/summary/cache_stats/total_read_bytes",
        "/summary/cache_stats/tier_storage_read_bandwidth_gbps",
        "/summary/cache_stats/tier_storage_write_bandwidth_gbps",
        "/summary/tiers/0/reads/operations",
        "/accounting/storage/written_bytes",
        "/wall/cpu_seconds",
    ] {
        adds_up(&reports, &merged, pointer);
    }
    let ranks = list(&merged, "/merged/ranks");
    assert_eq!(ranks.iter().map(|rank| number(rank, "/rank")).collect::<Vec<_>>(), [0.0, 1.0]);
    assert!(number(&merged, "/merged/overlap/share") <= 1.0);
    assert_eq!((&merged["seed"], merged["plan"].get("rank")), (&42.into(), None));
    assert!(run.stdout.contains("rank 0 (") && run.stdout.contains("rank 1 ("), "{}", run.stdout);
    assert!(stand.sandbox.read("m.csv").starts_with("Model,"));
}

/// Broken by: a merged report without a part of a run's layout, which those who read reports rely on.
#[test]
fn a_merged_report_is_laid_out_like_another() {
    let stand = Stand::new();
    stand.run_ranks(2, &format!("{BOOKED} {FEW}"));
    let (_, merged) = stand.merge("rank0.json rank1.json");
    let mut one = stand.json("rank0.json");
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().expect("an object").keys().cloned().collect() };
    let own = ["rank", "harness", "notes", "block_layer", "autoscaling_stats", "autoscaling_summary"];
    let lists = |key: &String| key.ends_with("_latencies");
    let expected = |value: &Value| -> Vec<String> {
        keys(value).into_iter().filter(|key| !own.contains(&key.as_str()) && !lists(key)).collect()
    };
    let mut found = keys(&merged);
    found.retain(|key| key != "merged" && key != "latency_lists");
    assert_eq!(found, expected(&one));
    assert_eq!(keys(&merged["summary"]), expected(&one["summary"]));
    assert_eq!(keys(&merged["trials"]), keys(&one["trials"]), "what trials agree on");
    let plan = one["plan"].as_object_mut().expect("a plan");
    plan.remove("rank");
    assert_eq!(merged["plan"], one["plan"]);
}

/// A line of a table without what differs from run to run and from host to host: numbers, and widths.
fn masked(line: &str, host: &str) -> String {
    let line = line.replace(&format!("({host})"), "(HOST)");
    let mut short = String::new();
    for c in line.chars().filter(|c| !"━─".contains(*c)) {
        let c = if c.is_ascii_digit() { '0' } else { c };
        let goes_on = match short.chars().last() {
            Some(' ') => c == ' ',
            Some('0') => "0.,".contains(c),
            _ => false,
        };
        if !goes_on {
            short.push(c);
        }
    }
    short
}

#[test]
fn the_table_of_ranks() {
    let stand = Stand::new();
    stand.run_ranks(3, &format!("{BOOKED} {FEW} --trials 2"));
    let (run, merged) = stand.merge("rank0.json rank1.json rank2.json");
    assert_eq!(merged["trials"]["run"], 2);
    let host = merged["merged"]["ranks"][0]["host"].as_str().expect("a name");
    let is_steady = |line: &&str| !line.starts_with("Warning: rank ") && !line.starts_with("Bottleneck: ");
    let table: Vec<String> = run.stdout.lines().filter(is_steady).map(|line| masked(line, host)).collect();
    assert_snapshot!(table.join("\n"));
}

/// Broken by: trials that each rank chooses itself, which are not the same ones.
#[test]
fn every_rank_reports_every_trial() {
    let stand = Stand::new();
    stand.run_ranks(2, &format!("{SMALL} {BUSY} --max-requests 8 --trials 3"));
    let reports = ["rank0.json", "rank1.json"].map(|name| stand.json(name));
    let (_, merged) = stand.merge("rank0.json rank1.json");
    let trials = list(&merged, "/trials/trials");
    assert_eq!(trials.len(), 3);
    for (number_of_trial, trial) in trials.iter().enumerate() {
        let pointer = format!("/trials/trials/{number_of_trial}/tier_storage_read_bandwidth_gbps");
        let sum: f64 = reports.iter().map(|report| number(report, &pointer)).sum();
        let found = number(trial, "/tier_storage_read_bandwidth_gbps");
        assert!((found - sum).abs() <= 1e-9 * sum, "trial {number_of_trial}: {found} and {sum}");
    }
    let mut values: Vec<f64> = trials.iter().map(|trial| number(trial, "/primary_metric")).collect();
    values.sort_by(f64::total_cmp);
    assert_eq!(number(&merged, "/summary/primary_metric/value"), values[1], "the median of what all did");
    assert_eq!(merged["trials"]["compared"], 3);
    let served: f64 = trials.iter().map(|trial| number(trial, "/requests_completed")).sum();
    let samples = number(&merged, "/trials/pooled_latency_ms/end_to_end/samples");
    assert_eq!(samples, served, "all ranks and trials");
    assert_eq!(list(&merged, "/trials/agreement_by_number/end_to_end_p95_ms/values").len(), 3);
    let package = stand.run("merge rank0.json rank1.json --output m.json --mlperf package");
    assert_eq!(package.code, Some(0), "{}", package.stderr);
    assert_eq!(list(&stand.json("package/run/system.json"), "").len(), 2, "a machine of each rank");
    for trial in 1..=3 {
        let report = stand.json(&format!("package/run/trial_{trial}.json"));
        let share = number(&report, "/merged/overlap/share");
        let told = list(&report, "/warnings").iter().any(|warning| {
            warning.as_str().is_some_and(|warning| warning.starts_with("all ranks measured at the same time"))
        });
        assert_eq!(told, share < 0.9, "trial {trial} has warnings of its own");
    }
    only_whole_runs_are_packaged(&stand);
    let checked = stand.run("check package");
    assert_eq!(checked.code, Some(1));
    assert!(checked.stdout.contains("trials: 3\n") && checked.stdout.contains("trials are of the plan: all"));
    let alone = stand.start_rank(0, 2, &format!("{BOOKED} {FEW} --mlperf package")).finish(LIMIT);
    assert_eq!(alone.code, Some(2));
    assert!(alone.stderr.contains("give it to `wavetank bench merge`"), "{}", alone.stderr);
    let auto = stand.start_rank(0, 2, &format!("{BOOKED} {FEW} --trials auto")).finish(LIMIT);
    assert_eq!(auto.code, Some(2));
    assert!(auto.stderr.contains("--trials: auto is not for several ranks"), "{}", auto.stderr);
}

/// Broken by: a merged package out of ranks one of which ran fewer trials, or is missing.
fn only_whole_runs_are_packaged(stand: &Stand) {
    let sums = stand.sandbox.read("package/SHA256SUMS");
    let mut short = stand.json("rank1.json");
    short["rank"]["trials"].as_array_mut().expect("trials").pop();
    stand.sandbox.write("short.json", short.to_string());
    for line in ["merge rank0.json short.json", "merge rank0.json --partial"] {
        let run = stand.run(&format!("{line} --output m.json --mlperf package"));
        assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
        assert!(run.stdout.ends_with("Not added to the package package: it is partial\n"), "{}", run.stdout);
    }
    assert_eq!(stand.sandbox.read("package/SHA256SUMS"), sums);
}

/// Broken by: a plan that is not complete, a rank that is lost when it is run again.
#[test]
fn a_plan_runs_again_as_another_rank_or_alone() {
    let stand = Stand::new();
    stand.run_ranks(2, &format!("{BOOKED} {FEW}"));
    let [first, second] = ["rank0.json", "rank1.json"].map(|name| stand.json(name));
    stand.sandbox.write("plan.json", first["plan"].to_string());
    assert_eq!(stand.run("--plan plan.json --rank 1 --ranks 2 --output again.json").code, Some(0));
    let again = stand.json("again_rank1.json");
    assert_eq!(again["rank"]["told_by"], "flags");
    let same = |one: &Value, other: &Value| {
        for pointer in ["/seed", "/requests_completed", "/total_tokens_generated", "/summary/touches"] {
            assert_eq!(one.pointer(pointer), other.pointer(pointer), "{pointer}");
        }
    };
    same(&again, &second);
    assert_eq!(stand.run("--plan plan.json --output same.json").code, Some(0));
    same(&stand.json("same_rank0.json"), &first);
    let alone = stand.start_rank(1, 2, "--plan plan.json --ranks 1 --output alone.json").finish(LIMIT);
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    let alone = stand.json("alone.json");
    assert_eq!((alone.get("rank"), &alone["seed"]), (None, &42.into()));
}

/// Broken by: merging what does not belong together, or saying so without the file and the field.
#[test]
fn what_does_not_belong_together() {
    let stand = Stand::new();
    stand.run_ranks(2, &format!("{BOOKED} {FEW}"));
    stand.run_ranks(2, &format!("{BOOKED} {FEW} --queue-limit 7 --output other.json"));
    stand.merge("rank0.json rank1.json");
    stand.bench(&format!("{BOOKED} {FEW}"));
    let mut old = stand.json("rank1.json");
    old["plan"]["wavetank_version"] = "0.0.1".into();
    stand.sandbox.write("old.json", old.to_string());
    let mut torn = stand.json("rank1.json");
    torn["rank"]["trials"][0]["summary"]["requests"]["end_to_end"] = serde_json::json!({ "steps": "7 x" });
    stand.sandbox.write("torn.json", torn.to_string());
    stand.sandbox.write("text.json", "not JSON");
    for (file, key, value) in [("beyond", "number", 2), ("many", "of", 2_000_000), ("seeded", "seed", 42)] {
        let mut rank = stand.json("rank1.json");
        rank["rank"][key] = value.into();
        stand.sandbox.write(&format!("{file}.json"), rank.to_string());
    }
    let told = |line: &str| {
        let run = stand.run(&format!("merge {line} --output never.json"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        format!("$ merge {line}\n{}", stand.sandbox.steady(&run.stderr))
    };
    let lines = [
        "r.json rank1.json",
        "merged.json rank0.json",
        "rank0.json rank1.json rank0.json",
        "rank1.json",
        "rank0.json other_rank1.json",
        "rank0.json old.json",
        "rank0.json torn.json",
        "rank0.json text.json",
        "rank0.json none.json",
        "rank0.json beyond.json",
        "many.json --partial",
        "rank0.json seeded.json",
    ];
    assert_snapshot!(lines.map(told).join("\n"));
    let over = stand.run("merge rank0.json rank1.json --output rank0.json");
    assert_eq!(over.code, Some(2), "a report is not written over its parts");
}

/// Broken by: silence about what is missing, or a whole out of a part that is not called one.
#[test]
fn ranks_that_are_missing_or_were_interrupted() {
    let stand = Stand::new();
    {
        let _seat = Seat::take();
        let line = format!("{} {BUSY}", SMALL.replace("--duration 1 ", "--duration 600 "));
        let mut rank = stand.start_rank(2, 3, &line);
        let entries = stand.sandbox.path("cache/rank_2/wavetank.store/0");
        rank.wait_for("a store", || entries.exists());
        rank.interrupt();
        assert_eq!(rank.finish(LIMIT).code, Some(130));
    }
    stand.is_clean("an interrupted rank");
    let (run, merged) = stand.merge("rank2.json --partial");
    assert_eq!(
        (&merged["partial"], &merged["merged"]["missing"]),
        (&true.into(), &serde_json::json!([0, 1]))
    );
    assert!(run.stdout.starts_with("wavetank bench merge (partial): "), "{}", run.stdout);
    assert!(run.stdout.contains("Warning: ranks 0, 1 are missing: "), "{}", run.stdout);
    assert!(run.stdout.contains("did not come to its end: interrupted"), "{}", run.stdout);
}

/// Broken by: windows that are not compared by the clock of the wall.
#[test]
fn ranks_one_after_the_other_are_told() {
    let stand = Stand::new();
    for number in 0..2 {
        let _seat = Seat::take();
        let run = stand.start_rank(number, 2, &format!("{SMALL} {BUSY}")).finish(LIMIT);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    let (run, merged) = stand.merge("rank0.json rank1.json");
    assert_eq!(merged["merged"]["overlap"]["share"], 0.0);
    assert!(
        run.stdout.contains("Warning: all ranks measured at the same time for only 0 %"),
        "{}",
        run.stdout
    );
    for name in ["rank0.json", "rank1.json"] {
        let mut strict = stand.json(name);
        strict["plan"]["strict"] = true.into();
        stand.sandbox.write(name, strict.to_string());
    }
    let strict = stand.run("merge rank0.json rank1.json --output strict.json");
    assert_eq!(strict.code, Some(1), "{}", strict.stderr);
    assert!(strict.stderr.contains("the ranks did not measure at the same time"), "{}", strict.stderr);
    let union = number(&merged, "/summary/elapsed_time");
    assert!(union >= 2.0, "{union}");
    assert_eq!(list(&merged, "/throughput_timeline").len(), union.ceil() as usize);
}

/// The real launcher, where it is installed; `WAVETANK_REQUIRE_PEERS=1` says that it has to be.
#[test]
fn open_mpi_starts_ranks() {
    let is_there = Command::new("mpirun").arg("--version").output().is_ok_and(|out| out.status.success());
    let is_required = std::env::var_os("WAVETANK_REQUIRE_PEERS").is_some_and(|value| value == "1");
    assert!(is_there || !is_required, "mpirun is not installed, and WAVETANK_REQUIRE_PEERS is 1");
    if !is_there {
        eprintln!("skipped: mpirun is not installed");
        return;
    }
    let stand = Stand::new();
    let mut command = Command::new("mpirun");
    command.args(["-n", "2", "--oversubscribe", "--allow-run-as-root", WAVETANK]);
    {
        let _seat = Seat::take();
        let line = format!("bench {SMALL} {BUSY}");
        let run = stand.sandbox.spawn(command, &line, Stdio::null()).finish(LIMIT);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    let reports = ["rank0.json", "rank1.json"].map(|name| stand.json(name));
    assert!(reports.iter().all(|report| report["rank"]["told_by"] == "open_mpi"));
    let (_, merged) = stand.merge("rank0.json rank1.json");
    percentiles_are_pooled(&reports, &merged);
    adds_up(&reports, &merged, "/summary/cache_stats/tier_storage_read_bandwidth_gbps");
}
