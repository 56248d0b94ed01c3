//! What is right, before it is made wrong: the samples of the repository, and files that the command writes.

use std::fs;
use std::path::PathBuf;

use crate::torture::round::{Round, words};

/// A file and the commands that read such files, as `FILE`.
pub(super) struct Sample {
    pub(super) bytes: Vec<u8>,
    /// How the names of such files end.
    pub(super) ending: String,
    pub(super) lines: &'static [&'static str],
}

const TRACES: &[&str] = &[
    "replay FILE --report-json out.json --num-workers 2 --max-sim-time-seconds 1000",
    "replay FILE --report-json out.json --router-mode kv_router --num-workers 3 --replay-concurrency 4",
    "trace lint FILE",
    "trace stats FILE",
    "trace mrc FILE --csv out.csv",
    "trace convert FILE out.jsonl --to mooncake --fill hash=session,output=5",
    "trace anonymize FILE out.jsonl --to mooncake --key-file key",
    "trace scale FILE out.jsonl --to mooncake --rate 2",
    "bench --trace FILE --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.1 --backend null \
     --storage-capacity-gb 1 --duration 1 --generation-mode deterministic --max-requests 5 --quiet \
     --output out.json",
];
const REPORTS: &[&str] = &[
    "compare FILE result.json",
    "compare result.json FILE --fail-if p99_ttft_ms>+5%",
    "report FILE -o out.html",
];
const RECORDINGS: &[&str] = &[
    "trace info FILE",
    "trace replay FILE --output out.json",
    "trace replay FILE --mode closed --l1-size-gb 1",
];
const LOGS: &[&str] = &["trace info FILE", "trace replay FILE --backend null --storage-capacity-gb 1"];

/// Texts that are not files of the repository.
const WRITTEN: [(&str, &str, &[&str]); 8] = [
    (
        ".toml",
        "[base]\ntrace = \"trace.jsonl\"\nextra_engine_args = { block_size = 64 }\n[axes]\n\
         router_mode = [\"round_robin\", \"kv_router\"]\nnum_workers = [2, 4]\n\
         \"extra_engine_args.num_gpu_blocks\" = { from = 256, to = 4096, steps = 3, scale = \"log\" }\n\
         [pareto]\nminimize = [\"p99_ttft_ms\", \"gpu_hours\"]\n[sla]\np99_ttft_ms = 200\n\
         [cost]\ngpu_hour = 2.5\n",
        &["sweep FILE --fresh -o out.json"],
    ),
    (
        ".toml",
        "[base]\ntrace = \"trace.jsonl\"\n[axes]\nnum_workers = { from = 1, to = 4 }\n[sla]\n\
         p99_ttft_ms = 500\n[search]\ngoal = \"smallest_fleet\"\n",
        &["sweep FILE --fresh -o out.json"],
    ),
    (
        ".toml",
        "[[tier]]\nname = \"cpu\"\ncapacity = \"64GiB\"\nmedium = \"32GB/s\"\n[[tier]]\nname = \"disk\"\n\
         capacity = \"2TiB\"\nmedium = { name = \"queued\", latency_us = 100, gbps = 10 }\nshared = true\n",
        &["replay trace.jsonl --tier @FILE --extra-engine-args {\"kv_bytes_per_token\":1000} \
           --report-json out.json"],
    ),
    (
        ".toml",
        "l1_size_gb = 100\neviction_policy = \"isolated_lru\"\nquota = { alice = \"40GiB\" }\n\
         default_quota = \"1GiB\"\nl2 = [\"direct:nvme:2TiB\"]\nport = 0\nhttp_port = 0\nlease_seconds = 5\n\
         max_value = \"512MiB\"\n[[l2_adapter]]\ntype = \"resp\"\nhost = \"127.0.0.1\"\nmax_size_gb = 500\n",
        &["serve --config FILE --check"],
    ),
    (
        ".yaml",
        "user_templates:\n  chatbot: {context_range: [51, 410], generation_range: [5, 20], \
         think_time_range: [0.01, 0.05]}\n  coding: {context_range: [410, 2500], generation_range: [10, 50], \
         think_time_range: [0.02, 0.1]}\n",
        &["bench --config FILE --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.1 --backend null \
           --storage-capacity-gb 1 --duration 1 --generation-mode deterministic --max-requests 5 \
           --num-users 2 --quiet --output out.json"],
    ),
    (
        ".json",
        "{\"engine_type\":\"vllm\",\"block_size\":64,\"num_gpu_blocks\":2000,\"max_num_seqs\":64,\
         \"max_num_batched_tokens\":8192,\"enable_prefix_caching\":true,\"speedup_ratio\":1.0,\
         \"timing\":{\"name\":\"fixed\"},\"tiers\":[\"cpu=1GiB:32GB/s\"],\"kv_bytes_per_token\":1000}",
        &["replay trace.jsonl --extra-engine-args @FILE --report-json out.json"],
    ),
    (
        ".json",
        "{\"overlap_score_credit\":1.0,\"prefill_load_scale\":1.0,\"router_temperature\":0.5,\
         \"router_queue_threshold\":4.0,\"router_queue_policy\":\"fcfs\",\
         \"router_track_active_blocks\":true}",
        &["replay trace.jsonl --num-workers 3 --router-mode kv_router --router-config @FILE \
           --report-json out.json"],
    ),
    (
        ".json",
        "{\"min\":1,\"max\":4,\"interval_seconds\":10,\"window_seconds\":30,\"cooldown_seconds\":30,\
         \"step\":1,\"queue_up\":2,\"queue_down\":0.5,\"busy_up\":0.9,\"busy_down\":0.4}",
        &["replay trace.jsonl --autoscale load --autoscale-config @FILE --report-json out.json"],
    ),
];

