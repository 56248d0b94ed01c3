//! A benchmark as one would type it.

use serde::Serialize;
use serde_json::Value;

use crate::bench::args::BenchArgs;
use crate::bench::trials::TrialCount;

/// The line for `wavetank bench` that makes the same plan.
pub(super) fn of(args: &BenchArgs) -> String {
    let flags = flags(args).into_iter().map(|(flag, value)| match value {
        Some(value) => format!(" --{flag} {}", quoted(&value)),
        None => format!(" --{flag}"),
    });
    format!("wavetank bench{}", flags.collect::<String>())
}

type Flag = (&'static str, Option<String>);

/// The flags that scenarios use, as far as they are set.
fn flags(args: &BenchArgs) -> Vec<Flag> {
    let directory = args.cache_dir.as_ref().map(|path| path.display().to_string());
    let valued = [
        ("model", args.model.clone()),
        ("num-users", text(args.num_users)),
        ("duration", text(args.duration)),
        ("warmup", text(args.warmup)),
        ("gpu-tier", word(args.gpu_tier)),
        ("gpu-mem-gb", text(args.gpu_mem_gb)),
        ("cpu-mem-gb", text(args.cpu_mem_gb)),
        ("cache-dir", directory),
        ("storage-capacity-gb", text(args.storage_capacity_gb)),
        ("io-threads", text(args.io_threads)),
        ("io-depth", text(args.io_depth)),
        ("max-concurrent-allocs", text(args.max_concurrent_allocs)),
        ("generation-mode", word(args.generation_mode)),
        ("persona-mix", args.persona_mix.clone()),
        ("rag-num-docs", text(args.rag_num_docs)),
        ("autoscaler-mode", word(args.autoscaler_mode)),
        ("target-saturation", text(args.target_saturation)),
        ("scale-interval", text(args.scale_interval)),
        ("performance-profile", word(args.performance_profile)),
        ("trials", args.trials.map(trials)),
        ("cooldown", text(args.cooldown)),
        ("seed", text(args.seed)),
    ];
    let switches = [
        ("enable-rag", args.enable_rag),
        ("enable-autoscaling", args.enable_autoscaling),
        ("drop-page-cache", args.drop_page_cache),
    ];
    let valued = valued.into_iter().filter_map(|(flag, value)| Some((flag, Some(value?))));
    let switches = switches.into_iter().filter(|(_, on)| *on).map(|(flag, _)| (flag, None));
    valued.chain(switches).collect()
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn trials(count: TrialCount) -> String {
    match count {
        TrialCount::Number(number) => number.to_string(),
        TrialCount::Auto => "auto".to_owned(),
    }
}

/// A choice by the word for it.
fn word(value: Option<impl Serialize>) -> Option<String> {
    match serde_json::to_value(value?) {
        Ok(Value::String(word)) => Some(word),
        _ => unreachable!("choices are words"),
    }
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
