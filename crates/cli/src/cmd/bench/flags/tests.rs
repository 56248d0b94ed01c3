//! What people type: every invocation of the product text, and what the parser itself refuses.

use clap::Parser;
use tempfile::TempDir;
use wavetank::BenchPlan;

use super::*;

/// Every single run of the product text; CACHE and DATASET stand for its paths.
const INVOCATIONS: &[&str] = &[
    "--model llama3.1-8b --num-users 200 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 0 \
     --max-concurrent-allocs 16 --generation-mode none --cache-dir CACHE --seed 42 --output \
     results_storage_stress.json",
    "--model llama3.1-8b --num-users 100 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
     --max-concurrent-allocs 0 --generation-mode none --cache-dir CACHE --seed 42 --output \
     results_storage_throughput.json",
    "--model llama3.1-8b --num-users 100 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 32 \
     --generation-mode realistic --cache-dir CACHE --seed 42 --output \
     results_realistic_production.json",
    "--model llama3.1-8b --num-users 20 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 32 \
     --enable-autoscaling --autoscaler-mode qos --generation-mode realistic --cache-dir CACHE --seed \
     42 --output results_autoscaling_qos.json",
    "--model llama3.1-70b-instruct --num-users 10 --duration 180 --gpu-mem-gb 0 --cpu-mem-gb 32 \
     --enable-autoscaling --autoscaler-mode capacity --generation-mode none --cache-dir CACHE --seed \
     42 --output results_autoscaling_capacity.json",
    "--model llama3.1-8b --num-users 10 --duration 120 --gpu-mem-gb 24 --cpu-mem-gb 4 \
     --generation-mode deterministic --seed 42 --output validation_kv_cache_gpu_only.json",
    "--model llama3.1-8b --num-users 20 --duration 120 --gpu-mem-gb 8 --cpu-mem-gb 32 \
     --generation-mode deterministic --seed 42 --output validation_kv_cache_offload.json",
    "--model llama3.1-8b --num-users 200 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 0 \
     --max-concurrent-allocs 16 --generation-mode none --seed 42 --output \
     mlperf_v3_stress_8b_trial1.json",
    "--model llama3.1-70b-instruct --num-users 70 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 0 \
     --max-concurrent-allocs 4 --generation-mode none --seed 42 --output \
     mlperf_v3_stress_70b_trial1.json",
    "--model llama3.1-8b --num-users 100 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
     --max-concurrent-allocs 0 --generation-mode none --seed 42 --output \
     mlperf_v3_throughput_8b_trial1.json",
    "--model llama3.1-70b-instruct --num-users 50 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
     --max-concurrent-allocs 4 --generation-mode none --seed 42 --output \
     mlperf_v3_throughput_70b_trial1.json",
    "--model llama3.1-8b --num-users 50 --duration 300 --gpu-mem-gb 0 --cpu-mem-gb 4 \
     --max-concurrent-allocs 4 --generation-mode realistic --seed 42 --output \
     mlperf_v3_realistic_8b.json",
    "--model llama3.1-8b --num-users 200 --duration 180 --gpu-mem-gb 0 --cpu-mem-gb 0 \
     --max-concurrent-allocs 16 --generation-mode none --cache-dir CACHE --seed 42 --output \
     results_storage_stress.json",
    "--model llama3.1-8b --num-users 100 --duration 180 --gpu-mem-gb 0 --cpu-mem-gb 4 \
     --max-concurrent-allocs 0 --generation-mode none --cache-dir CACHE --seed 42 --output \
     results_storage_throughput.json",
    "--model llama3.1-70b-instruct --num-users 10 --duration 180 --gpu-mem-gb 0 --cpu-mem-gb 4 \
     --enable-autoscaling --autoscaler-mode capacity --generation-mode none --cache-dir CACHE --seed \
     42 --output results_autoscaling_capacity.json",
    "--model llama3.1-8b --num-users 150 --duration 600 --gpu-mem-gb 0 --cpu-mem-gb 2 \
     --generation-mode realistic --performance-profile throughput --seed 42 --output \
     mlperf_v3_storage_submission_8b.json",
    "--model llama3.1-70b-instruct --num-users 40 --duration 600 --gpu-mem-gb 0 --cpu-mem-gb 4 \
     --generation-mode realistic --performance-profile throughput --seed 42 --output \
     mlperf_v3_storage_submission_70b.json",
    "--model llama3.1-8b --num-users 30 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 32 --enable-rag \
     --generation-mode realistic --cache-dir CACHE --seed 42 --output results_rag_workload.json",
    "--model llama3.1-70b-instruct --num-users 10 --duration 300 --gpu-mem-gb 16 --cpu-mem-gb 64 \
     --enable-rag --enable-autoscaling --autoscaler-mode capacity --generation-mode realistic \
     --cache-dir CACHE --seed 42 --output results_max_stress.json",
    "--model llama3.1-8b --dataset-path DATASET --max-conversations 500 --num-users 50 --duration 300 \
     --gpu-mem-gb 0 --cpu-mem-gb 4 --generation-mode realistic --cache-dir CACHE --seed 42 --output \
     results_sharegpt.json",
    "--model llama3.1-8b --num-users 50 --duration 120 --gpu-mem-gb 0 --cpu-mem-gb 4 --seed 42 \
     --output results.json --xlsx-output results.xlsx",
    "--model llama3.1-8b --dataset-path DATASET --max-conversations 1000 --num-users 100 --duration \
     300 --gpu-mem-gb 0 --cpu-mem-gb 4 --generation-mode realistic --cache-dir CACHE --seed 42 \
     --output results_sharegpt_8b.json --xlsx-output results_sharegpt_8b.xlsx",
    "--model llama3.1-70b-instruct --dataset-path DATASET --max-conversations 500 --request-rate 5.0 \
     --num-users 50 --duration 600 --gpu-mem-gb 0 --cpu-mem-gb 8 --generation-mode none --cache-dir \
     CACHE --seed 42 --output results_sharegpt_70b.json",
    "--model llama3.1-8b --dataset-path DATASET --max-requests 10000 --num-users 75 --gpu-mem-gb 0 \
     --cpu-mem-gb 4 --generation-mode realistic --cache-dir CACHE --seed 42 --output \
     results_sharegpt_fixed.json",
];

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    what: BenchFlags,
    #[command(flatten)]
    output: BenchOutputFlags,
}

