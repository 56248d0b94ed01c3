//! A package that can be submitted, and every way in which one cannot.

use std::sync::atomic::AtomicBool;

use serde_json::json;
use tempfile::TempDir;
use wavetank_bench::Unwatched;

use super::*;
use crate::bench::args::BenchArgs;
use crate::bench::finished::Benched;
use crate::bench::run::{BenchFiles, BenchObserver, bench};
use crate::bench::submission::SUBMISSIONS;
use crate::bench::testing::without_gpu;
use crate::bench::trials::TrialCount;

/// Three trials of a second, and the plan they are of.
fn quick(folder: &TempDir) -> (BenchPlan, Benched) {
    let args = BenchArgs {
        model: Some("tiny-1b".to_owned()),
        num_users: Some(4),
        duration: Some(1.0),
        warmup: Some(0.0),
        storage_capacity_gb: Some(0.5),
        cache_dir: Some(folder.path().join("cache")),
        trials: Some(TrialCount::Number(3)),
        ..SUBMISSIONS[0].args()
    };
    let plan = BenchPlan::on(&without_gpu(), &args).unwrap();
    let stop = AtomicBool::new(false);
    let observer = BenchObserver { watch: &mut Unwatched, stop: &stop, news: &mut |_| {} };
    let benched = bench(&plan, observer, BenchFiles::default()).unwrap();
    (plan, benched)
}

/// What the real run would have been, had it been as long and as large as the first submission.
fn submitted(plan: &BenchPlan, benched: &mut Benched) -> BenchPlan {
    let whole = BenchPlan::on(&without_gpu(), &SUBMISSIONS[0].args()).unwrap();
    let mut run = whole.run.clone();
    run.tiers = plan.run.tiers.clone();
    let whole = BenchPlan { run, temporary_cache: plan.temporary_cache, ..whole };
    for report in &mut benched.trial_reports {
        report["plan"] = json!(whole);
        report["summary"]["elapsed_time"] = json!(300.0);
        report["summary"]["cache_stats"]["tier_storage_kv_bytes_read_gb"] = json!(1.0);
    }
    whole
}

fn results<'a>(plan: &'a BenchPlan, benched: &'a Benched, systems: &'a [Hardware]) -> Results<'a> {
    Results { plan, report: &benched.report, trials: &benched.trial_reports, systems }
}

fn wrong(folder: &Path) -> Vec<String> {
    let findings = check_package(folder).unwrap().findings;
    findings.iter().filter_map(|one| Some(format!("{}: {}", one.rule, one.result.as_ref().err()?))).collect()
}

/// Broken by: a rule that lets anything pass, or one that nothing passes.
#[test]
fn a_quick_run_is_no_submission_and_a_whole_one_is() {
    let folder = TempDir::new().unwrap();
    let (plan, mut benched) = quick(&folder);
    let path = folder.path().join("package");
    let mut package = Package::open(&path).unwrap();
    let systems = [Hardware::of(&plan).unwrap()];
    package.add(package_name(&plan), results(&plan, &benched, &systems)).unwrap();
    package.seal().unwrap();
    let said = wrong(&path);
    assert_eq!(
        said[0],
        "one of the submissions: nearest is mlperf-stress-8b, but `model.name` is \"tiny-1b\", not \
        \"llama3.1-8b\"; `run.users` is 4, not 200"
    );
    assert!(said.contains(&"duration: 1 s, not 300".to_owned()), "{said:?}");

    let whole = submitted(&plan, &mut benched);
    let path = folder.path().join("whole");
    let mut package = Package::open(&path).unwrap();
    package.add(package_name(&whole), results(&whole, &benched, &systems)).unwrap();
    package.seal().unwrap();
    let checked = check_package(&path).unwrap();
    assert!(checked.passed(), "{:?}", wrong(&path));
    assert_eq!(checked.notes.len(), 2, "two submissions are missing");
    assert!(path.join("mlperf-stress-8b/trial_3.json").exists());

    violations(&path);
    ranks(&path);
    broken(&path);
}

