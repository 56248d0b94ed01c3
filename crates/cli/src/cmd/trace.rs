//! `wavetank trace`: recorded storage calls.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::{Args, Subcommand};
use serde_json::Value;
use wavetank::{BenchArgs, BenchPlan, PlayArgs, PlayPace, Result, play_log, trace_info};
use wavetank_report::render;

use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::{limits, output};

#[derive(Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Say what a recording of storage calls (.lct) holds, and what of it cannot be read.
    Info(InfoFlags),
    /// Play a log of operations (`bench --io-trace-log`) against a backend.
    Replay(ReplayFlags),
}

#[derive(Args)]
struct InfoFlags {
    /// The recording, plain, .gz or .zst; - is standard input.
    #[arg(value_name = "FILE")]
    recording: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Refuse a record that is larger, in MiB: a damaged length would be read into memory [default: 64].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=4095))]
    frame_limit: Option<u32>,
}

#[derive(Args)]
struct ReplayFlags {
    /// The log, plain, .gz or .zst; - is standard input.
    log: String,
    /// Its format: a row of `wavetank list calls`.
    #[arg(long, value_name = "NAME", default_value = "mlperf-csv")]
    format: String,
    /// The tier whose operations are played: 0 GPU, 1 CPU, 2 storage, or all.
    #[arg(long, value_name = "N|all", default_value = "2", value_parser = tier)]
    tier: std::option::Option<u8>,
    /// max, recorded, or so many times faster than recorded.
    #[arg(long, value_name = "PACE", default_value = "max", value_parser = pace)]
    pace: PlayPace,
    /// What takes the bytes: a row of `wavetank list backends` [default: direct].
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// An option of the backend, as name=value.
    #[arg(long, value_name = "NAME=VALUE")]
    backend_option: Vec<String>,
    /// Where redis or object is.
    #[arg(long, value_name = "URL")]
    storage_location: Option<String>,
    /// The directory it plays in [default: a temporary one].
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// What it may hold, in GiB; 0 is 95 % of what is free [default: 0].
    #[arg(long, value_name = "GIB")]
    storage_capacity_gb: Option<f64>,
    /// Pieces of 1 MiB at the device at a time [default: 32].
    #[arg(long, value_name = "N")]
    io_depth: Option<u32>,
    /// Compare what is read with what was written.
    #[arg(long)]
    verify: bool,
    /// Where the report goes.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn tier(word: &str) -> std::result::Result<std::option::Option<u8>, String> {
    match word {
        "all" => Ok(None),
        number => number.parse().map(Some).map_err(|_| "a number, or all".to_owned()),
    }
}

fn pace(word: &str) -> std::result::Result<PlayPace, String> {
    match (word, word.trim_end_matches('x').parse::<f64>()) {
        ("max", _) => Ok(PlayPace::Max),
        ("recorded", _) => Ok(PlayPace::Recorded(1.0)),
        (_, Ok(speed)) if speed.is_finite() && speed > 0.0 => Ok(PlayPace::Recorded(speed)),
        _ => Err("max, recorded, or a number above 0".to_owned()),
    }
}

pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    match flags.what {
        What::Info(flags) => info(&flags),
        What::Replay(flags) => replay(flags),
    }
}

fn info(flags: &InfoFlags) -> Result<ExitCode> {
    let limit = flags.frame_limit.map(|mib| (mib as usize) << 20);
    let info = trace_info(&flags.recording, limit)?;
    output::say(&if flags.json { format!("{:#}\n", info.json()) } else { info.text() })?;
    Ok(ExitCode::SUCCESS)
}

fn replay(flags: ReplayFlags) -> Result<ExitCode> {
    let args = BenchArgs {
        gpu_mem_gb: Some(0.0),
        cpu_mem_gb: Some(0.0),
        backend: flags.backend,
        backend_options: flags.backend_option,
        storage_location: flags.storage_location,
        cache_dir: flags.cache_dir,
        storage_capacity_gb: flags.storage_capacity_gb,
        io_depth: flags.io_depth,
        verify: flags.verify,
        ..BenchArgs::default()
    };
    let plan = BenchPlan::of(&args)?;
    if let Some(path) = &flags.output {
        output::keep_apart(&[("the log", flags.log.as_ref()), ("--output", path)])?;
    }
    limits::raise_open_files();
    let stop = Interrupt::watch()?;
    stop.loaded.store(true, Ordering::Relaxed);
    let play = PlayArgs { log: flags.log, format: flags.format, tier: flags.tier, pace: flags.pace };
    let report = play_log(&plan, &play, &stop.raised)?;
    if let Some(path) = &flags.output {
        output::write(path, |out| render::json::write(&report, out))?;
    }
    output::say(&summary(&report))?;
    let failed = report["counts"]["failed"].as_u64().unwrap_or(0);
    if failed > 0 {
        output::complain(&format!("error: {failed} operations failed"));
        return Ok(ExitCode::FAILURE);
    }
    Ok(if report["partial"] == true { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn summary(report: &Value) -> String {
    let line = |name: &str| {
        let row = &report["operations"][name];
        let number = |path: &str| row.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        format!(
            "{name:5}  {:>8} operations  {:>10.2} GiB  {:>7.2} GiB/s  P50 {:.2} ms  P95 {:.2} ms  \
             P99 {:.2} ms  (device P95 {:.2} ms)\n",
            number("/count"),
            number("/gib"),
            number("/gib_per_second"),
            number("/total_ms/p50"),
            number("/total_ms/p95"),
            number("/total_ms/p99"),
            number("/device_ms/p95"),
        )
    };
    let count = |name: &str| report["counts"][name].as_u64().unwrap_or(0);
    format!(
        "wavetank trace replay: {:.2} s\n{}{}hits {}  misses {}  written {}  deleted {}  absent {}  \
         refused {}  failed {}  of other tiers {}\n",
        report["seconds"].as_f64().unwrap_or(0.0),
        line("read"),
        line("write"),
        count("hits"),
        count("misses"),
        count("written"),
        count("deleted"),
        count("absent"),
        count("refused"),
        count("failed"),
        report["skipped_other_tiers"],
    )
}
