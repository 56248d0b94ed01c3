//! `bench router`: how far the lot of the KV router spreads a run, ours and with `--peer` the reference's,
//! and how far the two are apart over its settings.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::replay::SUITE;
use super::{FOLDER, Options, Page, trace};
use crate::process::{self, cargo, output_of};

/// Requests of the slice.
const SLICE: usize = 1000;
/// Seeds of ours, and runs of the reference, that a spread is taken over.
const SEEDS: usize = 10;
const PEER_RUNS: usize = 12;

/// What a spread is shown of: a key of the reports, and its name.
const METRICS: [(&str, &str); 8] = [
    ("mean_ttft_ms", "mean TTFT"),
    ("median_ttft_ms", "median TTFT"),
    ("p90_ttft_ms", "P90 TTFT"),
    ("mean_itl_ms", "mean ITL"),
    ("mean_e2e_latency_ms", "mean end-to-end"),
    ("p99_e2e_latency_ms", "P99 end-to-end"),
    ("duration_ms", "duration"),
    ("prefix_cache_reused_ratio", "prefix cache reused ratio"),
];

/// What the two are compared by over all settings.
const COMPARED: [&str; 2] = ["mean_ttft_ms", "mean_e2e_latency_ms"];

/// A fleet behind the KV router: workers, and `--router-config`.
struct Setting {
    workers: u32,
    config: &'static str,
}

/// The setting that spreads are shown of.
const PLAIN: Setting = Setting { workers: 4, config: "{}" };

const SETTINGS: [Setting; 11] = [
    Setting { workers: 2, config: "{}" },
    Setting { workers: 8, config: "{}" },
    Setting { workers: 4, config: r#"{"router_temperature":0.5}"# },
    Setting { workers: 4, config: r#"{"overlap_score_weight":0}"# },
    Setting { workers: 4, config: r#"{"overlap_score_weight":2}"# },
    Setting { workers: 4, config: r#"{"router_track_active_blocks":false}"# },
    Setting { workers: 4, config: r#"{"router_track_prefill_tokens":false}"# },
    Setting { workers: 4, config: r#"{"router_queue_threshold":0}"# },
    Setting { workers: 4, config: r#"{"router_queue_threshold":1}"# },
    Setting { workers: 4, config: r#"{"router_queue_threshold":16}"# },
    Setting { workers: 4, config: r#"{"router_queue_threshold":null}"# },
];

/// The reports of one program on one setting.
type Runs = Vec<Value>;

pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    let slice = trace::first_lines(&trace::conversation()?, SLICE)?;
    let mut notes = Vec::new();
    let peer = if options.peer { SUITE.peer.program(&mut notes) } else { None };
    let peer = peer.as_deref();
    let ours = PLAIN.ours(&slice, SEEDS)?;
    let theirs = peer.map(|python| PLAIN.theirs(&slice, python, PEER_RUNS)).transpose()?;
    let mut table = spreads(&ours, theirs.as_ref());
    if let Some(python) = peer {
        table += "\n| workers | `--router-config` | mean TTFT | mean end-to-end |\n|---:|---|---:|---:|\n";
        for setting in &SETTINGS {
            eprintln!("measuring {} workers, {}", setting.workers, setting.config);
            let ours = setting.ours(&slice, SEEDS)?;
            let theirs = setting.theirs(&slice, python, options.reps)?;
            let apart = COMPARED.map(|key| 100.0 * (mean(&ours, key) / mean(&theirs, key) - 1.0));
            let [ttft, e2e] = apart;
            let Setting { workers, config } = setting;
            let _ = writeln!(table, "| {workers} | `{config}` | {ttft:+.1} % | {e2e:+.1} % |");
        }
    }
    notes.iter().for_each(|note| table += &format!("\n{note}\n"));
    Ok(Page { method: method(options.reps), table })
}

fn method(reps: usize) -> String {
    format!(
        "`wavetank replay` and `python -m dynamo.replay` (ai-dynamo 1.4.2) on the first {SLICE} requests of \
         the Mooncake conversation trace, `--router-mode kv_router`, blocks of 64 tokens. First table: the \
         largest deviation from the mean over {SEEDS} seeds of ours and {PEER_RUNS} runs of the reference, \
         4 workers. Second table: the mean of {SEEDS} seeds of ours against that of {reps} runs of the \
         reference.\n"
    )
}

impl Setting {
    fn args(&self, slice: &str) -> Vec<String> {
        let line =
            format!("{slice} --num-workers {} --router-mode kv_router --trace-block-size 512", self.workers);
        let words = line.split(' ').map(str::to_owned);
        let json = ["--extra-engine-args", r#"{"block_size":64}"#, "--router-config", self.config];
        words.chain(json.map(str::to_owned)).collect()
    }

    fn ours(&self, slice: &str, seeds: usize) -> Result<Runs, String> {
        let seeds = (0..seeds).map(|seed| {
            let mut command = Command::new(process::release_binary());
            command.arg("replay").args(self.args(slice)).args(["--seed", &seed.to_string()]);
            reported(&mut command)
        });
        seeds.collect()
    }

    fn theirs(&self, slice: &str, python: &Path, runs: usize) -> Result<Runs, String> {
        let runs = (0..runs).map(|_| {
            let mut command = Command::new(python);
            command.args(["-m", SUITE.peer.module]).args(self.args(slice));
            reported(&mut command)
        });
        runs.collect()
    }
}

/// What a replay reports.
fn reported(command: &mut Command) -> Result<Value, String> {
    let path = PathBuf::from(format!("{FOLDER}/router.json"));
    output_of(command.arg("--report-json").arg(&path))?;
    let text = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn values(runs: &Runs, key: &str) -> Vec<f64> {
    runs.iter().filter_map(|report| report[key].as_f64()).collect()
}

fn mean(runs: &Runs, key: &str) -> f64 {
    let values = values(runs, key);
    values.iter().sum::<f64>() / values.len() as f64
}

/// The largest deviation from the mean, in percent of it.
fn spread(runs: &Runs, key: &str) -> f64 {
    let mean = mean(runs, key);
    values(runs, key).iter().map(|value| 100.0 * (value / mean - 1.0).abs()).fold(0.0, f64::max)
}

fn spreads(ours: &Runs, theirs: Option<&Runs>) -> String {
    let mut table = "| metric | ours | reference |\n|---|---:|---:|\n".to_owned();
    for (key, name) in METRICS {
        let theirs = theirs.map_or_else(|| "–".to_owned(), |runs| format!("{:.2} %", spread(runs, key)));
        let _ = writeln!(table, "| {name} | {:.2} % | {theirs} |", spread(ours, key));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_spread_is_the_largest_deviation_from_the_mean() {
        let runs: Runs = [90.0, 100.0, 125.0].map(|ttft| json!({ "mean_ttft_ms": ttft })).into();
        assert_eq!(format!("{:.2}", spread(&runs, "mean_ttft_ms")), "19.05");
        assert!(spreads(&runs, None).contains("| mean TTFT | 19.05 % | – |\n"));
    }
}
