//! `bench residual`: storage benchmarks on media that were measured (`bench --simulate`) against the same
//! ones on the devices, one request in flight and sixteen.
//!
//! Both are profiled before each load, for a profile is of its hour: what the drive drifted by in between
//! stands beside the errors. It is used before it is profiled first.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{FOLDER, Options, Page, store, trace};
use crate::process::{self, cargo, release_binary};

const SHAREGPT: &str = "../shared/data/traces/sharegpt_small.json.gz";
/// Where entries go; `WAVETANK_BENCH_DIRECTORY` names another place.
const PLACE: &str = "target/bench/residual";
const IN_FLIGHT: [u32; 2] = [1, 16];
const MIB: f64 = (1u64 << 20) as f64;

/// How both devices are measured: sizes of the entries, and one thread as the benchmark has.
const PROFILE: &str = "--sizes 64KiB,256KiB,1MiB,2MiB,4MiB,8MiB,16MiB --threads 1 --seconds-per-point 0.4 \
                       --sustained-seconds 0";
/// What all benchmarks have in common: memory holds 60 to 230 entries, and the drive's tier never fills.
const COMMON: &str = "--gpu-mem-gb 0 --model tiny-1b --generation-mode none --duration 3000 --backend direct \
                      --cpu-mem-gb 0.5 --cpu-mem-backed --storage-capacity-gb 6 --read-policy once \
                      --io-threads 1 --quiet";
/// Short contexts, and documents of a few chunks that half of the requests ask for.
const RAG_CONFIG: &str = "\
user_templates:
  chatbot: {context_range: [11, 80], generation_range: [2, 8], think_time_range: [0.0, 0.0]}
  coding: {context_range: [80, 320], generation_range: [2, 8], think_time_range: [0.0, 0.0]}
  document: {context_range: [80, 320], generation_range: [2, 8], think_time_range: [0.0, 0.0]}
rag:
  chunk_size_tokens: 128
  request_probability: 0.5
  small_model_doc_tokens_min: 400
  small_model_doc_tokens_max: 1200
";

/// A load.
struct Workload {
    name: &'static str,
    flags: &'static str,
}

const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "Mooncake",
        flags: "--trace target/bench/residual-mooncake.jsonl --trace-speedup 0 --replay-cycles 2",
    },
    Workload {
        name: "ShareGPT",
        flags: "--dataset-path target/bench/residual-sharegpt.json --max-requests 2000",
    },
    Workload {
        name: "RAG",
        flags: "--config target/bench/residual-rag.yaml --load closed --enable-rag --rag-num-docs 20 \
                --max-requests 3000",
    },
];

/// Profiles, simulates, runs and compares.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    inputs()?;
    let place = store::place(PLACE);
    fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let place = place.display().to_string();
    // A drive that was at rest is slower than one in use, and profiles are of one in use.
    real(&WORKLOADS[2], 16, &place, "warm")?;
    // One of another day says nothing of drift.
    let _ = fs::remove_file(profile_of("disk"));
    let (mut table, mut drifts) = (HEAD.to_owned(), String::new());
    for users in IN_FLIGHT {
        for workload in &WORKLOADS {
            let drift = profiled(&place)?;
            let told = |drift| format!("  - before {} at {users}: {drift}\n", workload.name);
            drifts.extend(drift.map(told));
            table += &compared(workload, users, &place, options.reps)?;
        }
    }
    let last = profiled(&place)?.unwrap_or_default();
    let loads: String = WORKLOADS.iter().map(|load| format!("- {}: `{}`\n", load.name, load.flags)).collect();
    let method = format!(
        "- file system: {}\n- the drive's profile against that of the load before:\n{drifts}  - after the \
         last run: {last}\n\n\
         For each load `wavetank profile tier memory|DIR {PROFILE}`, then `wavetank bench {COMMON} \
         --num-users N` with `--simulate cpu=memory.toml --simulate disk=disk.toml` and {} times without, \
         and `wavetank bench residual`. Loads (the first is 1,500 requests of the Mooncake conversation \
         trace, prompts scaled by 0.01 and answers by 0.02):\n\n{loads}\n```yaml\n{RAG_CONFIG}```\n\n\
         A row is within when bytes and hits are off by 1 % at most, means by 15 and P95 by 25.\n",
        store::file_system(Path::new(&place))?,
        options.reps,
    );
    Ok(Page { method, table })
}

fn profile_of(device: &str) -> String {
    format!("{FOLDER}/residual-{device}.toml")
}

/// Measures memory and the drive; how far the drive is from its last profile, if there is one.
fn profiled(place: &str) -> Result<Option<String>, String> {
    let [memory, disk, before] = ["memory", "disk", "disk-before"].map(profile_of);
    wavetank(&format!("profile tier memory {PROFILE} --depths 1,2,4 -o {memory}"))?;
    let drive = format!("profile tier {place} {PROFILE} --depths 1,2,4,8,16 -o {disk}");
    if fs::rename(&disk, &before).is_err() {
        return wavetank(&drive).map(|_| None);
    }
    let told = wavetank(&format!("{drive} --against {before}"))?;
    Ok(told.lines().find(|line| line.starts_with("Drift")).map(str::to_owned))
}

