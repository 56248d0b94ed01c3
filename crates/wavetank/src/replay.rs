//! Running a plan: workload in, simulation, report out.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde_json::{Map, Value, json};
use wavetank_live::{Punctuality, Ran};
use wavetank_model::{Result, ServeEvent, Sink, WorkerRole, Workload};
use wavetank_report::{Pool, Records, Serving, Summary, Tiers, WorkerShare, Workers};
use wavetank_sim::{EngineConfig, Load, Outcome};
use wavetank_trace::requests::{ReadOptions, Source as Files};
use wavetank_trace::{Loaded, Options, Starts, Tape, TapeReader};

use crate::{Plan, ReplayMode, WorkloadPlan, live_note, tiers, timing_note};

/// The version of the report's layout.
const SCHEMA_VERSION: u32 = 1;

/// What a caller may watch and influence while a replay runs.
pub struct Observer<'a> {
    /// Watches the run.
    pub watch: &'a mut dyn Watch,
    /// Raised to end the run with what it has.
    pub stop: &'a AtomicBool,
    /// What is kept beside the numbers.
    pub keep: Keep,
}

/// What is kept of a replay beside its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Records of single requests.
    pub records: bool,
    /// What pictures are drawn from: the run over time, and curves.
    pub pictures: bool,
}

/// Someone who watches a replay.
pub trait Watch: for<'e> Sink<ServeEvent<'e>> {
    /// How many requests there are; told before the first event.
    fn expect(&mut self, requests: u64);

    /// Whether sessions should have the names that the trace gives them.
    fn wants_names(&self) -> bool {
        false
    }
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {
    fn expect(&mut self, _requests: u64) {}
}

impl Sink<ServeEvent<'_>> for Unwatched {
    fn record(&mut self, _event: &ServeEvent<'_>) {}
}

/// A finished replay.
pub struct Replayed {
    /// The numbers.
    pub summary: Summary,
    /// The whole report; offline, `wall` is its only part that differs between two runs of one plan.
    pub report: Value,
    /// What was typed without effect, and what the run did not do as asked.
    pub warnings: Vec<String>,
    /// Wall-clock time of the run.
    pub wall_seconds: f64,
    /// One record per request, when asked for.
    pub records: Option<Records>,
    /// How the simulation ended.
    pub outcome: Outcome,
    /// How well the host kept up, on the wall clock.
    pub punctuality: Option<Punctuality>,
}

/// Runs `plan`.
pub fn replay(plan: &Plan, observer: Observer<'_>) -> Result<Replayed> {
    let started = Instant::now();
    let source = source(plan, observer.keep.records || observer.watch.wants_names())?;
    run(plan, source, observer, started)
}

/// Runs `plan` with requests that were read before: all of its own, or the first of them. Requests have no
/// names then.
pub fn replay_tape(
    plan: &Plan,
    tape: &Tape,
    workload: TapeReader<'_>,
    observer: Observer<'_>,
) -> Result<Replayed> {
    let started = Instant::now();
    let (workload, clamped, notes) = (Box::new(workload), tape.clamped, tape.notes.clone());
    run(plan, Source { workload, clamped, notes }, observer, started)
}

fn run(plan: &Plan, mut source: Source<'_>, observer: Observer<'_>, started: Instant) -> Result<Replayed> {
    let Keep { records, pictures } = observer.keep;
    let expected = source.workload.requests();
    observer.watch.expect(expected);
    let serving = Serving::judging(plan.sla);
    let mut tee = Tee {
        serving: if pictures { serving.picturing(&fleet(plan)) } else { serving },
        tiers: tiers::collector(&plan.simulation)?,
        records: records.then(Records::default),
        watch: observer.watch,
    };
    let (simulation, workload) = (&plan.simulation, source.workload.as_mut());
    let (outcome, punctuality) = match plan.replay_mode {
        ReplayMode::Offline => (wavetank_sim::run(simulation, workload, &mut tee, observer.stop)?, None),
        ReplayMode::Online => {
            let Ran { outcome, punctuality } =
                wavetank_live::run(simulation, workload, &mut tee, observer.stop)?;
            (outcome, Some(punctuality))
        }
    };
    let Tee { serving, tiers, records, .. } = tee;
    let mut summary = serving.summary();
    // A write may be under way when the last pass has ended.
    let tiers_end = outcome.tiers.iter().map(|work| work.until).max().unwrap_or(outcome.end);
    summary.tiers = tiers.map(|tiers| tiers.summary(outcome.tiers.iter().map(|work| work.busy), tiers_end));
    let attribution = &mut summary.attribution;
    attribution.span = outcome.end;
    attribution.workers.resize_with(outcome.work.len(), WorkerShare::default);
    for (share, work) in attribution.workers.iter_mut().zip(&outcome.work) {
        share.busy = work.busy;
    }
    if let Some(scaling) = &mut summary.scaling {
        scaling.ticks = outcome.ticks.unwrap_or(0);
        for (share, worker) in attribution.workers.iter_mut().zip(&scaling.workers) {
            share.present = Some(worker.until(outcome.end));
        }
    }
    let wall_seconds = started.elapsed().as_secs_f64();
    let Source { clamped, notes, .. } = source;
    let run = Run { expected, clamped, notes, outcome: outcome.clone(), punctuality, wall_seconds };
    let warnings = warnings(plan, &summary, &run);
    let report = report(plan, &summary, &run, &warnings);
    let punctuality = run.punctuality;
    Ok(Replayed { summary, report, warnings, wall_seconds, records, outcome, punctuality })
}

/// The workers, pool by pool.
fn fleet(plan: &Plan) -> Vec<Workers> {
    let pool = |count: u32, engine: &EngineConfig| {
        let ranks = u64::from(engine.data_parallel_ranks.max(1));
        Workers { count, blocks: u64::from(engine.num_gpu_blocks) * ranks }
    };
    let simulation = &plan.simulation;
    let decode = simulation.decode.iter().map(|decode| pool(decode.num_workers, &decode.engine));
    std::iter::once(pool(simulation.num_workers, &simulation.engine)).chain(decode).collect()
}

/// A workload and what loading it found.
pub(crate) struct Source<'a> {
    workload: Box<dyn Workload + 'a>,
    clamped: u64,
    notes: Vec<String>,
}