fn typed(line: &str) -> Result<Typed, clap::Error> {
    Typed::try_parse_from(std::iter::once("bench").chain(line.split_whitespace()))
}

#[test]
fn every_invocation_of_the_product_text_gives_a_plan() {
    let folder = TempDir::new().unwrap();
    let dataset = folder.path().join("dataset.json");
    std::fs::write(&dataset, "[]").unwrap();
    for line in INVOCATIONS {
        let line = line
            .replace("CACHE", folder.path().join("cache").to_str().unwrap())
            .replace("DATASET", dataset.to_str().unwrap());
        let flags = typed(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(flags.output.output.is_some() && !flags.output.is_quiet());
        let mut args: BenchArgs = flags.what.into();
        args.gpu_tier = args.gpu_mem_gb.filter(|gigabytes| *gigabytes > 0.0).map(|_| GpuTier::Sim);
        let plan = BenchPlan::of(&args).unwrap_or_else(|error| panic!("{line}: {error}"));
        let mut warnings = plan.warnings.iter().filter(|warning| !warning.starts_with("--cpu-mem-gb"));
        assert_eq!(warnings.next(), None, "{line}");
        assert_eq!(plan.temporary_cache, !line.contains("--cache-dir"), "{line}");
        assert_eq!(plan.dataset.is_some(), line.contains("--dataset-path"), "{line}");
        assert_eq!(plan.run.scaling.is_some(), line.contains("--enable-autoscaling"), "{line}");
        let roles = 1 + usize::from(plan.gpu_mem_gb > 0.0) + usize::from(plan.cpu_mem_gb > 0.0);
        assert_eq!(plan.run.tiers.len(), roles, "{line}");
    }
}

/// Typed once each, so that every field differs from its default.
#[test]
fn every_flag_reaches_its_field() {
    let command = <Typed as clap::CommandFactory>::command();
    let outputs = ["help", "plan", "output", "xlsx_output", "mlperf", "fio_job", "quiet", "log_level"];
    let pictures = ["html", "plots", "plot_format", "timeseries"];
    let is_output = |id: &str| outputs.contains(&id) || pictures.contains(&id);
    let flags = command.get_arguments().filter(|flag| !is_output(flag.get_id().as_str()));
    let mut count = 0;
    for flag in flags {
        let long = flag.get_long().expect("a long flag");
        let takes = flag.get_action().takes_values();
        let words = ["1", "none", "cuda", "on_hit", "through", "closed", "once", "characters", "qos"];
        let words = words.iter().chain(&["throughput"]);
        let lines = words.map(|word| if takes { format!("--{long} {word}") } else { format!("--{long}") });
        let parsed = lines.filter_map(|line| typed(&line).ok()).next();
        let args: BenchArgs =
            parsed.unwrap_or_else(|| panic!("--{long} takes none of the words")).what.into();
        assert_ne!(args, BenchArgs::default(), "--{long} is lost");
        count += 1;
    }
    assert!(count > 60, "{count}");
}

#[test]
fn choices_are_listed_and_levels_are_quiet_or_not() {
    let refused = typed("--gpu-tier rocm").err().expect("it is refused").to_string();
    assert!(refused.contains("expected one of `auto`, `cuda`, `sim`, `off`"), "{refused}");
    let is_quiet = |line: &str| typed(line).unwrap_or_else(|error| panic!("{error}")).output.is_quiet();
    assert!(is_quiet("--quiet") && is_quiet("--log-level WARNING") && is_quiet("--log-level critical"));
    assert!(!is_quiet("") && !is_quiet("--log-level DEBUG") && !is_quiet("--log-level info"));
    assert!(typed("--log-level LOUD").is_err());
}
