//! What calls are made on, as recordings hold it (spec/storage-trace.md 1.10): written into those of a
//! replay, and compared with what a recording says of itself.

use serde::Serialize;
use serde_json::Value;
use wavetank_trace::calls::lct::{self, canonical_digest, differences};

use super::plan::is_of_bench;

/// How the configuration of a replay stands to that of its recording.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigCheck {
    /// Ours of what is recorded, without what differs in every run; absent if nothing is.
    pub recorded_digest: Option<String>,
    /// Ours of what is replayed on.
    pub digest: String,
    /// Whether it is of a benchmark, whose tiers are taken as one without limits: nothing is compared.
    pub of_bench: bool,
    /// Whether every field that we have is as recorded.
    pub matches: bool,
    /// Those that are not.
    pub differences: Vec<ConfigDifference>,
}

/// A field that is not as recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigDifference {
    /// Its place: names and positions, joined by dots.
    pub field: String,
    /// What was recorded; absent if it is not there.
    pub recorded: Option<Value>,
    /// What is replayed on; absent if it is not there.
    pub replayed: Option<Value>,
}

/// Fields of `ours` that are not as recorded; of what else is recorded nothing is known here.
pub(super) fn unlike(recorded: &Value, ours: &Value) -> Vec<ConfigDifference> {
    let ours_has = |found: &lct::Difference| {
        // A tier that was there and is not any more is ours to know too.
        found.ours.is_some() || found.field.starts_with("l2_adapter_config.adapters")
    };
    let found = differences(recorded, ours).into_iter().filter(ours_has);
    // What few recordings say has its usual value where they do not.
    let is_usual = |field: &str| ["prefetch_policy", "store_delay_ms", "store_policy"].contains(&field);
    let is_stated = |found: &lct::Difference| found.recorded.is_some() || !is_usual(&found.field);
    found
        .filter(is_stated)
        .map(|found| ConfigDifference { field: found.field, recorded: found.recorded, replayed: found.ours })
        .collect()
}

impl ConfigCheck {
    pub(super) fn of(recorded: &str, ours: &Value) -> Self {
        let recorded = lct::canonical(recorded);
        let of_bench = recorded.as_ref().is_some_and(is_of_bench);
        let compared = recorded.as_ref().filter(|_| !of_bench);
        let differences = compared.map_or(Vec::new(), |recorded| unlike(recorded, ours));
        Self {
            of_bench,
            matches: compared.is_some() && differences.is_empty(),
            recorded_digest: recorded.as_ref().map(canonical_digest),
            digest: canonical_digest(ours),
            differences,
        }
    }
}
