//! The numbers of many benchmarks on one machine side by side: a row per scenario, read from the scenario's
//! own report, so that one that ran yesterday says the same as one that just ended.

mod figures;
mod findings;

use serde::Serialize;

pub use self::figures::{Blame, Figures, Percentiles, ScalingFigures, TierFigures, TrialFigures, Waiting};

/// Every scenario of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteSummary {
    /// Whether it only shows that everything works.
    pub quick: bool,
    /// In the order they run.
    pub rows: Vec<Row>,
}

/// One scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it is called in a table.
    pub title: String,
    /// What came of it.
    pub status: Status,
}

/// What came of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// It went to its end.
    Done(Box<Figures>),
    /// It was not for this machine.
    Skipped {
        /// Why.
        why: String,
    },
    /// It could not go on.
    Failed {
        /// Why.
        why: String,
    },
    /// Someone ended it; what it had measured is not counted.
    Interrupted,
    /// Its turn has not come.
    NotRun,
}

impl Status {
    /// In one word, for a table.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Skipped { .. } => "skipped",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "stopped",
            Self::NotRun => "not run",
        }
    }

    /// Why there are no numbers, where there is a reason.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Skipped { why } | Self::Failed { why } => Some(why),
            Self::Interrupted => Some("interrupted: what it had measured is not counted"),
            Self::Done(_) | Self::NotRun => None,
        }
    }
}

impl Row {
    /// Its numbers, if it has any.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.status {
            Status::Done(figures) => Some(figures),
            _ => None,
        }
    }
}

impl SuiteSummary {
    /// Whether nothing is left to run.
    pub fn is_complete(&self) -> bool {
        self.rows.iter().all(|row| matches!(row.status, Status::Done(_) | Status::Skipped { .. }))
    }

    /// The numbers of the scenario called `name`, if it went to its end.
    fn figures(&self, name: &str) -> Option<&Figures> {
        self.rows.iter().find(|row| row.name == name)?.figures()
    }
}
