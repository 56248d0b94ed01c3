//! Every single-run command of the product text, scaled down: it runs, its report has every key, and what has
//! to hold for every report does.

use std::path::Path;
use std::sync::Mutex;

use super::{Stand, invariants, keys};

/// Where it stands, and what is typed after `python3 kv-cache.py`.
const INVOCATIONS: &[(&str, &str)] = &[
    (
        "Step 1: Isolate and Test Storage Performance (Maximum Stress)",
        "--model llama3.1-8b --num-users 200 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 0 \
         --max-concurrent-allocs 16 --generation-mode none --cache-dir /mnt/nvme --seed 42 \
         --output results_storage_stress.json",
    ),
    (
        "Step 2: Test Storage Throughput (Traditional Metric)",
        "--model llama3.1-8b --num-users 100 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --max-concurrent-allocs 0 --generation-mode none --cache-dir /mnt/nvme --seed 42 \
         --output results_storage_throughput.json",
    ),
    (
        "Step 3: Realistic Multi-Tier Configuration",
        "--model llama3.1-8b --num-users 100 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 32 \
         --generation-mode realistic --cache-dir /mnt/nvme --seed 42 \
         --output results_realistic_production.json",
    ),
    (
        "Step 4: Discover Your System's Maximum User Load (QoS Mode)",
        "--model llama3.1-8b --num-users 20 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 32 \
         --enable-autoscaling --autoscaler-mode qos --generation-mode realistic --cache-dir /mnt/nvme \
         --seed 42 --output results_autoscaling_qos.json",
    ),
    (
        "Step 5: Discover Your System's Peak Throughput (Capacity Mode)",
        "--model llama3.1-70b-instruct --num-users 10 --duration 180 --gpu-mem-gb 0 --cpu-mem-gb 32 \
         --enable-autoscaling --autoscaler-mode capacity --generation-mode none --cache-dir /mnt/nvme \
         --seed 42 --output results_autoscaling_capacity.json",
    ),
    (
        "K. The Importance of Realism: ShareGPT",
        "--model llama3.1-70b-instruct --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json \
         --gpu-mem-gb 0 --cpu-mem-gb 2 --cache-dir /mnt/nvme --num-users 50 --duration 300 \
         --generation-mode none",
    ),
    (
        "K. The Importance of Realism: Synthetic",
        "--model llama3.1-70b-instruct --gpu-mem-gb 0 --cpu-mem-gb 2 --cache-dir /mnt/nvme \
         --num-users 50 --duration 300 --generation-mode none",
    ),
    (
        "Step 1: Baseline Validation (GPU-Only)",
        "--model llama3.1-8b --num-users 10 --duration 120 --gpu-mem-gb 24 --cpu-mem-gb 4 \
         --generation-mode deterministic --seed 42 --output validation_kv_cache_gpu_only.json",
    ),
    (
        "Step 2: Offloading Validation (GPU + CPU)",
        "--model llama3.1-8b --num-users 20 --duration 120 --gpu-mem-gb 8 --cpu-mem-gb 32 \
         --generation-mode deterministic --seed 42 --output validation_kv_cache_offload.json",
    ),
    (
        "Standard Submission: llama3.1-8b (Maximum Storage Stress)",
        "--model llama3.1-8b --num-users 200 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 0 \
         --max-concurrent-allocs 16 --generation-mode none --seed 42 \
         --output mlperf_v3_stress_8b_trial${trial}.json",
    ),
    (
        "Large Model Submission: llama3.1-70b-instruct (Maximum Per-Request Stress)",
        "--model llama3.1-70b-instruct --num-users 70 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 0 \
         --max-concurrent-allocs 4 --generation-mode none --seed 42 \
         --output mlperf_v3_stress_70b_trial${trial}.json",
    ),
    (
        "Standard Submission: llama3.1-8b (Storage Throughput)",
        "--model llama3.1-8b --num-users 100 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --max-concurrent-allocs 0 --generation-mode none --seed 42 \
         --output mlperf_v3_throughput_8b_trial${trial}.json",
    ),
    (
        "Large Model Submission: llama3.1-70b-instruct (Storage Throughput)",
        "--model llama3.1-70b-instruct --num-users 50 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --max-concurrent-allocs 4 --generation-mode none --seed 42 \
         --output mlperf_v3_throughput_70b_trial${trial}.json",
    ),
    (
        "Option 3: Realistic Production Simulation",
        "--model llama3.1-8b --num-users 50 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --max-concurrent-allocs 4 --generation-mode realistic --seed 42 \
         --output mlperf_v3_realistic_8b.json",
    ),
    (
        "Test 1: Maximum Storage Stress (Discovery-Validated)",
        "--model llama3.1-8b --num-users 200 --duration 180 --gpu-mem-gb 0 --cpu-mem-gb 0 \
         --max-concurrent-allocs 16 --generation-mode none --cache-dir /mnt/nvme --seed 42 \
         --output results_storage_stress.json",
    ),
    (
        "Test 2: Storage Throughput Benchmark (Traditional Metric)",
        "--model llama3.1-8b --num-users 100 --duration 180 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --max-concurrent-allocs 0 --generation-mode none --cache-dir /mnt/nvme --seed 42 \
         --output results_storage_throughput.json",
    ),
    (
        "Test 3: Realistic Three-Tier Workload",
        "--model llama3.1-8b --num-users 100 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 32 \
         --generation-mode realistic --cache-dir /mnt/nvme --seed 42 \
         --output results_realistic_production.json",
    ),
    (
        "Test 4: Autoscaling for Max Users (QoS Mode)",
        "--model llama3.1-8b --num-users 20 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 32 \
         --enable-autoscaling --autoscaler-mode qos --generation-mode realistic --cache-dir /mnt/nvme \
         --seed 42 --output results_autoscaling_qos.json",
    ),
    (
        "Test 5: Autoscaling for Peak Throughput (Capacity Mode)",
        "--model llama3.1-70b-instruct --num-users 10 --duration 180 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --enable-autoscaling --autoscaler-mode capacity --generation-mode none --cache-dir /mnt/nvme \
         --seed 42 --output results_autoscaling_capacity.json",
    ),
    (
        "Test 5: MLPerf Storage Submission (8B Model)",
        "--model llama3.1-8b --num-users 150 --duration 600 --gpu-mem-gb 0 --cpu-mem-gb 2 \
         --generation-mode realistic --performance-profile throughput --seed 42 \
         --output mlperf_v3_storage_submission_8b.json",
    ),
    (
        "Test 6: MLPerf Storage Submission (70B Model)",
        "--model llama3.1-70b-instruct --num-users 40 --duration 600 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --generation-mode realistic --performance-profile throughput --seed 42 \
         --output mlperf_v3_storage_submission_70b.json",
    ),
    (
        "Test 7: RAG Workload Simulation",
        "--model llama3.1-8b --num-users 30 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 32 \
         --enable-rag --generation-mode realistic --cache-dir /mnt/nvme --seed 42 \
         --output results_rag_workload.json",
    ),
    (
        "Test 8: Maximum Stress (The Kitchen Sink)",
        "--model llama3.1-70b-instruct --num-users 10 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 64 \
         --enable-rag --enable-autoscaling --autoscaler-mode capacity --generation-mode realistic \
         --cache-dir /mnt/nvme --seed 42 --output results_max_stress.json",
    ),
    (
        "Test 9: ShareGPT Workload Replay",
        "--model llama3.1-70b-instruct --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json \
         --max-conversations 1000 --gpu-mem-gb 0 --cpu-mem-gb 2 --cache-dir /mnt/nvme --num-users 50 \
         --duration 300 --generation-mode none --output results_sharegpt_replay.json",
    ),
    (
        "ShareGPT Integration",
        "--model llama3.1-8b --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json \
         --max-conversations 500 --num-users 50 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --generation-mode realistic --cache-dir /mnt/nvme --seed 42 --output results_sharegpt.json",
    ),
    (
        "Excel Export",
        "--model llama3.1-8b --num-users 50 --duration 120 --gpu-mem-gb 0 --cpu-mem-gb 4 --seed 42 \
         --output results.json --xlsx-output results.xlsx",
    ),
    (
        "ShareGPT Storage Validation (8B Model)",
        "--model llama3.1-8b --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json \
         --max-conversations 1000 --num-users 100 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --generation-mode realistic --cache-dir /mnt/nvme --seed 42 \
         --output results_sharegpt_8b.json --xlsx-output results_sharegpt_8b.xlsx",
    ),
    (
        "ShareGPT High-Stress (70B Model)",
        "--model llama3.1-70b-instruct --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json \
         --max-conversations 500 --request-rate 5.0 --num-users 50 --duration 600 --gpu-mem-gb 0 \
         --cpu-mem-gb 8 --generation-mode none --cache-dir /mnt/nvme --seed 42 \
         --output results_sharegpt_70b.json",
    ),
    (
        "ShareGPT Fixed Request Count",
        "--model llama3.1-8b --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json \
         --max-requests 10000 --num-users 75 --gpu-mem-gb 0 --cpu-mem-gb 4 \
         --generation-mode realistic --cache-dir /mnt/nvme --seed 42 \
         --output results_sharegpt_fixed.json",
    ),
];
/// How many run at a time.
const THREADS: usize = 2;

