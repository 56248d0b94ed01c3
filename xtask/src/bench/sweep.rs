//! `bench sweep`: a thousand points in one process with one and with two threads, and searches for the
//! smallest fleet beside the grids they stand for.
//!
//! Rows that differ between thread counts, an answer that is not the grid's, and a search that runs more than
//! a fifth of the grid are failures, not numbers.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::measure::Sample;
use super::rate::median;
use super::{FOLDER, Options, Page, measure, trace};
use crate::process::{self, cargo};

/// Requests of the slice.
const SLICE: usize = 1000;
/// Of a grid, what a search may run.
const FIFTH: f64 = 0.2;

/// 10 x 2 x 10 x 5 points.
const POINTS: &str = r#"[base]
trace = "conversation-first-1000.jsonl"
[axes]
num_workers = { from = 2, to = 20, step = 2 }
router_mode = ["round_robin", "kv_router"]
"extra_engine_args.num_gpu_blocks" = { from = 1024, to = 65536, steps = 10, scale = "log" }
arrival_speedup_ratio = [0.5, 0.75, 1.0, 1.5, 2.0]
[pareto]
minimize = ["p99_ttft_ms", "gpu_hours"]
"#;

/// A search on the whole conversation trace.
struct Search {
    name: &'static str,
    spec: &'static str,
}

const SEARCHES: &[Search] = &[
    Search {
        name: "workers, 1 to 64",
        spec: r#"[base]
trace = "conversation.jsonl"
router_mode = "round_robin"
[axes]
num_workers = { from = 1, to = 64 }
[sla]
p99_ttft_ms = 2000
p99_e2e_latency_ms = 9500
"#,
    },
    Search {
        name: "workers with kv_router, 2 to 64",
        spec: r#"[base]
trace = "conversation.jsonl"
router_mode = "kv_router"
[axes]
num_workers = { from = 2, to = 64 }
[sla]
p99_ttft_ms = 1700
p99_e2e_latency_ms = 9000
"#,
    },
    Search {
        name: "prefill and decode, 16 x 16",
        spec: r#"[base]
trace = "conversation.jsonl"
router_mode = "kv_router"
prefill_engine_args = { worker_type = "prefill" }
decode_engine_args = { worker_type = "decode" }
[axes]
num_prefill_workers = { from = 1, to = 16 }
num_decode_workers = { from = 1, to = 16 }
[sla]
p99_ttft_ms = 1700
p99_e2e_latency_ms = 9000
"#,
    },
];

/// Measures points per second, then searches.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    let whole = trace::conversation()?;
    trace::first_lines(&whole, SLICE)?;
    let speed = speed(options.reps)?;
    let searches = SEARCHES.iter().map(search).collect::<Result<String, String>>()?;
    let specs: String = SEARCHES
        .iter()
        .map(|search| format!("\n{}:\n\n```toml\n{}```\n", search.name, search.spec))
        .collect();
    let method = format!(
        "`wavetank sweep FILE --fresh --threads N -o rows.csv` on the first {SLICE} requests of the Mooncake \
         conversation trace; points per second are 1,000 over the median wall time of the whole process, {} \
         runs of each in turn; peak memory is the largest resident set of all. Rows are the same bytes with \
         one and two threads. A search runs beside the grid of the same file on the whole \
         trace.\n\n```toml\n{POINTS}```\n{specs}",
        options.reps,
    );
    Ok(Page { method, table: format!("{speed}\n{SEARCH_HEAD}{searches}") })
}

