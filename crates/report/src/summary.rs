//! The summary of a run under the reference's key names (spec/replay.md 8.2).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wavetank_model::{Nanos, RejectReason, WorkerRole};

use crate::statistics::ratio;
use crate::{Attribution, CourseOf, Distribution, Scaling, TiersSummary};

/// What became of the requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that reached the router.
    pub arrived: u64,
    /// Requests that got all their tokens.
    pub completed: u64,
    /// Requests that were given up, by reason.
    pub rejected: BTreeMap<RejectReason, u64>,
    /// Requests whose askers went away before they ended.
    pub cancelled: u64,
    /// Times a running request lost its blocks.
    pub preemptions: u64,
    /// Times a preempted request was admitted again.
    pub readmissions: u64,
}

impl Counts {
    /// Requests given up, for whatever reason.
    pub fn rejected_total(&self) -> u64 {
        self.rejected.values().sum()
    }

    /// Requests that had not ended when the run did.
    pub fn in_flight(&self) -> u64 {
        self.arrived - self.completed - self.rejected_total() - self.cancelled
    }
}

/// The numbers of a serving run. Token sums and latencies are those of completed requests; gaps between
/// tokens and rates are those of all.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What became of the requests.
    pub counts: Counts,
    /// The last completion, from the start of the simulation.
    pub duration: Nanos,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Generated tokens.
    pub output_tokens: u64,
    /// Prompt tokens found in a cache, the best admission of each request.
    pub reused_tokens: u64,
    /// Prompt tokens found in a cache at the first admission of each request.
    pub first_reused_tokens: u64,
    /// Requests and their tokens within the bounds, when there are any.
    pub goodput: Option<(u64, u64)>,
    /// Arrival to first token.
    pub ttft_ms: Distribution,
    /// First token to second token.
    pub ttst_ms: Distribution,
    /// Mean gap of a request.
    pub tpot_ms: Distribution,
    /// Every gap of every request.
    pub itl_ms: Distribution,
    /// Arrival to last token.
    pub e2e_ms: Distribution,
    /// Inverse of every gap.
    pub rate_per_user: Distribution,
    /// Where the time went.
    pub attribution: Attribution,
    /// Who came and went, where the number of workers could change.
    pub scaling: Option<Scaling>,
    /// What tiers behind the GPU's memory did, where there are any.
    pub tiers: Option<TiersSummary>,
    /// What pictures are drawn from, where they were asked for.
    pub pictures: Option<Pictures>,
}

/// What pictures of a run are drawn from.
#[derive(Clone, Debug)]
pub struct Pictures {
    /// It over time.
    pub course: CourseOf,
    /// Name, and the value at each of `curve_percentiles`.
    pub curves: Vec<(&'static str, Vec<f64>)>,
}

/// The percentiles of a curve: all whole ones, and more where the tail is.
pub(crate) fn curve_percentiles() -> Vec<f64> {
    let whole = (0..=99).map(f64::from);
    whole.chain([99.2, 99.4, 99.6, 99.8, 99.9, 99.95, 99.99, 100.0]).collect()
}

impl Pictures {
    /// The curves, as they stand in a report.
    pub fn curves_json(&self) -> Value {
        let values: Map<String, Value> =
            self.curves.iter().map(|(name, values)| ((*name).to_owned(), json!(values))).collect();
        json!({ "percentiles": curve_percentiles(), "values": values })
    }
}

/// Workers alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// How many.
    pub workers: u32,
    /// GPUs of each.
    pub gpus: u32,
}

impl Summary {
    fn per_second(&self, amount: u64) -> f64 {
        amount as f64 / self.duration.as_seconds().max(1e-9)
    }

    /// Output tokens per second of simulated time.
    pub(crate) fn output_tokens_per_second(&self) -> f64 {
        self.per_second(self.output_tokens)
    }

    /// Completed requests per second of simulated time.
    pub(crate) fn requests_per_second(&self) -> f64 {
        self.per_second(self.counts.completed)
    }

    /// Reused part of the prompt tokens, the best admission of each request.
    pub fn reused_ratio(&self) -> f64 {
        ratio(self.reused_tokens as f64, self.input_tokens as f64)
    }

    /// Reused part of the prompt tokens at first admission.
    pub fn first_reused_ratio(&self) -> f64 {
        ratio(self.first_reused_tokens as f64, self.input_tokens as f64)
    }