/// The same for a machine without much of anything: a second, few users, little memory, a modelled GPU.
/// Models stay where requests are short.
fn scaled(typed: &str) -> String {
    let has = |flag: &str| typed.split_whitespace().any(|word| word == flag);
    let is_played = has("--dataset-path");
    let mut words = typed.split_whitespace().peekable();
    let mut line = "--storage-capacity-gb 1 --config scaled.yaml".to_owned();
    while let Some(flag) = words.next() {
        let value = words.next_if(|word| !word.starts_with("--")).unwrap_or_default();
        let count = || value.parse::<f64>().expect("a number");
        line += &match flag {
            "--model" if !is_played => " --model tiny-1b".to_owned(),
            "--num-users" => format!(" --num-users {}", count().min(8.0)),
            "--duration" => " --duration 1".to_owned(),
            "--gpu-mem-gb" if count() > 0.0 => " --gpu-mem-gb 0.03 --gpu-tier sim".to_owned(),
            "--cpu-mem-gb" if count() > 0.0 => format!(" --cpu-mem-gb {}", (count() / 64.0).min(0.25)),
            "--cache-dir" => " --cache-dir cache".to_owned(),
            "--dataset-path" => " --dataset-path talks.json".to_owned(),
            "--max-requests" => " --max-requests 20".to_owned(),
            "--enable-autoscaling" => " --enable-autoscaling --scale-interval 0.3".to_owned(),
            "--output" => " --output r.json".to_owned(),
            "--xlsx-output" => " --xlsx-output r.xlsx".to_owned(),
            _ => format!(" {flag} {value}"),
        };
    }
    // Without a warm-up every request is accounted for; with one, some.
    if has("none") { line + " --warmup 0" } else { line }
}