/// Each change breaks its own rule, whatever the checksums say.
fn violations(path: &Path) {
    let folder = path.join("mlperf-stress-8b");
    let changed = |file: &str, pointer: &str, value: Value| {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let mut json: Value = serde_json::from_str(&text).unwrap();
        *json.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        write_json(&folder.join(file), &json).unwrap();
        let tampered = wrong(path);
        assert!(tampered[0].starts_with("checksums: mlperf-stress-8b/"), "{tampered:?}");
        sums::write(path).unwrap();
        let said = wrong(path);
        fs::write(folder.join(file), text).unwrap();
        sums::write(path).unwrap();
        said
    };
    let scaled = BenchArgs { enable_autoscaling: true, ..SUBMISSIONS[0].args() };
    let scaling = json!(BenchPlan::on(&without_gpu(), &scaled).unwrap().run.scaling);
    for (file, pointer, value, rule) in [
        ("plan.json", "/run/seed", json!(43), "seed"),
        ("plan.json", "/run/duration", json!(299_000_000_000u64), "duration"),
        ("trial_2.json", "/summary/elapsed_time", json!(200.0), "duration"),
        ("trial_1.json", "/partial", json!(true), "trials"),
        ("plan.json", "/run/habits/documents/count", json!(3), "no RAG"),
        ("plan.json", "/run/scaling", scaling, "no autoscaling"),
        ("plan.json", "/run/users", json!(100), "one of the submissions"),
        ("plan.json", "/run/max_requests", json!(5), "one of the submissions"),
        ("trial_3.json", "/plan/run/io_depth", json!(7), "trials are of the plan"),
        ("trial_3.json", "/lost_events", json!(7), "nothing lost"),
        ("trial_1.json", "/summary/cache_stats/failed_reads", json!(1), "nothing lost"),
        ("report.json", "/trials/run", json!(4), "the report is of the trials"),
        ("report.json", "/summary/primary_metric/value", json!(1e9), "the report is of the trials"),
        ("system.json", "/0", json!({}), "files"),
        ("system.json", "", json!([]), "system description"),
        ("plan.json", "/run/habits/mix/0", json!(7.0), "one of the submissions"),
        (
            "trial_1.json",
            "/summary/cache_stats/tier_storage_kv_bytes_read_gb",
            json!(0.0),
            "storage was used",
        ),
    ] {
        let said = changed(file, pointer, value);
        assert!(said.iter().any(|line| line.starts_with(&format!("{rule}: "))), "{pointer}: {said:?}");
    }
}

/// Changes what all ranks of a merged benchmark say of their windows.
fn ranks(path: &Path) {
    let folder = path.join("mlperf-stress-8b");
    let texts: Vec<(PathBuf, String)> = ["trial_1.json", "trial_2.json", "trial_3.json"]
        .map(|file| folder.join(file))
        .map(|file| (file.clone(), fs::read_to_string(file).unwrap()))
        .into();
    let said = |of: u32, share: f64, elapsed: f64| {
        for (file, text) in &texts {
            let mut json: Value = serde_json::from_str(text).unwrap();
            let rank = |number: u32| json!({ "rank": number, "elapsed_time": elapsed });
            json["merged"] = json!({ "of": of, "ranks": [rank(0), rank(1)], "overlap": { "share": share } });
            write_json(file, &json).unwrap();
        }
        sums::write(path).unwrap();
        wrong(path)
    };
    assert_eq!(said(2, 0.95, 300.0), Vec::<String>::new());
    assert_eq!(
        said(2, 0.5, 300.0),
        ["ranks at the same time: all ranks of trial 1 measured together for 50 % of its time"]
    );
    assert_eq!(said(3, 0.95, 300.0), ["ranks at the same time: trial 1 is of 2 ranks, and there were 3"]);
    assert_eq!(said(2, 0.95, 200.0), ["duration: trial 1 of rank 0 measured 200.0 s of 300"]);
    texts.iter().for_each(|(file, text)| fs::write(file, text).unwrap());
    sums::write(path).unwrap();
}

/// Files that are not there or not as they were are found, not stumbled over.
fn broken(path: &Path) {
    let manifest: Manifest = serde_json::from_str(&fs::read_to_string(path.join(MANIFEST)).unwrap()).unwrap();
    let said = |runs: Vec<Listed>| {
        write_json(&path.join(MANIFEST), &Manifest { runs, ..manifest.clone() }).unwrap();
        sums::write(path).unwrap();
        wrong(path)
    };
    let one = manifest.runs[0].clone();
    assert_eq!(said(vec![one.clone(), one.clone()]), ["benchmarks: mlperf-stress-8b is listed twice"]);
    let other = Listed { name: "../other".to_owned(), trials: 3 };
    assert!(said(vec![other])[0].starts_with("benchmarks: ../other is no name of one"));
    let more = said(vec![Listed { trials: 4, ..one.clone() }]);
    assert!(
        more.len() == 1 && more[0].starts_with("files: ") && more[0].contains("trial_4.json"),
        "{more:?}"
    );
    assert_eq!(said(vec![one]), Vec::<String>::new());
    fs::write(path.join("mlperf-stress-8b/trial_2.json"), "{").unwrap();
    fs::remove_file(path.join(sums::SUMS)).unwrap();
    let torn = wrong(path);
    assert!(torn[0].starts_with("checksums: ") && torn[0].contains("SHA256SUMS"), "{torn:?}");
    assert!(torn[1].starts_with("files: ") && torn[1].contains("trial_2.json:1"), "{torn:?}");
}

/// Broken by: writing over what is not ours.
#[test]
fn only_packages_are_added_to() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
    let refused = Package::open(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("is not empty and is no package"), "{refused}");
    let missing = check_package(folder.path()).unwrap_err().to_string();
    assert!(missing.contains("manifest.json"), "{missing}");
    fs::write(folder.path().join(MANIFEST), "{").unwrap();
    assert!(check_package(folder.path()).unwrap_err().to_string().contains("manifest.json:1"));
    assert!(Package::open(folder.path()).is_err());
}