impl Source<'_> {
    /// All of it, to be run more than once.
    pub(crate) fn tape(mut self) -> Result<Tape> {
        Ok(Tape::of(self.workload.as_mut())?.with_findings(self.clamped, self.notes))
    }
}

pub(crate) fn source(plan: &Plan, keep_names: bool) -> Result<Source<'static>> {
    let (scheduled, speedup) = match plan.simulation.load {
        Load::Schedule => (true, plan.arrival_speedup_ratio),
        Load::Closed { .. } => (false, 1.0),
    };
    match &plan.workload {
        WorkloadPlan::Synthetic(load) => {
            let block_size = plan.simulation.engine.block_size;
            let workload = load.workload(block_size, speedup, plan.simulation.seed);
            Ok(Source { workload, clamped: 0, notes: Vec::new() })
        }
        WorkloadPlan::Trace { paths, format, trace_block_size, clamp_input, fill, shared_prefix } => {
            let starts = if scheduled { Starts::Scheduled { speedup } } else { Starts::Ignored };
            let (tokens_per_id, shared_prefix) = (*trace_block_size, *shared_prefix);
            let read = ReadOptions { tokens_per_id, shared_prefix, ..ReadOptions::default() };
            let (clamp_input, fill) = (*clamp_input, *fill);
            let options = Options { read, clamp_input, starts, keep_names, fill };
            let files = Files::of(paths, Some(format))?;
            let Loaded { workload, survey } = wavetank_trace::open(&files, &options)?;
            Ok(Source { workload, clamped: survey.clamped, notes: survey.notes })
        }
    }
}

/// What the report says beyond the summary.
struct Run {
    /// Requests of the workload, whether they arrived or not.
    expected: u64,
    clamped: u64,
    /// How the trace was read.
    notes: Vec<String>,
    outcome: Outcome,
    punctuality: Option<Punctuality>,
    wall_seconds: f64,
}