#[test]
fn every_invocation_runs_and_its_numbers_add_up() {
    let rows = Mutex::new(INVOCATIONS.iter());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((place, typed)) = next(&rows) {
                    runs(place, typed);
                }
            });
        }
    });
}

fn next<T>(rows: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    rows.lock().expect("nobody panics with it").next()
}

fn runs(place: &str, typed: &str) {
    let stand = Stand::new();
    let line = scaled(typed);
    let run = stand.run(&line);
    assert_eq!(run.code, Some(0), "{place}: {}", run.stderr);
    stand.is_clean(place);
    let name = stand
        .sandbox
        .names_in("")
        .into_iter()
        .find(|name| name == "r.json" || name.starts_with("benchmark_results_"));
    let report = stand.sandbox.report(&name.expect("a report")).json();
    keys::check(&report, place);
    invariants::check(&report, place);
    assert_eq!(report["partial"], false, "{place}");
    assert!(report["requests_completed"].as_u64() > Some(0), "{place}: {report:#}");
    let scales = typed.contains("--enable-autoscaling");
    assert_eq!(report["autoscaling_summary"].is_null(), !scales, "{place}");
    assert_eq!(stand.sandbox.path("r.xlsx").exists(), typed.contains("--xlsx-output"), "{place}");
}

/// Breaks when the product text has a command that the table has not.
#[test]
fn the_table_is_complete() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    let Ok(entries) = std::fs::read_dir(seeds) else { return };
    let is_product =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("001_"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let path = paths.into_iter().find(|path| is_product(path)).expect("the product text");
    let text = std::fs::read_to_string(path).expect("a text").replace("\\\n", " ");
    let commands = text.lines().filter_map(|line| line.trim().strip_prefix("python3 kv-cache"));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let known: Vec<Vec<String>> = INVOCATIONS.iter().map(|(_, typed)| words(typed)).collect();
    let mut count = 0;
    for command in commands {
        count += 1;
        assert!(known.contains(&words(command)[1..].to_vec()), "python3 kv-cache{command}");
    }
    assert_eq!(count, INVOCATIONS.len());
}