/// A thousand points with one and with two threads.
fn speed(reps: usize) -> Result<String, String> {
    let spec = written("sweep-points.toml", POINTS)?;
    let mut samples: [Vec<Sample>; 2] = Default::default();
    let mut rows: Option<String> = None;
    for rep in 0..reps {
        for (threads, samples) in (1..).zip(&mut samples) {
            eprintln!("measuring 1,000 points, {threads} threads, run {}", rep + 1);
            let output = format!("{FOLDER}/sweep-{threads}.csv");
            let line = format!("sweep {spec} --fresh --threads {threads} -o {output}");
            samples.push(measure::in_fresh_process(&process::release_binary(), &words(&line))?);
            let found = fs::read_to_string(&output).map_err(|e| format!("{output}: {e}"))?;
            if *rows.get_or_insert_with(|| found.clone()) != found {
                return Err("rows differ between runs or thread counts".to_owned());
            }
        }
    }
    let points = rows.map_or(0, |rows| rows.lines().count() - 1);
    let wall = |samples: &[Sample]| median(&samples.iter().map(|sample| sample.wall_s).collect::<Vec<_>>());
    let rate = |samples: &[Sample]| points as f64 / wall(samples);
    let [one, two] = &samples;
    let peak = one.iter().chain(two).map(|sample| sample.max_rss_bytes).max().unwrap_or(0) as f64 / 1e6;
    let cpu = |samples: &[Sample]| median(&samples.iter().map(|sample| sample.cpu_s).collect::<Vec<_>>());
    let mut table = String::from("| what | measured | aim |\n|---|---:|---:|\n");
    let _ = writeln!(table, "| points | {points} | 1000 |");
    let _ = writeln!(table, "| points/s, one thread | {:.1} | |", rate(one));
    let _ = writeln!(table, "| points/s, two threads | {:.1} | 100 or more |", rate(two));
    let _ = writeln!(table, "| speed-up | {:.2} | 1.7 or more |", wall(one) / wall(two));
    let _ = writeln!(table, "| CPU s, one and two threads | {:.2}, {:.2} | |", cpu(one), cpu(two));
    let _ = writeln!(table, "| peak memory, MB | {peak:.1} | below 300 |");
    Ok(table)
}

const SEARCH_HEAD: &str = "\
| search | answer | GPUs | the grid's | runs | grid | share | wall s, search and grid |
|---|---|---:|---:|---:|---:|---:|---:|
";

/// One search beside its grid.
fn search(search: &Search) -> Result<String, String> {
    eprintln!("searching {}", search.name);
    let grid_spec = written("sweep-grid.toml", search.spec)?;
    let found_spec =
        written("sweep-search.toml", &format!("{}[search]\ngoal = \"smallest_fleet\"\n", search.spec))?;
    let (grid, grid_cost) = report(&grid_spec, "sweep-grid.json")?;
    let (found, found_cost) = report(&found_spec, "sweep-search.json")?;
    let answer = &found["search"];
    let (runs, all) = (number(&answer["runs"])?, number(&answer["grid"])?);
    let (gpus, fewest) = (number(&answer["gpus"])?, fewest(&grid)?);
    if gpus != fewest {
        return Err(format!("{}: the search says {gpus} GPUs, the grid {fewest}", search.name));
    }
    if runs > all * FIFTH {
        return Err(format!("{}: {runs} runs are more than a fifth of {all}", search.name));
    }
    Ok(format!(
        "| {} | `{}` | {gpus} | {fewest} | {runs} | {all} | {:.2} | {:.1}, {:.1} |\n",
        search.name,
        answer["answer"]["parameters"],
        runs / all,
        found_cost.wall_s,
        grid_cost.wall_s,
    ))
}

fn report(spec: &str, output: &str) -> Result<(Value, Sample), String> {
    let output = format!("{FOLDER}/{output}");
    let line = format!("sweep {spec} --fresh -o {output}");
    let cost = measure::in_fresh_process(&process::release_binary(), &words(&line))?;
    let text = fs::read_to_string(&output).map_err(|e| format!("{output}: {e}"))?;
    Ok((serde_json::from_str(&text).map_err(|e| format!("{output}: {e}"))?, cost))
}

/// The fewest GPUs of a row that meets the bounds.
fn fewest(grid: &Value) -> Result<f64, String> {
    let rows = grid["rows"].as_array().into_iter().flatten();
    let meeting =
        rows.filter(|row| row["meets_sla"] == true).filter_map(|row| row["metrics"]["gpus"].as_f64());
    meeting.min_by(f64::total_cmp).ok_or_else(|| "no row of the grid meets the bounds".to_owned())
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("{value} is no number: there is no answer"))
}

/// A file beside the traces.
fn written(name: &str, text: &str) -> Result<String, String> {
    let path = Path::new(FOLDER).join(name);
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path.display().to_string())
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_grids_answer_is_its_cheapest_good_row() {
        let row = |meets: bool, gpus: u32| json!({ "meets_sla": meets, "metrics": { "gpus": gpus } });
        let grid = json!({ "rows": [row(false, 1), row(true, 9), row(true, 4), row(false, 3)] });
        assert_eq!(fewest(&grid), Ok(4.0));
        assert!(fewest(&json!({ "rows": [row(false, 1)] })).is_err());
    }
}
