//! What the report of a rank carries for `merge`: who it was, when, and all numbers of every trial with every
//! latency.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_report::StorageSummary;

use super::finished::ended;
use super::plan::BenchPlan;
use super::rank::{self, Rank};
use super::run::{Trial, Trials};
use super::suite::Hardware;
use super::warn;

/// The `rank` key of a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Share {
    /// Who.
    #[serde(flatten)]
    pub(super) rank: Rank,
    /// Where.
    pub(super) host: String,
    /// With what.
    pub(super) seed: u64,
    /// On which machine; absent where it could not be looked at.
    pub(super) hardware: Option<Hardware>,
    /// When, by Unix time in seconds; of the trial that this rank reports itself.
    pub(super) window: Span,
    /// What became of each trial.
    pub(super) trials: Vec<SharedTrial>,
}

impl Share {
    /// What one rank did.
    pub(super) fn of(rank: Rank, plan: &BenchPlan, trials: &Trials) -> Self {
        Self {
            rank,
            host: rank::host(),
            seed: plan.seed(),
            hardware: Hardware::of(plan).ok(),
            window: Span::of(&trials.all[trials.reported()].summary),
            trials: (1..)
                .zip(&trials.all)
                .map(|(number, trial)| SharedTrial::of(plan, number, trial))
                .collect(),
        }
    }
}

/// A span of Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Span {
    pub(super) begin_unix_s: f64,
    pub(super) end_unix_s: f64,
}

impl Span {
    pub(super) fn of(summary: &StorageSummary) -> Self {
        let window = &summary.window;
        Self { begin_unix_s: window.began.as_seconds(), end_unix_s: window.end().as_seconds() }
    }
}

/// One trial of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SharedTrial {
    /// Why it ended.
    pub(super) ended: Value,
    /// Whether that was before its end.
    pub(super) partial: bool,
    /// What the kernel counted beside us; nothing where it does not count.
    pub(super) kernel: Value,
    /// Events that were lost.
    pub(super) lost_events: u64,
    /// How long it took.
    pub(super) run_seconds: f64,
    /// Processor time meanwhile.
    pub(super) cpu_seconds: f64,
    /// What to know about it that its numbers do not say.
    pub(super) warnings: Vec<String>,
    /// Its numbers.
    pub(super) summary: StorageSummary,
}

impl SharedTrial {
    fn of(plan: &BenchPlan, number: usize, trial: &Trial) -> Self {
        let Trial { summary, outcome, .. } = trial;
        let mut warnings = warn::about_run(plan, summary, outcome);
        warnings.extend(trial.heating.warnings(number));
        let (ended, partial) = ended(&outcome.ended);
        Self {
            ended,
            partial,
            kernel: warn::kernel(plan, summary, outcome),
            lost_events: outcome.lost_events,
            run_seconds: outcome.wall_seconds,
            cpu_seconds: outcome.cpu_seconds,
            warnings,
            summary: summary.clone(),
        }
    }
}
