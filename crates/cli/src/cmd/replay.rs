//! `wavetank replay`: a request trace or a synthetic load through simulated engines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use wavetank::{
    Error, Keep, Observer, Plan, ReplayArgs, ReplayMode, ReplayTraceFiles, Replayed, Result, Run, Watch,
    live_note, replay, replay_seeds, timing_note,
};
use wavetank_model::{ServeEvent, Sink};
use wavetank_report::render;
use wavetank_study::advice::Advisor;

use super::advice_flags::{AdviceFlags, advise};
use super::picture_flags::PictureFlags;
use super::replay_flags::ReplayFlags;
use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::watch::{self, ReplayView};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Flags {
    #[command(flatten)]
    what: ReplayFlags,
    /// Run the plan of a report again; only output flags can be added.
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    plan: Option<PathBuf>,
    /// Where the report goes; in a directory it gets a timestamped name.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    report_json: Option<PathBuf>,
    /// Write one JSON line per request that ended.
    #[arg(long, value_name = "FILE", alias = "report-jsonl", help_heading = "Output")]
    per_request_jsonl: Option<PathBuf>,
    /// Write every request as OpenTelemetry spans in simulated time: OTLP as JSON
    /// lines (.gz and .zst compress).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    otlp_file: Option<PathBuf>,
    /// Write trace events that ui.perfetto.dev opens: a process per worker, a slice
    /// per request (.gz and .zst compress).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    perfetto: Option<PathBuf>,
    #[command(flatten)]
    pictures: PictureFlags,
    /// Run this many consecutive seeds in parallel and report the spread of every metric.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    #[arg(help_heading = "Plan")]
    seeds: Option<u32>,
    #[command(flatten)]
    advice: AdviceFlags,
    /// Show live workers in the terminal while they run: queues, caches, tokens per
    /// second and latencies (with --replay-mode online).
    #[arg(long, help_heading = "Output")]
    live: bool,
    /// Say how the simulation was done.
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
}

pub(crate) fn run(flags: Flags) -> Result<Exit> {
    // A plan may look at how standard input begins, and wait for it.
    let stop = Interrupt::watch()?;
    let typed: ReplayArgs = flags.what.into();
    let plan = match &flags.plan {
        Some(_) if typed != ReplayArgs::default() => {
            return Err(Error::usage("a plan is complete").at("--plan").hint(
                "only output flags, --seeds and --advise can be added; to change a plan, edit its JSON",
            ));
        }
        Some(path) => Plan::read(path)?,
        None => Plan::of(&typed)?,
    };
    let report = output::report_path(flags.report_json.as_deref(), "wavetank_replay_report");
    let trace = plan.trace_files().map(|path| ("the trace", path));
    let per_run = [
        ("--per-request-jsonl", flags.per_request_jsonl.as_deref()),
        ("--otlp-file", flags.otlp_file.as_deref()),
        ("--perfetto", flags.perfetto.as_deref()),
    ];
    let per_run: Vec<_> = per_run.into_iter().filter_map(|(flag, path)| Some((flag, path?))).collect();
    let outputs = [("--report-json", report.as_path())].into_iter().chain(per_run.clone());
    let outputs: Vec<_> = outputs.chain(flags.pictures.files()).collect();
    output::keep_apart(&trace.chain(outputs.iter().copied()).collect::<Vec<_>>())?;
    output::spare(plan.inputs().chain(typed.files()).chain(flags.plan.as_deref()), &outputs)?;
    if let (Some(_), Some((flag, _))) = (flags.seeds, per_run.first()) {
        return Err(Error::usage(format!("cannot be combined with {flag}")).at("--seeds"));
    }
    if flags.seeds.is_some() && flags.advice.is_asked() {
        return Err(Error::usage("cannot be combined with --advise")
            .at("--seeds")
            .hint("--advise runs three seeds where something is left to chance"));
    }
    let advisor = flags.advice.advisor(&plan)?;
    output::spare(advisor.iter().flat_map(Advisor::inputs), &outputs)?;
    if flags.live && plan.replay_mode == ReplayMode::Offline {
        return Err(Error::usage("simulated time is over before it could be watched")
            .at("--live")
            .hint("add --replay-mode online to run the workers on the wall clock"));
    }
    flags.pictures.check("replay")?;
    let keep = Keep { records: flags.per_request_jsonl.is_some(), pictures: true };
    let mut replayed = match flags.seeds {
        Some(count) => {
            stop.loaded.store(true, Ordering::Relaxed);
            replay_seeds(&plan, count, &stop.raised)?
        }
        None => {
            let watcher = Watcher {
                shown: match flags.live && watch::is_possible() {
                    true => Box::new(ReplayView::of(&plan, &stop)),
                    false => Box::new(Progress::start(Arc::clone(&stop.loaded))),
                },
                traces: traces(&plan, flags.otlp_file.as_deref(), flags.perfetto.as_deref())?,
            };
            watched(&plan, advisor.as_ref(), watcher, &stop, keep)?
        }
    };
    let advice = advisor.map_or(Ok(None), |advisor| advise(&advisor, &mut replayed, &stop))?;
    let interrupted = replayed.outcome.interrupted || advice.as_ref().is_some_and(|it| it.is_partial);
    explain(&replayed, flags.verbose);
    output::write(&report, |out| render::json::write(&replayed.report, out))?;
    output::say(&(summary(&replayed, &report) + &advice.map_or_else(String::new, |it| it.table())))?;
    if let (Some(path), Some(records)) = (flags.per_request_jsonl, replayed.records) {
        output::write(&path, |out| records.write(out))?;
    }
    flags.pictures.write("wavetank replay", &[Run { name: load_name(&plan), report: replayed.report }])?;
    Ok(if interrupted { Exit::from(INTERRUPTED) } else { Exit::DONE })
}

