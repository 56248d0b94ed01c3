//! `bench online`: the same small loads in simulated time and on the wall clock, and by how much their means
//! differ.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::rate::median;
use super::{FOLDER, Options, Page, trace};
use crate::process::{self, cargo};

/// A load and the fleet that serves it.
struct Case {
    name: &'static str,
    line: String,
}

/// Means that are compared, by their keys in a report.
const MEANS: [&str; 3] = ["mean_ttft_ms", "mean_itl_ms", "mean_e2e_latency_ms"];
/// How far they may be apart on an idle machine, in percent.
const BOUND: f64 = 2.0;

/// One live run beside the model.
struct Run {
    /// By how many percent each mean is larger.
    apart: [f64; 3],
    timer_ms: [f64; 3],
    lag_p99_ms: f64,
}

struct Outcome {
    name: &'static str,
    modelled: [f64; 3],
    runs: Vec<Run>,
}

/// Runs every case once by the model and `reps` times live.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
    let outcomes: Result<Vec<_>, String> = cases()?.iter().map(|case| outcome(case, options.reps)).collect();
    let method = format!(
        "Each load offline (`--replay-mode offline`) and live (`--replay-mode online`), by how many percent \
         the live mean is larger: median of {} runs, and in brackets the one that is furthest away. Timer \
         error is from when a pass should have been over to when its worker woke up; dispatch lag from when \
         a request was due to when it was sent; both the median of the runs. The bound is {BOUND} % on an \
         idle machine.\n",
        options.reps
    );
    Ok(Page { method, table: table(&outcomes?) })
}

fn cases() -> Result<Vec<Case>, String> {
    let flat = "--input-tokens 500 --output-tokens 100";
    let mut cases = vec![
        Case { name: "1 worker", line: format!("{flat} --request-count 60 --request-rate 8") },
        Case {
            name: "1 worker, SGLang",
            line: format!(
                "{flat} --request-count 60 --request-rate 8 \
                 --extra-engine-args {{\"engine_type\":\"sglang\"}}"
            ),
        },
        Case {
            name: "4 workers",
            line: format!("{flat} --request-count 200 --request-rate 30 --num-workers 4"),
        },
        Case {
            name: "4 workers, kv_router, closed loop",
            line: format!(
                "{flat} --request-count 120 --replay-concurrency 16 --num-workers 4 --router-mode kv_router \
                 --shared-prefix-ratio 0.5 --num-prefix-groups 8"
            ),
        },
    ];
    if let Ok(conversation) = trace::conversation() {
        let some = trace::once("conversation-60.jsonl", |path| first_lines(&conversation, 60, path))?;
        let line = format!(
            "{some} --num-workers 4 --router-mode kv_router --arrival-speedup-ratio 2 \
             --extra-engine-args {{\"block_size\":64,\"speedup_ratio\":4}}"
        );
        cases.push(Case { name: "4 workers, kv_router, 60 requests of the conversation trace", line });
    }
    Ok(cases)
}

fn first_lines(trace: &str, count: usize, path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(trace).map_err(|e| format!("{trace}: {e}"))?;
    let some: String = text.split_inclusive('\n').take(count).collect();
    fs::write(path, some).map_err(|e| format!("{}: {e}", path.display()))
}

fn outcome(case: &Case, reps: usize) -> Result<Outcome, String> {
    eprintln!("measuring {} ({reps} runs)", case.name);
    let modelled = means(&replay(case, "offline")?)?;
    let runs: Result<_, String> = (0..reps).map(|_| Run::of(&replay(case, "online")?, modelled)).collect();
    Ok(Outcome { name: case.name, modelled, runs: runs? })
}

fn replay(case: &Case, mode: &str) -> Result<Value, String> {
    let report = format!("{FOLDER}/online.json");
    let mut command = Command::new(process::release_binary());
    command.arg("replay").args(case.line.split_whitespace());
    command.args(["--replay-mode", mode, "--report-json", &report]);
    process::output_of(&mut command)?;
    let text = fs::read_to_string(&report).map_err(|e| format!("{report}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("{report}: {e}"))
}

fn number(report: &Value, pointer: &str) -> Result<f64, String> {
    report.pointer(pointer).and_then(Value::as_f64).ok_or_else(|| format!("the report has no {pointer}"))
}

fn means(report: &Value) -> Result<[f64; 3], String> {
    let [ttft, itl, e2e] = MEANS.map(|key| number(report, &format!("/{key}")));
    Ok([ttft?, itl?, e2e?])
}

impl Run {
    fn of(report: &Value, modelled: [f64; 3]) -> Result<Self, String> {
        let live = means(report)?;
        let timer = |key| number(report, &format!("/live/timer_error_ms/{key}"));
        Ok(Self {
            apart: [0, 1, 2].map(|mean| (live[mean] / modelled[mean] - 1.0) * 100.0),
            timer_ms: [timer("p50")?, timer("p99")?, timer("max")?],
            // Nothing is due in a closed loop.
            lag_p99_ms: number(report, "/live/dispatch_lag_ms/p99").unwrap_or(0.0),
        })
    }
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = "\
| load | TTFT ms | apart % | ITL ms | apart % | E2E ms | apart % | timer p50 ms | p99 | max | lag p99 ms |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"
    .to_owned();
    for Outcome { name, modelled, runs } in outcomes {
        let all = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
        text += &format!("| {name} |");
        for (mean, modelled) in modelled.iter().enumerate() {
            let apart = all(&|run| run.apart[mean]);
            let furthest = apart.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
            text += &format!(" {modelled:.2} | {:.2} ({furthest:.2}) |", median(&apart));
        }
        for part in 0..3 {
            text += &format!(" {:.3} |", median(&all(&|run| run.timer_ms[part])));
        }
        text += &format!(" {:.3} |\n", median(&all(&|run| run.lag_p99_ms)));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_has_the_median_and_the_furthest() {
        let report = |ttft: f64| {
            json!({
                "mean_ttft_ms": ttft, "mean_itl_ms": 5.0, "mean_e2e_latency_ms": 99.0,
                "live": { "timer_error_ms": { "p50": 0.01, "p99": 0.2, "max": 3.0 } },
            })
        };
        let modelled = [10.0, 5.0, 100.0];
        let run = |ttft| Run::of(&report(ttft), modelled).unwrap();
        let outcome = Outcome { name: "x", modelled, runs: vec![run(10.0), run(10.1), run(9.0)] };
        let row = table(&[outcome]).lines().nth(2).unwrap().to_owned();
        let wanted = "| x | 10.00 | 0.00 (-10.00) | 5.00 | 0.00 (0.00) | 100.00 | -1.00 (-1.00) | 0.010 | \
                      0.200 | 3.000 | 0.000 |";
        assert_eq!(row, wanted);
    }
}
