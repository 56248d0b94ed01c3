//! `wavetank replay`: a request trace or a synthetic load through simulated engines.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use wavetank::{Error, Observer, Plan, Replayed, Result, replay, replay_seeds};
use wavetank_report::render;

use super::replay_flags::ReplayFlags;
use crate::output;
use crate::progress::Progress;

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Flags {
    #[command(flatten)]
    what: ReplayFlags,
    /// Run the plan of a report again; only output flags can be added.
    #[arg(long, value_name = "FILE", conflicts_with = "ReplayFlags")]
    plan: Option<PathBuf>,
    /// Where the report goes; in a directory it gets a timestamped name.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    report_json: Option<PathBuf>,
    /// Write one JSON line per request that ended.
    #[arg(long, value_name = "FILE", alias = "report-jsonl", help_heading = "Output")]
    per_request_jsonl: Option<PathBuf>,
    /// Run this many consecutive seeds in parallel and report the spread of every metric.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seeds: Option<u32>,
    /// Say how the simulation was done.
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
}

pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    let plan = match &flags.plan {
        Some(path) => Plan::read(path)?,
        None => Plan::of(&flags.what.into())?,
    };
    let stop = stop_on_interrupt()?;
    let mut progress = Progress::start();
    let records = flags.per_request_jsonl.is_some();
    let replayed = match flags.seeds {
        Some(_) if records => {
            return Err(Error::usage("cannot be combined with --per-request-jsonl").at("--seeds"));
        }
        Some(count) => replay_seeds(&plan, count, &stop)?,
        None => replay(&plan, Observer { watch: &mut progress, stop: &stop, records })?,
    };
    drop(progress);
    let report = output::report_path(flags.report_json.as_deref());
    let interrupted = replayed.outcome.interrupted;
    explain(&replayed, flags.verbose);
    output::say(&summary(&replayed, &report))?;
    output::write(&report, |out| render::json::write(&replayed.report, out))?;
    if let (Some(path), Some(records)) = (flags.per_request_jsonl, replayed.records) {
        output::write(&path, |out| records.write(out))?;
    }
    Ok(if interrupted { ExitCode::from(130) } else { ExitCode::SUCCESS })
}

/// The first Ctrl-C ends the run with what it has, the second ends the process.
fn stop_on_interrupt() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    let handler = move || {
        if raised.swap(true, Ordering::Relaxed) {
            std::process::abort();
        }
        output::complain("interrupted: writing what there is");
    };
    ctrlc::set_handler(handler).map_err(|error| Error::usage(format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(stop)
}

/// Warnings, and how the simulation was done.
fn explain(replayed: &Replayed, verbose: bool) {
    for warning in &replayed.warnings {
        output::complain(&format!("warning: {warning}"));
    }
    if verbose {
        let work = replayed.outcome.total();
        let (stepped, advanced) = (work.stepped_passes, work.advanced_passes);
        output::complain(&format!(
            "passes: {stepped} simulated one by one, {advanced} advanced in runs ({:.1} %)",
            advanced as f64 * 100.0 / (stepped + advanced).max(1) as f64
        ));
    }
}

fn summary(replayed: &Replayed, report: &Path) -> String {
    let numbers = &replayed.summary;
    let title = if replayed.outcome.interrupted { "wavetank replay (partial)" } else { "wavetank replay" };
    format!(
        "{title}\n{}\n{}Wall Time (ms): {:.2}\nPrefix Cache Reused Ratio: {:.4}\n\
         First Admission Prefix Cache Reused Ratio: {:.4}\nSaved full report to: {}\n",
        render::table::serving(numbers),
        render::table::bottleneck(numbers) + &render::table::seeds(&replayed.report),
        replayed.wall_seconds * 1000.0,
        numbers.reused_ratio(),
        numbers.first_reused_ratio(),
        report.display()
    )
}
