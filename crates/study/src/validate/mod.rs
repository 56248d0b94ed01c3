//! A measured run against its simulation.
//!
//! A directory holds what served the run (`run.json`), what arrived (`workload.jsonl`), how fast the kernels
//! were (`profile/`), and when each request was queued, scheduled and got its tokens (`measured.csv`).
//! [`Case::open`] reads and checks all of it, [`Case::replay`] simulates it and compares.

mod measured;
mod metrics;
mod run;
mod schedule;
mod table;
mod times;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde_json::{Value, json};
use wavetank::{Plan, timing_note};
use wavetank_model::{Error, Result};
use wavetank_sim::Outcome;

use run::Run;
use schedule::Schedule;
use times::Times;

pub use metrics::{Cell, Comparison, Latency};

/// The version of the report's layout.
const SCHEMA_VERSION: u32 = 1;

/// A measured run, read and checked.
pub struct Case {
    run: Run,
    schedule: Schedule,
    plan: Plan,
    measured: Option<Vec<Latency>>,
    inputs: Vec<PathBuf>,
}

impl Case {
    /// Reads the run in `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        let description = dir.join("run.json");
        let run = Run::read(&description)?;
        let workload = schedule::find(dir, "workload.jsonl").ok_or_else(|| {
            Error::input("there is no workload.jsonl or workload.jsonl.gz in it")
                .at(dir.display().to_string())
                .hint("the workload has one Mooncake row per request")
        })?;
        let schedule = Schedule::read(workload.clone(), run.trace_block_size)?;
        let measurements = schedule::find(dir, "measured.csv");
        let measured = measurements.as_ref().map(|path| measured::read(path, &schedule)).transpose()?;
        let plan = run.plan(dir, &schedule)?;
        let inputs = [description, workload].into_iter().chain(measurements).collect();
        Ok(Self { run, schedule, plan, measured, inputs })
    }

    /// Whether there is something to compare with.
    pub fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

    /// Refuses a tolerance, in percent, that is none or has nothing to be held against.
    pub fn check_tolerance(&self, percent: f64) -> Result<()> {
        if !percent.is_finite() || percent < 0.0 {
            let message = format!("must be a finite number, 0 or more, not {percent}");
            return Err(Error::usage(message).at("--tolerance"));
        }
        match self.is_measured() {
            true => Ok(()),
            false => Err(Error::usage("there is no measured.csv to compare with")
                .at("--tolerance")
                .hint("add one to the folder, or leave the tolerance out")),
        }
    }

    /// The files that were read.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// Simulates the run and compares.
    pub fn replay(self) -> Result<Validated> {
        let started = Instant::now();
        let mut times = Times::of(self.schedule.len());
        let mut workload = self.schedule.workload();
        let never = AtomicBool::new(false);
        let outcome = wavetank_sim::run(&self.plan.simulation, &mut workload, &mut times, &never)?;
        let simulated = times.latencies();
        let served: Vec<Latency> = simulated.iter().flatten().copied().collect();
        let comparison = Comparison::of(self.measured.as_deref(), &served);
        let wall_ms = started.elapsed().as_secs_f64() * 1000.0;
        let warnings = warnings(&self, &times);
        let report = json!({
            "schema_version": SCHEMA_VERSION,
            "run": {
                "model": self.run.model,
                "hardware": self.run.hardware,
                "vllm_version": self.run.vllm_version,
            },
            "plan": self.plan,
            "metrics": comparison.json(),
            "requests": metrics::pairs(self.measured.as_deref(), &simulated),
            "worst": comparison.worst().map(|cell| json!({ "name": cell.name(), "error": cell.error() })),
            "counts": counts(&times, &outcome),
            "timing": outcome.provenance.as_ref().map(timing_note::json),
            "warnings": warnings,
            "wall": { "wall_time_ms": wall_ms },
        });
        let unserved = times.unserved();
        let timing = outcome.provenance.as_ref().map(timing_note::line).unwrap_or_default();
        Ok(Validated { timing, case: self, comparison, simulated, unserved, report, warnings, wall_ms })
    }
}

fn counts(times: &Times, outcome: &Outcome) -> Value {
    let work = outcome.total();
    let mut counts = times.counts();
    counts["passes"] = json!({ "stepped": work.stepped_passes, "advanced": work.advanced_passes });
    counts["computed_prompt_tokens"] = json!(work.prompt_tokens);
    counts
}

fn warnings(case: &Case, times: &Times) -> Vec<String> {
    let mut warnings = Vec::new();
    if !case.is_measured() {
        warnings.push("there is no measured.csv: the numbers are simulated only".to_owned());
    }
    if times.unserved() > 0 {
        warnings.push(not_served(times.unserved()));
    }
    warnings
}

fn not_served(count: u64) -> String {
    let requests = if count == 1 { "request was" } else { "requests were" };
    format!("{count} {requests} not served by the simulation and not compared")
}

/// A finished validation.
pub struct Validated {
    case: Case,
    /// The statistics.
    pub comparison: Comparison,
    simulated: Vec<Option<Latency>>,
    unserved: u64,
    /// The whole report; `wall` is its only part that differs between two runs.
    pub report: Value,
    /// What a reader of the numbers must know.
    pub warnings: Vec<String>,
    wall_ms: f64,
    /// How sure the times are.
    timing: String,
}

impl Validated {
    /// The table and the lines around it.
    pub fn table(&self) -> String {
        let Case { run, plan, schedule, .. } = &self.case;
        let worst = match self.comparison.worst() {
            Some(cell) => format!("Worst error of TTFT, TPOT and E2E: {}\n", described(cell)),
            None => String::new(),
        };
        format!(
            "wavetank validate: {} on {}, vLLM {}, {} requests, timing {}\n{}\n\
             {worst}{}Wall Time (ms): {:.2}\n",
            run.model,
            run.hardware,
            run.vllm_version,
            schedule.len(),
            plan.simulation.engine.timing.name,
            table::comparison(&self.comparison),
            self.timing,
            self.wall_ms,
        )
    }

    /// Writes one line of CSV per request, with its measured and its simulated latencies.
    pub fn scatter(&self, out: &mut dyn Write) -> io::Result<()> {
        table::scatter(self.case.measured.as_deref(), &self.simulated, out)
    }

    /// What is beyond `tolerance_percent`, if anything is.
    pub fn failure(&self, tolerance_percent: f64) -> Option<String> {
        if self.unserved > 0 {
            return Some(not_served(self.unserved));
        }
        let worst = self.comparison.worst()?;
        let beyond = worst.error()?.abs() * 100.0 > tolerance_percent;
        beyond.then(|| format!("{} is beyond {tolerance_percent} %", described(worst)))
    }
}

/// `TTFT P50 -8.57 %`.
fn described(cell: &Cell) -> String {
    format!("{} {}", cell.name(), cell.error().map_or_else(String::new, table::percent))
}
