//! The measured runs of vLLM under `kernels`, with every rule and with one of them taken away
//! (METHODOLOGY.md, "Measured kernels"). Runs where the shared data lies beside the checkout; `--nocapture`
//! prints what it finds.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and shows what it finds"
)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use wavetank_sim::timing::kernel_profiles;
use wavetank_study::validate::Case;

/// Runs whose measurements are public, as METHODOLOGY.md calls them.
const MEASURED: [(&str, &str); 2] = [
    ("rtxpro6000-llama-3.1-8b", "Llama-3.1-8B, RTX PRO 6000"),
    ("rtxpro6000-qwen3-32b-tp2", "Qwen3-32B TP2, 2 x RTX PRO 6000"),
];

/// The folder of a run, where it is there.
fn run_folder(name: &str) -> Option<PathBuf> {
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/vllm-runs");
    Some(Path::new(runs).join(name)).filter(|path| path.is_dir())
}

fn replayed(folder: &Path) -> Value {
    Case::open(folder).unwrap().replay().unwrap().report
}

/// A page with its lines joined, so that sentences are found wherever they are broken.
fn page(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_published(sentence: &str) {
    println!("{sentence}");
    let published = page(include_str!("../../../METHODOLOGY.md"));
    assert!(published.contains(sentence), "METHODOLOGY.md says otherwise than\n{sentence}");
}

/// A line of the table of errors.
fn line(run: &str, report: &Value, [title, key]: [&str; 2]) -> String {
    let errors = ["mean", "p50", "p90", "p95", "p99"].map(|statistic| {
        let error = report["metrics"][key][statistic]["error"].as_f64().unwrap();
        format!("{:+.2}", 100.0 * error)
    });
    let first = if title == "TTFT" { format!("{run} ") } else { String::new() };
    format!("| {first}| {title} | {} |", errors.join(" | "))
}

fn worst(report: &Value) -> f64 {
    100.0 * report["worst"]["error"].as_f64().unwrap()
}

/// Breaks with any change of the model that moves a latency by a hundredth of a percent.
#[test]
fn errors_on_measured_runs_are_published() {
    for (name, title) in MEASURED {
        let Some(folder) = run_folder(name) else { return };
        let report = replayed(&folder);
        for metric in [["TTFT", "ttft_ms"], ["TPOT", "tpot_ms"], ["E2E", "e2e_ms"]] {
            assert_published(&line(title, &report, metric));
        }
        assert!(worst(&report).abs() <= 1.9, "README.md says 1.9 %");
    }
    assert!(page(include_str!("../../../README.md")).contains("are met within 1.9 %"));
}

/// Breaks with any change of the model that shows in three digits.
#[test]
fn runs_without_measurements_are_published() {
    let names = ["rtx4090-llama-3.1-8b", "rtxpro6000-qwen3-30b-a3b-dp2-ep2"];
    let Some([card, ranks]) = names.map(run_folder).into_iter().collect::<Option<Vec<_>>>().map(|folders| {
        let reports: Vec<Value> = folders.iter().map(|folder| replayed(folder)).collect();
        <[Value; 2]>::try_from(reports).unwrap()
    }) else {
        return;
    };
    let mean = |report: &Value, key: &str| report["metrics"][key]["mean"]["simulated"].as_f64().unwrap();
    let [ttft, tpot, e2e] = ["ttft_ms", "tpot_ms", "e2e_ms"].map(|key| mean(&card, key));
    let preemptions = &card["counts"]["preemptions"];
    let (ttft, e2e) = (ttft / 1e3, e2e / 1e3);
    assert_published(&format!(
        "({preemptions} preemptions; mean TTFT {ttft:.1} s, TPOT {tpot:.1} ms, E2E {e2e:.1} s)"
    ));
    let [ttft, tpot, e2e] = ["ttft_ms", "tpot_ms", "e2e_ms"].map(|key| mean(&ranks, key));
    assert_published(&format!("({:.2} s, {tpot:.1} ms, {:.1} s)", ttft / 1e3, e2e / 1e3));
}

/// A run without one rule: what to write over its description, and over its tables.
struct Without {
    rule: &'static str,
    timing: Value,
    run: Value,
    table: Option<Table>,
}

/// The name of a table, and what its text becomes.
type Table = (&'static str, fn(&str) -> String);

impl Without {
    fn timing(rule: &'static str, timing: Value) -> Self {
        Self { rule, timing, run: json!({}), table: None }
    }

    fn table(rule: &'static str, table: Table) -> Self {
        Self { rule, timing: json!({}), run: json!({}), table: Some(table) }
    }

    /// The error farthest off of the run called `name`, in percent.
    fn worst(&self, name: &str, original: &Path) -> f64 {
        let folder = tempfile::tempdir().unwrap();
        copy(original, folder.path());
        copy(&original.join("profile"), &folder.path().join("profile"));
        if let Some((table, change)) = self.table {
            let packed = folder.path().join(format!("profile/{table}.csv.gz"));
            let mut text = String::new();
            GzDecoder::new(fs::File::open(&packed).unwrap()).read_to_string(&mut text).unwrap();
            fs::remove_file(packed).unwrap();
            fs::write(folder.path().join(format!("profile/{table}.csv")), change(&text)).unwrap();
        }
        let description = folder.path().join("run.json");
        let mut run: Value = serde_json::from_slice(&fs::read(&description).unwrap()).unwrap();
        let profile = kernel_profiles().iter().find(|profile| profile.name == name).unwrap();
        run["timing"] = Value::Object(profile.content.parameters.clone());
        run["timing"]["name"] = json!("kernels");
        run["timing"]["path"] = json!(folder.path().join("profile"));
        laid_over(&mut run["timing"], &self.timing);
        laid_over(&mut run, &self.run);
        fs::write(description, run.to_string()).unwrap();
        worst(&replayed(folder.path()))
    }
}

/// The files of a folder, not those inside its folders.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

fn laid_over(value: &mut Value, changes: &Value) {
    for (key, change) in changes.as_object().unwrap() {
        value[key] = change.clone();
    }
}

/// The skew of a batch is nothing where the longest context takes no longer than the mean one.
fn without_skew(_: &str) -> String {
    "regime,n,kp,kv_mean,t_mean_us,t_max_us,t_skew_us\npure,256,0,100,10,20,10\n".to_owned()
}

/// Only contexts that are powers of two.
fn powers_of_two(text: &str) -> String {
    let is_kept = |line: &&str| {
        let cells: Vec<&str> = line.split(',').collect();
        let power =
            |cell: &str| cell.parse::<u32>().map_or(true, |tokens| tokens == 0 || tokens.is_power_of_two());
        power(cells[1]) && power(cells[3])
    };
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

/// Breaks when a rule loses its effect.
#[test]
fn what_a_rule_is_worth_is_published() {
    let folders: Vec<_> = MEASURED.iter().filter_map(|(name, _)| Some((*name, run_folder(name)?))).collect();
    if folders.is_empty() {
        return;
    }
    let no_link = json!({ "quick_start_us": 0.0, "start_us": 0.0, "gigabytes_per_second": 1e12 });
    let no_prefix_cache =
        json!({ "num_gpu_blocks": 1_000_000, "block_size": 16, "enable_prefix_caching": false });
    let rules = [
        Without::timing("no link", json!({ "link": no_link })),
        Without::table("no skew", ("skew", without_skew)),
        Without::timing("no 4 ms", json!({ "host": { "eager_us": 0.0 } })),
        Without {
            run: json!({ "kv_cache": no_prefix_cache }),
            ..Without::timing("no prefix cache", json!({}))
        },
        Without::timing("no 0.35 ms", json!({ "host": { "pass_us": 0.0 } })),
        Without::table("power-of-two lengths only", ("attention", powers_of_two)),
    ];
    let found = rules.iter().map(|without| {
        let errors = folders.iter().map(|(name, folder)| without.worst(name, folder));
        let worst = errors.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap();
        format!("{} {worst:+.1} %", without.rule)
    });
    assert_published(&found.collect::<Vec<_>>().join(", "));
}