/// Everything, and beside it what commands need that is right.
pub(super) fn collect(round: &mut Round) -> Result<Vec<Sample>, String> {
    let trace = fs::read_to_string("examples/conversation.jsonl").map_err(|e| e.to_string())?;
    let trace: String = trace.lines().take(40).flat_map(|line| [line, "\n"]).collect();
    round.write("trace.jsonl", &trace)?;
    round.write("key", "a key of many characters, for names that are changed\n")?;
    // For flags that name a file, to be overwritten.
    round.write("spare.jsonl", &trace)?;
    let mut samples = vec![Sample { bytes: trace.into_bytes(), ending: ".jsonl".to_owned(), lines: TRACES }];
    samples.extend(folder("crates/trace/tests/samples", TRACES)?);
    samples.extend(folder("crates/report/tests/samples/results", REPORTS)?);
    let written = |(ending, text, lines): (&str, &str, _)| Sample {
        bytes: text.as_bytes().to_vec(),
        ending: ending.to_owned(),
        lines,
    };
    samples.extend(WRITTEN.map(written));
    samples.extend(profiles()?);
    samples.extend(made(round)?);
    Ok(samples)
}

/// The files of a folder, sorted so that a seed means the same.
fn folder(path: &str, lines: &'static [&'static str]) -> Result<Vec<Sample>, String> {
    let entries = fs::read_dir(path).map_err(|e| format!("{path}: {e}"))?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|it| it.is_file()).collect();
    files.sort();
    files.iter().map(|file| sample(file, lines)).collect()
}

fn sample(file: &PathBuf, lines: &'static [&'static str]) -> Result<Sample, String> {
    let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // With the name in it: some formats are told by it.
    Ok(Sample { bytes, ending: format!(".{name}"), lines })
}

fn profiles() -> Result<Vec<Sample>, String> {
    let lines: &[&str] =
        &["profile timing FILE", "replay trace.jsonl --timing grid:FILE --report-json out.json"];
    Ok(vec![sample(&"profiles/llama31-8b-h200-tp1-bf16.json".into(), lines)?])
}

/// What the command itself writes: reports with their plans, a recording, a log, a sweep.
fn made(round: &mut Round) -> Result<Vec<Sample>, String> {
    let bench = "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.1 --backend null \
        --storage-capacity-gb 0.5 \
        --generation-mode deterministic --num-users 2 --duration 2 --max-requests 10 --quiet";
    round.done(&words("replay trace.jsonl --num-workers 2 --report-json result.json"))?;
    round.done(&words(&format!("{bench} --output bench.json --trace-output calls.lct")))?;
    round.done(&words(&format!("{bench} --output log.json --io-trace-log operations.csv")))?;
    round.write("tiny.toml", "[base]\ntrace = \"trace.jsonl\"\n[axes]\nnum_workers = [1, 2]\n")?;
    round.done(&words("sweep tiny.toml -o rows.json"))?;
    let plans: &[&str] = &["replay --plan FILE --report-json out.json", "report FILE -o out.html"];
    let benches: &[&str] = &["bench --plan FILE --quiet --output out.json", "report FILE -o out.html"];
    let merges: &[&str] = &["sweep merge FILE -o out.csv", "report FILE -o out.html"];
    let files: [(&str, &'static [&'static str]); 5] = [
        ("result.json", plans),
        ("bench.json", benches),
        ("rows.json", merges),
        ("calls.lct", RECORDINGS),
        ("operations.csv", LOGS),
    ];
    files.iter().map(|(name, lines)| sample(&round.path(name), lines)).collect()
}
