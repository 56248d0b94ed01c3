//! Sides and what they are compared with.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::condition::Condition;
use super::tolerance::Tolerance;
use super::*;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A directory with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// A side of several reports of ours.
fn side(reports: &[&str]) -> Side {
    let names: Vec<String> = (0..reports.len()).map(|number| format!("r{number}.json")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(reports.iter().copied()).collect();
    Side::read(folder(&files).path()).unwrap()
}

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/results").join(name);
    fs::read_to_string(path).unwrap()
}

fn compared() -> Comparison {
    let before = side(&[r#"{"completed_requests":10,"p99_ttft_ms":100.0,"zero":0,"still_zero":0,"old":1,
        "plan":{"simulation":{"router_mode":"round_robin","seed":42}}}"#]);
    let after = side(&[r#"{"completed_requests":10,"p99_ttft_ms":106.0,"zero":1,"still_zero":0,
        "plan":{"simulation":{"router_mode":"kv_router","seed":42}}}"#]);
    Comparison::of(&before, &after).unwrap()
}

fn row<'c>(comparison: &'c Comparison, metric: &str) -> &'c Row {
    comparison.row(metric, "--fail-if").unwrap()
}

#[test]
fn rows_and_plans_are_compared() {
    let comparison = compared();
    let ttft = row(&comparison, "p99_ttft_ms");
    assert_eq!((ttft.change(), ttft.relative()), (6.0, Some(0.06)));
    assert_eq!(row(&comparison, "zero").relative(), None);
    let changed =
        ("simulation.router_mode".to_owned(), "\"round_robin\"".to_owned(), "\"kv_router\"".to_owned());
    assert_eq!(comparison.plan, [changed]);
    let alone = comparison.sides.each_ref().map(|side| side.alone.join(" "));
    assert_eq!(alone, ["old", ""]);
}

/// Broken by: a row, a side or a difference that is left out for programs.
#[test]
fn programs_get_all_of_it() {
    let json = compared().json();
    let ttft = json!({ "metric": "p99_ttft_ms", "before": 100.0, "after": 106.0, "change": 6.0,
        "relative": 0.06, "is_noise": false });
    assert_eq!(json["rows"].as_array().unwrap().len(), 4);
    assert_eq!(json["rows"][1], ttft);
    assert_eq!(json["rows"][3]["relative"], Value::Null);
    assert_eq!(json["sides"][0]["format"], "replay");
    assert_eq!(json["sides"][0]["alone"], json!(["old"]));
    assert_eq!(json["plan"][0]["after"], "\"kv_router\"");
}

#[test]
fn conditions_hold_or_not() {
    let holds = |text: &str| Condition::parse(text).unwrap().holds(&compared()).unwrap();
    assert!(holds("p99_ttft_ms > +5%"));
    assert!(!holds("p99_ttft_ms > +6%"));
    assert!(holds("p99_ttft_ms >= +6%"));
    assert!(holds("p99_ttft_ms>+5.9"));
    assert!(!holds("p99_ttft_ms > +6"));
    assert!(holds("p99_ttft_ms > 105"));
    assert!(!holds("p99_ttft_ms < -1%"));
    assert!(holds("completed_requests <= 10"));
    assert!(holds("zero > +5%"), "anything is more than nothing");
    assert!(!holds("still_zero >= +5%"), "nothing is not more than nothing");
}

#[test]
fn nonsense_is_refused() {
    for text in ["p99_ttft_ms", "> 5", "p99_ttft_ms > x", "p99_ttft_ms > NaN", "p99_ttft_ms > %"] {
        assert!(Condition::parse(text).unwrap_err().to_string().contains("--fail-if"), "{text}");
    }
    let unknown = Condition::parse("p98_ttft_ms > 5").unwrap().holds(&compared());
    assert!(unknown.unwrap_err().to_string().contains("no metric \"p98_ttft_ms\""));
    for text in ["", "x", "-1", "inf", "nan%", "p99_ttft_ms", "p99_ttft_ms > 5%", "a b 5%", "5 %%"] {
        assert!(Tolerance::parse(text).unwrap_err().to_string().contains("--within"), "{text}");
    }
}

