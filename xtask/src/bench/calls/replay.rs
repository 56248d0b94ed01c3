//! How fast recorded calls are made again, in virtual time and with a tier behind memory.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::bench::measure::{self, Sample};
use crate::bench::{FOLDER, rate};
use crate::process;

/// As it was while the recording was made.
const L2: &str = r#"{"type": "mock", "max_size_gb": 0.4, "mock_bandwidth_gb": 20.0, "eviction":
    {"eviction_policy": "LRU", "trigger_watermark": 0.9, "eviction_ratio": 0.1}}"#;
const SCHEDULE: &str = "../shared/data/lct/big.schedule.json";

pub(super) const METHOD: &str = "\
`replay` is `trace replay` of the same file in virtual time, with the sizes it was recorded with, two tiers, \
and the times of its eviction loops; calls per second are those of making the calls, without reading the \
file, as the report says (the reference: 2,520 calls/s at best).\n";

/// One run of it.
struct Run {
    sample: Sample,
    calls: u64,
    replay_s: f64,
    released: u64,
}

/// Measures it.
pub(super) fn measure(recording: &str, reps: usize) -> Result<String, String> {
    eprintln!("replaying {recording} ({reps} runs)");
    let runs = (0..reps).map(|_| run(recording)).collect::<Result<Vec<_>, _>>()?;
    Ok(table(&runs))
}

fn run(recording: &str) -> Result<Run, String> {
    let report = Path::new(FOLDER).join("calls-replay.json").display().to_string();
    let flags = ["--l2-adapter", L2, "--ticks", SCHEDULE, "--store-delay-ms", "3", "--quiet"];
    let args = ["trace", "replay", recording].into_iter().chain(flags).chain(["--output", &report]);
    let args: Vec<String> = args.map(str::to_owned).collect();
    let sample = measure::in_fresh_process(&process::release_binary(), &args)?;
    let text = fs::read_to_string(&report).map_err(|e| format!("{report}: {e}"))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| format!("trace replay: {e}"))?;
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).ok_or(format!("no {path}"));
    let count = |path: &str| number(path).map(|number| number as u64);
    Ok(Run {
        sample,
        calls: count("/tally/calls")?,
        replay_s: number("/wall/replay_s")?,
        released: count("/tally/released")?,
    })
}

#[allow(clippy::cast_precision_loss, reason = "calls and bytes are far fewer than 2^52")]
fn table(runs: &[Run]) -> String {
    let least = |of: fn(&Run) -> f64| runs.iter().map(of).fold(f64::INFINITY, f64::min);
    let times: Vec<f64> = runs.iter().map(|run| run.replay_s).collect();
    let calls = runs.first().map_or(0, |run| run.calls) as f64;
    let released = runs.first().map_or(0, |run| run.released);
    let peak = runs.iter().map(|run| run.sample.max_rss_bytes).max().unwrap_or(0) as f64 / 1e6;
    let (best, middle) = (calls / least(|run| run.replay_s) / 1e6, calls / rate::median(&times) / 1e6);
    let wall = least(|run| run.sample.wall_s);
    format!(
        "| case | calls | keys released | M calls/s (best) | M calls/s (median) | process wall s (least) | \
         peak MB |\n|---|---:|---:|---:|---:|---:|---:|\n\
         | replay | {calls} | {released} | {best:.2} | {middle:.2} | {wall:.4} | {peak:.1} |\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_per_second_are_those_of_the_replay() {
        let sample = Sample { cpu_s: 0.1, wall_s: 0.1, max_rss_bytes: 20_000_000 };
        let run = |replay_s| Run { sample, calls: 20_000, replay_s, released: 9 };
        let table = table(&[run(0.01), run(0.02), run(0.04)]);
        assert!(table.ends_with("| replay | 20000 | 9 | 2.00 | 1.00 | 0.1000 | 20.0 |\n"), "{table}");
    }
}