/// The files of the loads, under `target/bench`.
fn inputs() -> Result<(), String> {
    let whole = trace::conversation()?;
    let [cut, scaled] = ["cut", "mooncake"].map(|name| format!("{FOLDER}/residual-{name}.jsonl"));
    wavetank(&format!("trace slice {whole} {cut} --requests 0..1500"))?;
    wavetank(&format!("trace scale {cut} {scaled} --input-scale 0.01 --output-scale 0.02"))?;
    let sharegpt = process::output_of(Command::new("gzip").args(["-dc", SHAREGPT]))?;
    for (name, text) in [("sharegpt.json", sharegpt.as_str()), ("rag.yaml", RAG_CONFIG)] {
        let path = format!("{FOLDER}/residual-{name}");
        fs::write(&path, text).map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(())
}

const HEAD: &str = "\
| workload | in flight | tier | | simulated | real (median) | error | spread of real runs | within |
|---|---:|---|---|---:|---:|---:|---:|---|
";

/// One load, simulated and real.
fn compared(workload: &Workload, users: u32, place: &str, reps: usize) -> Result<String, String> {
    eprintln!("{}, {users} in flight", workload.name);
    let media = format!("--simulate cpu={} --simulate disk={}", profile_of("memory"), profile_of("disk"));
    let simulated = bench(workload, users, place, (&media, "simulated"))?;
    let runs = (0..reps).map(|run| real(workload, users, place, &run.to_string()));
    let runs = runs.collect::<Result<Vec<_>, String>>()?.join(" ");
    let output = format!("{FOLDER}/residual.json");
    wavetank(&format!("bench residual {simulated} {runs} --output {output}"))?;
    let text = fs::read_to_string(&output).map_err(|e| format!("{output}: {e}"))?;
    let found: Value = serde_json::from_str(&text).map_err(|e| format!("{output}: {e}"))?;
    let rows = found["rows"].as_array().into_iter().flatten();
    Ok(rows.map(|row| format!("| {} | {users} {}", workload.name, shown(row))).collect())
}

/// One of its numbers.
fn shown(row: &Value) -> String {
    let name = row["name"].as_str().unwrap_or_default();
    let value = |key: &str| {
        let value = row[key].as_f64().unwrap_or(f64::NAN);
        match name {
            _ if name.starts_with("bytes") => format!("{:.1} MiB", value / MIB),
            "hits" => format!("{value:.0}"),
            _ => format!("{value:.3} ms"),
        }
    };
    let percent = |key: &str| row[key].as_f64().unwrap_or(f64::NAN) * 100.0;
    format!(
        "| {} | {name} | {} | {} | {:+.2} % | {:.2} % | {} |\n",
        row["tier"].as_str().unwrap_or_default(),
        value("simulated"),
        value("median"),
        percent("error"),
        percent("spread"),
        row["passed"].as_bool().map_or("too few", |passed| if passed { "✓" } else { "✗" }),
    )
}

fn real(workload: &Workload, users: u32, place: &str, name: &str) -> Result<String, String> {
    bench(workload, users, place, ("", name))
}

/// The report of one benchmark.
fn bench(
    workload: &Workload,
    users: u32,
    place: &str,
    (media, name): (&str, &str),
) -> Result<String, String> {
    let output = format!("{FOLDER}/residual-{name}.json");
    let flags = workload.flags;
    wavetank(&format!(
        "bench {COMMON} {flags} --num-users {users} --cache-dir {place}/cache {media} --output {output}"
    ))?;
    Ok(output)
}

fn wavetank(line: &str) -> Result<String, String> {
    process::output_of(Command::new(release_binary()).args(line.split_whitespace()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Broken by: a row that nobody judged and that reads as one that failed.
    #[test]
    fn numbers_have_their_units() {
        let judged = |name: &str, value: f64, passed: Option<bool>| {
            shown(&json!({ "tier": "cpu", "name": name, "simulated": value, "median": 2.0 * value,
                           "error": -0.5, "spread": 0.01, "passed": passed }))
        };
        let row = |name: &str, value: f64| judged(name, value, Some(false));
        assert!(judged("hits", 7.0, Some(true)).ends_with("| ✓ |\n"));
        assert!(judged("write wait, mean", 7.0, None).ends_with("| too few |\n"));
        assert_eq!(row("hits", 7.0), "| cpu | hits | 7 | 14 | -50.00 % | 1.00 % | ✗ |\n");
        assert!(row("bytes read", MIB).contains("| 1.0 MiB | 2.0 MiB |"));
        assert!(row("read wait, mean", 0.25).contains("| 0.250 ms | 0.500 ms |"));
    }
}