    /// All keys of the reference's summary that do not depend on the wall clock. Aggregated workers are
    /// counted as decode workers, as the reference does.
    pub fn keys(&self, prefill: Pool, decode: Pool) -> Map<String, Value> {
        let seconds = |count: u32| self.duration.as_seconds() * f64::from(count);
        let gpus = prefill.workers * prefill.gpus + decode.workers * decode.gpus;
        let (prefill_seconds, decode_seconds, gpu_seconds) = match &self.scaling {
            None => (seconds(prefill.workers), seconds(decode.workers), seconds(gpus)),
            Some(scaling) => {
                let present = |role| scaling.worker_seconds(role, self.duration);
                let prefilling = present(WorkerRole::Prefill);
                let decoding = present(WorkerRole::Aggregated) + present(WorkerRole::Decode);
                let gpu_seconds = prefilling * f64::from(prefill.gpus) + decoding * f64::from(decode.gpus);
                (prefilling, decoding, gpu_seconds)
            }
        };
        let Value::Object(mut keys) = json!({
            "num_requests": self.counts.arrived,
            "completed_requests": self.counts.completed,
            "total_input_tokens": self.input_tokens,
            "total_output_tokens": self.output_tokens,
            "processed_tokens": self.input_tokens + self.output_tokens,
            "duration_ms": self.duration.as_ms(),
            "request_throughput_rps": self.requests_per_second(),
            "input_throughput_tok_s": self.per_second(self.input_tokens),
            "output_throughput_tok_s": self.output_tokens_per_second(),
            "total_throughput_tok_s": self.per_second(self.input_tokens + self.output_tokens),
            "prefix_cache_reused_ratio": self.reused_ratio(),
            "first_admission_prefix_cache_reused_ratio": self.first_reused_ratio(),
            "prefill_worker_seconds": prefill_seconds,
            "decode_worker_seconds": decode_seconds,
            "prefill_gpus_per_worker": prefill.gpus,
            "decode_gpus_per_worker": decode.gpus,
            "gpu_hours": gpu_seconds / 3600.0,
        }) else {
            unreachable!("the literal above is an object")
        };
        for (name, values) in self.distributions() {
            keys.extend(statistics(name, values));
        }
        if let Some((requests, tokens)) = self.goodput {
            keys.insert("goodput_completed_requests".to_owned(), json!(requests));
            keys.insert("goodput_request_throughput_rps".to_owned(), json!(self.per_second(requests)));
            keys.insert("goodput_output_throughput_tok_s".to_owned(), json!(self.per_second(tokens)));
        }
        keys
    }

    fn distributions(&self) -> [(&'static str, &Distribution); 6] {
        [
            ("ttft_ms", &self.ttft_ms),
            ("ttst_ms", &self.ttst_ms),
            ("tpot_ms", &self.tpot_ms),
            ("itl_ms", &self.itl_ms),
            ("e2e_latency_ms", &self.e2e_ms),
            ("output_token_throughput_per_user", &self.rate_per_user),
        ]
    }

    /// What became of the requests, and why. Nobody goes away in a replay, whose reports say nothing of it.
    pub fn counts_json(&self) -> Map<String, Value> {
        let counts = &self.counts;
        let rejected: Map<String, Value> =
            counts.rejected.iter().map(|(reason, &n)| (reason.name().to_owned(), json!(n))).collect();
        let Value::Object(mut object) = json!({
            "arrived": counts.arrived,
            "completed": counts.completed,
            "rejected": rejected,
            "in_flight": counts.in_flight(),
            "preemptions": counts.preemptions,
            "readmissions": counts.readmissions,
        }) else {
            unreachable!("the literal above is an object")
        };
        if counts.cancelled > 0 {
            object.insert("cancelled".to_owned(), json!(counts.cancelled));
        }
        object
    }
}

fn statistics(name: &str, values: &Distribution) -> Vec<(String, Value)> {
    let named = [
        ("mean", values.mean),
        ("min", values.min),
        ("max", values.max),
        ("median", values.median),
        ("p75", values.p75),
        ("p90", values.p90),
        ("p95", values.p95),
        ("p99", values.p99),
        ("std", values.std),
    ];
    named.map(|(statistic, value)| (format!("{statistic}_{name}"), json!(value))).into()
}
