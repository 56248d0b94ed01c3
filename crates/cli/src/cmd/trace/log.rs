//! `wavetank trace replay` of a log of operations: real bytes on a backend.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use serde_json::Value;
use wavetank::{BenchArgs, BenchPlan, PlayArgs, PlayPace, Result, play_log};
use wavetank_report::render;

use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::{limits, output};

/// A log, its format, and where the report goes.
pub(super) struct Log<'a> {
    pub(super) file: &'a str,
    pub(super) format: &'a str,
    pub(super) output: Option<&'a Path>,
    pub(super) pace: PlayPace,
}

#[derive(Args, Default, PartialEq)]
#[command(next_help_heading = "Logs of operations (bench --io-trace-log)")]
pub(super) struct LogFlags {
    /// The tier whose operations are played: 0 GPU, 1 CPU, 2 storage, or all [default: 2].
    #[arg(long, value_name = "N|all", value_parser = tier)]
    tier: Option<Tiers>,
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
}

/// Which tiers are played.
#[derive(Clone, Copy, PartialEq)]
enum Tiers {
    All,
    One(u8),
}

fn tier(word: &str) -> std::result::Result<Tiers, String> {
    match word {
        "all" => Ok(Tiers::All),
        number => number.parse().map(Tiers::One).map_err(|_| "a number, or all".to_owned()),
    }
}

pub(super) fn replay(log: &Log<'_>, flags: LogFlags) -> Result<Exit> {
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
    limits::raise_open_files();
    let stop = Interrupt::watch()?;
    stop.loaded.store(true, Ordering::Relaxed);
    let tier = match flags.tier.unwrap_or(Tiers::One(2)) {
        Tiers::All => None,
        Tiers::One(tier) => Some(tier),
    };
    let play = PlayArgs { log: log.file.to_owned(), format: log.format.to_owned(), tier, pace: log.pace };
    let report = play_log(&plan, &play, &stop.raised)?;
    if let Some(path) = log.output {
        output::write(path, |out| render::json::write(&report, out))?;
    }
    output::say(&summary(&report))?;
    let failed = report["counts"]["failed"].as_u64().unwrap_or(0);
    if failed > 0 {
        output::complain(&format!("error: {failed} operations failed"));
        return Ok(Exit::FAILED);
    }
    Ok(if report["partial"] == true { Exit::from(INTERRUPTED) } else { Exit::DONE })
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
    let given_up = match count("given_up") {
        0 => String::new(),
        some => format!("  given up {some}"),
    };
    format!(
        "wavetank trace replay: {:.2} s\n{}{}hits {}  misses {}  written {}  deleted {}  absent {}  \
         refused {}  failed {}{given_up}  of other tiers {}\n",
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
