//! A serving run over time, as a report says it.

use serde_json::{Map, Value, json};
use wavetank_model::Nanos;

/// What happened in each of equal spans; the last may be shorter.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// How long a span is.
    pub step: Nanos,
    /// When the last one ends.
    pub end: Nanos,
    /// All workers together.
    pub fleet: Fleet,
    /// Some workers each.
    pub tracks: Vec<Track>,
}

/// All workers together, by span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// Requests that came.
    pub arrived_per_s: Vec<f64>,
    /// Requests that got all their tokens.
    pub completed_per_s: Vec<f64>,
    /// Requests that were given up.
    pub rejected_per_s: Vec<f64>,
    /// Requests that lost their blocks.
    pub preempted_per_s: Vec<f64>,
    /// Tokens generated.
    pub output_tokens_per_s: Vec<f64>,
    /// Prompt tokens computed.
    pub prompt_tokens_per_s: Vec<f64>,
    /// Part of the prompts admitted first in this span that was found in a cache.
    pub reused_share: Vec<f64>,
    /// Requests that wait in the router, on average.
    pub in_router: Vec<f64>,
    /// Of requests whose first token came in this span.
    pub ttft_ms: Percentiles,
    /// Of requests whose last token came in this span.
    pub tpot_ms: Percentiles,
    /// The same.
    pub e2e_ms: Percentiles,
}

/// Percentiles by span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// The median.
    pub p50: Vec<f64>,
    /// The 90th.
    pub p90: Vec<f64>,
    /// The 99th.
    pub p99: Vec<f64>,
}

/// Workers with consecutive numbers, on average over them and each span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// The first of them.
    pub first_worker: u32,
    /// The last.
    pub last_worker: u32,
    /// Requests in its queue.
    pub waiting: Vec<f64>,
    /// Requests in its batch.
    pub running: Vec<f64>,
    /// Part of its cache that requests use.
    pub cache_use: Vec<f64>,
    /// Part of the time it is in passes.
    pub busy: Vec<f64>,
}

impl Course {
    /// As it stands in a report.
    pub fn json(&self) -> Value {
        let fleet: Map<String, Value> =
            self.fleet.columns().into_iter().map(|(name, values)| (name, brief(values))).collect();
        json!({
            "step_ms": self.step.as_ms(),
            "end_ms": self.end.as_ms(),
            "fleet": fleet,
            "workers": self.tracks.iter().map(Track::json).collect::<Vec<_>>(),
        })
    }
}

impl Fleet {
    fn columns(&self) -> Vec<(String, &[f64])> {
        let plain = [
            ("arrived_per_s", &self.arrived_per_s),
            ("completed_per_s", &self.completed_per_s),
            ("rejected_per_s", &self.rejected_per_s),
            ("preempted_per_s", &self.preempted_per_s),
            ("output_tokens_per_s", &self.output_tokens_per_s),
            ("prompt_tokens_per_s", &self.prompt_tokens_per_s),
            ("reused_share", &self.reused_share),
            ("in_router", &self.in_router),
        ];
        let percentiles = [("ttft_ms", &self.ttft_ms), ("tpot_ms", &self.tpot_ms), ("e2e_ms", &self.e2e_ms)];
        let percentiles = percentiles.into_iter().flat_map(|(name, of)| {
            [("p50", &of.p50), ("p90", &of.p90), ("p99", &of.p99)]
                .map(|(percentile, values)| (format!("{percentile}_{name}"), &values[..]))
        });
        plain.map(|(name, values)| (name.to_owned(), &values[..])).into_iter().chain(percentiles).collect()
    }
}

impl Track {
    fn json(&self) -> Value {
        json!({
            "first_worker": self.first_worker,
            "last_worker": self.last_worker,
            "waiting": brief(&self.waiting),
            "running": brief(&self.running),
            "cache_use": brief(&self.cache_use),
            "busy": brief(&self.busy),
        })
    }
}

/// Six digits are more than a picture shows; what is no number is nothing.
fn brief(values: &[f64]) -> Value {
    let short = |value: &f64| match value.is_finite() {
        true => format!("{value:.5e}").parse::<f64>().map_or(Value::Null, |short| json!(short)),
        false => Value::Null,
    };
    values.iter().map(short).collect()
}