fn report(plan: &Plan, summary: &Summary, run: &Run, warnings: &[String]) -> Value {
    let (prefill, decode) = match &plan.simulation.decode {
        Some(pool) => (plan.simulation.num_workers, pool.num_workers),
        None => (0, plan.simulation.num_workers),
    };
    let gpus = |pool: usize| run.outcome.gpus.get(pool).copied().unwrap_or(1);
    let (prefill, decode) = match &plan.simulation.decode {
        Some(_) => (Pool { workers: prefill, gpus: gpus(0) }, Pool { workers: decode, gpus: gpus(1) }),
        None => (Pool { workers: 0, gpus: 0 }, Pool { workers: decode, gpus: gpus(0) }),
    };
    let mut report = summary.keys(prefill, decode);
    let mut set = |key: &str, value: Value| report.insert(key.to_owned(), value);
    set("schema_version", json!(SCHEMA_VERSION));
    set("plan", json!(plan));
    set("counts", Value::Object(counts(summary, run)));
    set("warnings", json!(warnings));
    set("attribution", summary.attribution.json());
    if let Some(scaling) = &summary.scaling {
        let gpus_of = |role: WorkerRole| if role == WorkerRole::Decode { gpus(1) } else { gpus(0) };
        set("scaling", scaling.json(summary.duration, gpus_of));
    }
    if let Some(tiers) = &summary.tiers {
        set("tiers", tiers.json());
    }
    if let Some(provenance) = &run.outcome.provenance {
        set("timing", timing_note::json(provenance));
    }
    if let Some(punctuality) = &run.punctuality {
        set("live", live_note::json(punctuality));
    }
    if let Some(pictures) = &summary.pictures {
        set("course", pictures.course.course(run.outcome.end).json());
        set("curves", pictures.curves_json());
    }
    let whole = summary.counts.in_flight() == 0 && run.expected == summary.counts.arrived;
    set("partial", json!(run.outcome.interrupted || !whole));
    set("wall", wall(summary, run.wall_seconds));
    Value::Object(report)
}

fn counts(summary: &Summary, run: &Run) -> Map<String, Value> {
    let work = run.outcome.total();
    let mut counts = summary.counts_json();
    counts.insert("clamped_inputs".to_owned(), json!(run.clamped));
    counts.insert("never_arrived".to_owned(), json!(run.expected - summary.counts.arrived));
    counts.insert("computed_prompt_tokens".to_owned(), json!(work.prompt_tokens));
    let passes = json!({ "stepped": work.stepped_passes, "advanced": work.advanced_passes });
    counts.insert("passes".to_owned(), passes);
    counts
}

fn warnings(plan: &Plan, summary: &Summary, run: &Run) -> Vec<String> {
    let mut warnings = plan.warnings.clone();
    if run.outcome.interrupted {
        warnings.push("interrupted: the numbers cover what had happened by then".to_owned());
    }
    warnings.extend(run.outcome.provenance.iter().flat_map(timing_note::warnings));
    warnings.extend(run.punctuality.iter().flat_map(live_note::warnings));
    warnings.extend(run.notes.iter().cloned());
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            let requests = if count == 1 { "request" } else { "requests" };
            warnings.push(format!("{count} {requests} {what}"));
        }
    };
    note(run.clamped, "cut to what the hash ids cover");
    for (reason, &count) in &summary.counts.rejected {
        note(count, &format!("rejected: {}", reason.name()));
    }
    note(summary.counts.in_flight(), "in flight when the run ended");
    note(run.expected - summary.counts.arrived, "never arrived: the run ended before");
    warnings
}

fn wall(summary: &Summary, seconds: f64) -> Value {
    let per_second = |tokens: u64| tokens as f64 / seconds.max(1e-9);
    json!({
        "wall_time_ms": seconds * 1000.0,
        "processed_tokens_per_s": per_second(summary.input_tokens + summary.output_tokens),
        "processed_output_tokens_per_s": per_second(summary.output_tokens),
    })
}

/// Hands every event to all who want it.
struct Tee<'a> {
    serving: Serving,
    tiers: Option<Tiers>,
    records: Option<Records>,
    watch: &'a mut dyn Watch,
}

impl Sink<ServeEvent<'_>> for Tee<'_> {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.serving.record(event);
        if let Some(tiers) = &mut self.tiers {
            tiers.record(event);
        }
        if let Some(records) = &mut self.records {
            records.record(event);
        }
        self.watch.record(event);
    }
}