fn judged(tolerances: &[&str], before: &str, after: &str) -> Result<Verdict> {
    let tolerances: Vec<_> = tolerances.iter().map(|text| Tolerance::parse(text).unwrap()).collect();
    let report =
        |metrics: &str| Side::of_report("r", &parsed(&format!(r#"{{"completed_requests":1,{metrics}}}"#)));
    Tolerance::judge(&tolerances, &Comparison::of(&report(before)?, &report(after)?)?)
}

/// Broken by: one direction only, the second side as the base, a bound that is met and fails.
#[test]
fn a_metric_may_be_off_in_either_direction() {
    let failures = |bound: &str, after: f64| {
        let after = format!(r#""p99_ttft_ms":{after}"#);
        judged(&[bound], r#""p99_ttft_ms":100.0"#, &after).unwrap().failures.len()
    };
    assert_eq!([95.0, 105.0, 94.9, 105.1].map(|after| failures("5%", after)), [0, 0, 1, 1]);
    assert_eq!([95.0, 94.9].map(|after| failures("p99_ttft_ms 5", after)), [0, 1]);
    let off = judged(&["5"], r#""mean_tpot_ms":0"#, r#""mean_tpot_ms":1"#).unwrap().failures;
    assert_eq!(off[0].off_percent, f64::INFINITY, "anything is more than nothing");
}

/// Broken by: a metric's own bound that does not go before the general one, metrics nobody asked for.
#[test]
fn a_metric_has_one_tolerance() {
    let before = r#""p99_ttft_ms":100,"mean_ttft_ms":100,"max_ttft_ms":100"#;
    let after = r#""p99_ttft_ms":108,"mean_ttft_ms":104,"max_ttft_ms":200"#;
    let verdict = judged(&["5%", "p99_ttft_ms 10%"], before, after).unwrap();
    assert_eq!(verdict.judged, ["mean_ttft_ms", "p99_ttft_ms"]);
    assert_eq!(verdict.failures, []);
    assert_eq!(judged(&["5%"], before, after).unwrap().failures[0].metric, "p99_ttft_ms");
    assert_eq!(judged(&[], before, after).unwrap(), Verdict::default());
    for twice in [["5%", "6"], ["p99_ttft_ms 5%", "p99_ttft_ms 5%"]] {
        let error = judged(&twice, before, after).unwrap_err().to_string();
        assert!(error.contains("--within: says twice how far"), "{error}");
    }
}

/// Broken by: a pass where nothing was compared.
#[test]
fn nothing_to_judge_is_an_error() {
    let nothing = judged(&["5%"], r#""max_ttft_ms":1"#, r#""max_ttft_ms":1"#).unwrap_err();
    assert!(nothing.to_string().contains("nothing to judge"), "{nothing}");
    let unknown = judged(&["p99_ttft_ms 5%"], r#""max_ttft_ms":1"#, r#""max_ttft_ms":1"#).unwrap_err();
    assert!(unknown.to_string().contains("no metric \"p99_ttft_ms\""), "{unknown}");
    let storage = Side::of_report("s", &json!({"summary": {"total_tokens_per_sec": 1.0}})).unwrap();
    let replay = Side::of_report("r", &json!({"completed_requests": 1})).unwrap();
    let apart = Comparison::of(&storage, &replay).unwrap_err().to_string();
    assert!(apart.contains("s (storage) and r (replay) have no metric in common"), "{apart}");
}

#[test]
fn a_change_within_the_spread_is_noise() {
    let report = |ms: f64| format!(r#"{{"completed_requests":1,"mean_ttft_ms":{ms}}}"#);
    let of = |values: &[f64]| {
        let texts: Vec<String> = values.iter().map(|&ms| report(ms)).collect();
        side(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let noise =
        |a: &[f64], b: &[f64]| row(&Comparison::of(&of(a), &of(b)).unwrap(), "mean_ttft_ms").is_noise();
    assert!(noise(&[10.0, 12.0], &[11.5, 12.5]));
    assert!(!noise(&[10.0, 10.5], &[11.5, 12.0]));
    assert!(!noise(&[10.0], &[10.1]), "one run each says nothing about noise");
}

#[test]
fn seeds_are_repeats() {
    let text = r#"{"completed_requests":1,"mean_ttft_ms":1.0,
        "seeds":{"metrics":{"mean_ttft_ms":{"values":[1.0,3.0]}}}}"#;
    let trials = side(&[text]).trials("mean_ttft_ms").unwrap();
    assert_eq!((trials.count(), trials.mean(), trials.spread()), (2, 2.0, 2.0));
}

/// Broken by: results at different loads averaged as if they were repeats.
#[test]
fn appended_results_are_repeats_if_they_were_asked_for_alike() {
    let text = sample("vllm_serve.appended.json");
    let files = folder(&[("runs.json", &text)]);
    let path = files.path().join("runs.json");
    let side = Side::read(&path).unwrap();
    assert_eq!((side.runs(), side.trials("mean_ttft_ms").unwrap().count()), (3, 3));
    let (head, tail) = text.rsplit_once("\"request_rate\": 20.0").unwrap();
    fs::write(&path, format!("{head}\"request_rate\": 40.0{tail}")).unwrap();
    let error = Side::read(&path).unwrap_err().to_string();
    assert!(error.contains("runs.json: its results are no repeats"), "{error}");
    assert!(error.contains("request_rate is 40.0 in result 3, 20.0 in the first"), "{error}");
    fs::write(&path, format!("{text}\n{{\"a\":1}}")).unwrap();
    let error = Side::read(&path).unwrap_err().to_string();
    assert!(error.contains("runs.json: result 4: not a result of a known format"), "{error}");
}

/// Broken by: other files of a program taken for results, repeats in folders of their own not found.
#[test]
fn a_directory_of_artifacts_is_one_result() {
    let export = sample("aiperf.json");
    let run = [("profile_export_aiperf.json", export.as_str()), ("inputs.json", "{}"), (".ready.json", "{}")];
    assert_eq!(Side::read(folder(&run).path()).unwrap().runs(), 1);
    let runs = [("a/profile_export_aiperf.json", &*export), ("b/profile_export_aiperf.json", &*export)];
    let folders = folder(&runs);
    assert_eq!(Side::read(folders.path()).unwrap().runs(), 2);
    let one = Side::read(&folders.path().join("a/profile_export_aiperf.json")).unwrap();
    assert_eq!(one.name, "a", "every run has a file of that name");
    let mixed = [("1.json", export.as_str()), ("2.json", r#"{"completed_requests":1}"#)];
    let error = Side::read(folder(&mixed).path()).unwrap_err().to_string();
    assert!(error.contains("2.json: is of another format: replay, the ones before it aiperf"), "{error}");
    let error = Side::read(folder(&[(".hidden.json", &*export)]).path()).unwrap_err().to_string();
    assert!(error.contains("no .json file in it"), "{error}");
}

/// Broken by: plans of different programs compared word by word.
#[test]
fn plans_of_different_programs_do_not_differ() {
    let replay = Side::of_report("r", &parsed(&sample("replay.json"))).unwrap();
    let serve = Side::of_report("v", &parsed(&sample("vllm_serve.json"))).unwrap();
    assert_eq!(Comparison::of(&replay, &serve).unwrap().plan, []);
    let mut other = parsed(&sample("vllm_serve.json"));
    other["request_rate"] = json!(5.0);
    let other = Side::of_report("w", &other).unwrap();
    assert_eq!(Comparison::of(&serve, &other).unwrap().plan.len(), 1);
}

/// The check of the storage benchmark against vLLM: tokens per second within 5 %.
/// Broken by: either side without the metric, or under another name.
#[test]
fn tokens_per_second_of_storage_stand_beside_those_of_vllm() {
    let storage = |rate: f64| {
        Side::of_report("s", &json!({"summary": {"total_tokens_per_sec": rate, "total_requests": 10}}))
            .unwrap()
    };
    let vllm = Side::of_report("v", &parsed(&sample("vllm_throughput.json"))).unwrap();
    let failures = |rate: f64| {
        let within = [Tolerance::parse("total_tokens_per_sec 5%").unwrap()];
        let compared = Comparison::of(&vllm, &storage(rate)).unwrap();
        Tolerance::judge(&within, &compared).unwrap().failures.len()
    };
    assert_eq!([1600.0, 1679.0, 1521.0, 1681.0, 1519.0].map(failures), [0, 0, 0, 1, 1]);
}

/// Broken by: numbers of tiers that are not compared, or not shown among the usual ones.
#[test]
fn numbers_of_tiers_are_metrics() {
    let report = |mean: f64| {
        json!({ "completed_requests": 1, "tiers": { "tiers": [{ "name": "disk", "loads": 3,
            "load_wait_ms": { "mean": mean } }] } })
        .to_string()
    };
    let comparison = Comparison::of(&side(&[&report(1.0)]), &side(&[&report(2.0)])).unwrap();
    let found: Vec<&str> = comparison.rows.iter().map(|row| row.metric.as_str()).collect();
    assert_eq!(found, ["completed_requests", "tiers.disk.load_wait_ms.mean", "tiers.disk.loads"]);
    let shown = crate::render::comparison::table(&comparison, crate::render::comparison::Scope::Headline);
    assert!(shown.contains("tiers.disk.load_wait_ms.mean") && !shown.contains("tiers.disk.loads"), "{shown}");
}