/// One replay, watched.
fn watched(
    plan: &Plan,
    advisor: Option<&Advisor>,
    mut watcher: Watcher,
    stop: &Interrupt,
    keep: Keep,
) -> Result<Replayed> {
    // Only who reads the file for this run alone knows the names in it.
    let wants_names = keep.records || watcher.wants_names();
    let observer = Observer { watch: &mut watcher, stop: &stop.raised, keep };
    let replayed = match advisor {
        Some(advisor) if !wants_names => advisor.replay(observer)?,
        _ => replay(plan, observer)?,
    };
    // The terminal is given back before anything else is said.
    drop(watcher.shown);
    watcher.traces.map_or(Ok(()), |traces| traces.finish(replayed.outcome.end))?;
    Ok(replayed)
}

/// What the load is called on a page.
fn load_name(plan: &Plan) -> String {
    let stem = plan.trace_files().next().and_then(Path::file_stem);
    stem.map_or_else(|| "synthetic load".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The files that trace viewers open, if any is wanted.
fn traces(plan: &Plan, spans: Option<&Path>, slices: Option<&Path>) -> Result<Option<ReplayTraceFiles>> {
    if spans.is_none() && slices.is_none() {
        return Ok(None);
    }
    [spans, slices].into_iter().flatten().try_for_each(output::try_out)?;
    Ok(Some(ReplayTraceFiles::of(plan, spans, slices)))
}

/// Shows how far the run is, and writes traces of it.
struct Watcher {
    shown: Box<dyn Watch>,
    traces: Option<ReplayTraceFiles>,
}

impl Watch for Watcher {
    fn expect(&mut self, requests: u64) {
        self.shown.expect(requests);
        self.traces.iter_mut().for_each(ReplayTraceFiles::create);
    }

    fn wants_names(&self) -> bool {
        self.traces.is_some()
    }
}

impl Sink<ServeEvent<'_>> for Watcher {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.shown.record(event);
        if let Some(traces) = &mut self.traces {
            traces.record(event);
        }
    }
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
    let live = replayed.punctuality.as_ref().map(live_note::lines).unwrap_or_default();
    let timing = replayed.outcome.provenance.as_ref().map(timing_note::line).unwrap_or_default();
    format!(
        "{title}\n{}\n{}{timing}{live}Wall Time (ms): {:.2}\nPrefix Cache Reused Ratio: {:.4}\n\
         First Admission Prefix Cache Reused Ratio: {:.4}\nSaved full report to: {}\n",
        render::table::serving(numbers),
        render::table::bottleneck(numbers)
            + &render::scaling::lines(&replayed.report)
            + &numbers.tiers.as_ref().map(render::tiers::text).unwrap_or_default()
            + &render::table::seeds(&replayed.report),
        replayed.wall_seconds * 1000.0,
        numbers.reused_ratio(),
        numbers.first_reused_ratio(),
        report.display()
    )
}
