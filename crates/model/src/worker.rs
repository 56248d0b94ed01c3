//! What a worker is among others: its part of a request, and how far it is on its way.

use serde::{Deserialize, Serialize};

/// What a worker does of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerRole {
    /// All of it.
    #[default]
    Aggregated,
    /// The prompt.
    Prefill,
    /// The output.
    Decode,
}

impl WorkerRole {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aggregated => "aggregated",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }
}

/// The stages of a worker; none is come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerStage {
    /// It was asked for and cannot serve yet.
    Starting,
    /// It takes requests.
    Active,
    /// It takes no more requests and finishes those it has.
    Draining,
    /// It is not there any more.
    Gone,
}
