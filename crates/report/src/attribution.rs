//! Where the time to the first token went, and which workers were hot.

use serde_json::{Value, json};
use wavetank_model::Nanos;

use crate::Distribution;

/// The parts of a request's time, over completed requests with tokens. All but the last add up to the time to
/// the first token; those of a handoff are zero where a worker does all of a request.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    /// Arrival to being sent to a worker.
    pub router_queue_ms: Distribution,
    /// Being sent to first admission, but for what tiers take.
    pub engine_queue_ms: Distribution,
    /// Waiting for what was found in tiers, which holds up the admission.
    pub tier_load_ms: Distribution,
    /// In passes that computed the prompt.
    pub prefill_ms: Distribution,
    /// Waiting for room on a decode worker, before or after the prompt was computed.
    pub decode_room_ms: Distribution,
    /// On the way to the decode worker.
    pub transfer_ms: Distribution,
    /// Between the end of the transfer and the decode pass that gives the first token.
    pub decode_wait_ms: Distribution,
    /// In that pass.
    pub decode_step_ms: Distribution,
    /// Between admission and first token, in passes that computed nothing of it: starved or preempted.
    pub first_token_wait_ms: Distribution,
    /// First to last token.
    pub decode_ms: Distribution,
    /// By worker; in a disaggregated fleet those that prefill come first.
    pub workers: Vec<WorkerShare>,
    /// From the start to the end of the last pass.
    pub span: Nanos,
}

/// What one worker had of the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerShare {
    /// Requests sent to it.
    pub requests: u64,
    /// Requests it completed with tokens.
    pub completed: u64,
    /// Prompt tokens it computed.
    pub prompt_tokens: u64,
    /// Prompt tokens found in its cache at first admission.
    pub reused_tokens: u64,
    /// Tokens it generated for completed requests.
    pub output_tokens: u64,
    /// Sum of their times to first token.
    pub ttft_ms_sum: f64,
    /// Time it spent in passes.
    pub busy: Nanos,
    /// How long it was there, where that is not all the time.
    pub present: Option<Nanos>,
}

impl WorkerShare {
    /// Part of `span` it spent in passes, or of the time it was there.
    pub fn busy_share(&self, span: Nanos) -> f64 {
        self.busy.as_seconds() / self.present.unwrap_or(span).as_seconds().max(1e-9)
    }

    fn mean_ttft_ms(&self) -> f64 {
        self.ttft_ms_sum / (self.completed.max(1) as f64)
    }
}

impl Attribution {
    /// The parts of the time to the first token, in order.
    pub fn ttft_parts(&self) -> [(&'static str, &Distribution); 9] {
        [
            ("router_queue_ms", &self.router_queue_ms),
            ("engine_queue_ms", &self.engine_queue_ms),
            ("tier_load_ms", &self.tier_load_ms),
            ("prefill_ms", &self.prefill_ms),
            ("decode_room_ms", &self.decode_room_ms),
            ("transfer_ms", &self.transfer_ms),
            ("decode_wait_ms", &self.decode_wait_ms),
            ("decode_step_ms", &self.decode_step_ms),
            ("first_token_wait_ms", &self.first_token_wait_ms),
        ]
    }

    /// The parts that only a handoff has.
    pub(crate) const HANDOFF_PARTS: [&'static str; 4] =
        ["decode_room_ms", "transfer_ms", "decode_wait_ms", "decode_step_ms"];

    /// Whether a part is one that there can be in this run.
    pub(crate) fn has_part(&self, key: &str) -> bool {
        match key {
            "tier_load_ms" => self.tier_load_ms.max > 0.0,
            key => self.hands_off() || !Self::HANDOFF_PARTS.contains(&key),
        }
    }

    /// Whether prompts were handed from one worker to another.
    pub(crate) fn hands_off(&self) -> bool {
        self.decode_step_ms.max > 0.0
    }

    /// The busiest and the least busy worker.
    pub fn extremes(&self) -> Option<(usize, usize)> {
        let by_busy = |&a: &usize, &b: &usize| self.workers[a].busy.cmp(&self.workers[b].busy);
        let numbers = 0..self.workers.len();
        Some((numbers.clone().max_by(by_busy)?, numbers.min_by(by_busy)?))
    }

    /// As it stands in a report.
    pub fn json(&self) -> Value {
        let ttft: f64 = self.ttft_parts().iter().map(|(_, part)| part.mean).sum();
        let part = |values: &Distribution| {
            let share = if ttft > 0.0 { values.mean / ttft } else { 0.0 };
            json!({
                "mean": values.mean, "median": values.median, "p90": values.p90, "p99": values.p99,
                "share_of_mean_ttft": share,
            })
        };
        let parts = self.ttft_parts();
        let shown = parts.iter().filter(|(name, _)| *name != "tier_load_ms" || self.has_part(name));
        let ttft_parts: serde_json::Map<String, Value> =
            shown.map(|(name, values)| ((*name).to_owned(), part(values))).collect();
        let workers: Vec<Value> =
            (0..).zip(&self.workers).map(|(number, share)| worker(number, share, self.span)).collect();
        json!({ "ttft": ttft_parts, "mean_decode_ms": self.decode_ms.mean, "workers": workers })
    }
}

fn worker(number: u32, share: &WorkerShare, span: Nanos) -> Value {
    json!({
        "worker": number,
        "requests": share.requests,
        "completed": share.completed,
        "computed_prompt_tokens": share.prompt_tokens,
        "reused_prompt_tokens": share.reused_tokens,
        "output_tokens": share.output_tokens,
        "busy_ms": share.busy.as_ms(),
        "busy_share": share.busy_share(span),
        "mean_ttft_ms": share.mean_ttft_ms(),
    })
}
