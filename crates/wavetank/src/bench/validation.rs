//! `--validation-trace`: is the hit rate that of a recorded run?

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use wavetank_model::{Error, Result};

/// How far apart the hit rates may be, of the recorded one.
const TOLERANCE_PERCENT: f64 = 5.0;

/// A request of a recorded run, as far as it matters here.
#[derive(Deserialize)]
struct Recorded {
    cache_hit: bool,
    #[serde(default)]
    context_tokens: u64,
    #[serde(default)]
    generation_tokens: u64,
}

/// The recorded run.
pub(super) struct Validation {
    requests: u64,
    hits: u64,
    context_tokens: u64,
    generation_tokens: u64,
}

impl Validation {
    /// Reads a JSON list of requests.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        let rows: Vec<Recorded> = serde_json::from_str(&text).map_err(|error| {
            Error::input(format!("not a validation trace: {error}"))
                .at(format!("{place}:{}", error.line()))
                .hint("it is a JSON list of requests, each with \"cache_hit\": true or false")
        })?;
        if rows.is_empty() {
            return Err(Error::input("there are no requests in it").at(place));
        }
        let sum = |of: fn(&Recorded) -> u64| rows.iter().map(of).sum();
        Ok(Self {
            requests: rows.len() as u64,
            hits: sum(|row| u64::from(row.cache_hit)),
            context_tokens: sum(|row| row.context_tokens),
            generation_tokens: sum(|row| row.generation_tokens),
        })
    }

    /// The reference's `validation` key. A run without lookups has no hit rate to compare.
    pub(super) fn judge(&self, hit_rate: Option<f64>) -> Value {
        let recorded = self.hits as f64 / self.requests as f64;
        let error = hit_rate.map(|rate| (rate - recorded).abs() / recorded.max(f64::MIN_POSITIVE) * 100.0);
        let hit_rates = json!({ "benchmark": hit_rate, "trace": recorded, "error_pct": error });
        json!({
            "passed": error.is_some_and(|error| error <= TOLERANCE_PERCENT),
            "avg_error_pct": error,
            "comparison": { "cache_hit_rate": hit_rates },
            "trace_stats": {
                "total_requests": self.requests,
                "cache_hit_rate": recorded,
                "total_context_tokens": self.context_tokens,
                "total_generation_tokens": self.generation_tokens,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_percent_of_the_recorded_rate_pass() {
        let trace = Validation { requests: 100, hits: 60, context_tokens: 0, generation_tokens: 0 };
        let passed = |rate| trace.judge(rate)["passed"].clone();
        assert_eq!(
            [passed(Some(0.62)), passed(Some(0.64)), passed(None)],
            [json!(true), json!(false), json!(false)]
        );
    }
}
