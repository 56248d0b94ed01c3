//! Histograms of fixed buckets, with the bounds that vLLM has (vllm/v1/metrics/loggers.py), so that its
//! dashboards fit.

use std::sync::Arc;

use wavetank_model::Nanos;

/// Seconds to the first token.
const FIRST_TOKEN: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
];
/// Seconds between tokens.
const TOKEN_GAP: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
/// Seconds of a request, or of a part of its life.
const LATENCY: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
];

/// The bounds of all histograms, which workers share.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    first_token: Arc<[f64]>,
    token_gap: Arc<[f64]>,
    latency: Arc<[f64]>,
    length: Arc<[f64]>,
}

impl Bounds {
    /// For requests of up to `longest` tokens.
    pub(super) fn up_to(longest: u64) -> Self {
        let steps = (0..19).flat_map(|exponent| [1, 2, 5].map(|digit| digit * 10u64.pow(exponent)));
        Self {
            first_token: Arc::from(FIRST_TOKEN),
            token_gap: Arc::from(TOKEN_GAP),
            latency: Arc::from(LATENCY),
            length: steps.take_while(|step| *step <= longest).map(|step| step as f64).collect(),
        }
    }
}

/// How requests of one worker fared.
#[derive(Clone, Debug)]
pub(super) struct Histograms {
    pub(super) first_token: Histogram,
    pub(super) token_gap: Histogram,
    /// The mean gap of each request.
    pub(super) time_per_token: Histogram,
    pub(super) whole: Histogram,
    pub(super) queue: Histogram,
    pub(super) prefill: Histogram,
    pub(super) decode: Histogram,
    /// Prefill and decode.
    pub(super) inference: Histogram,
    pub(super) prompt_tokens: Histogram,
    pub(super) generated_tokens: Histogram,
}

impl Histograms {
    pub(super) fn within(bounds: &Bounds) -> Self {
        let [latency, length] = [&bounds.latency, &bounds.length].map(Histogram::within);
        Self {
            first_token: Histogram::within(&bounds.first_token),
            token_gap: Histogram::within(&bounds.token_gap),
            time_per_token: Histogram::within(&bounds.token_gap),
            whole: latency.clone(),
            queue: latency.clone(),
            prefill: latency.clone(),
            decode: latency.clone(),
            inference: latency,
            prompt_tokens: length.clone(),
            generated_tokens: length,
        }
    }
}

/// How many were how large.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    pub(super) bounds: Arc<[f64]>,
    /// One more than bounds: what is above all of them.
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
}

impl Histogram {
    fn within(bounds: &Arc<[f64]>) -> Self {
        Self { bounds: Arc::clone(bounds), counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(super) fn observe(&mut self, value: f64) {
        self.observe_times(value, 1);
    }

    /// The same, of a span in seconds.
    pub(super) fn observe_span(&mut self, span: Nanos) {
        self.observe(span.as_seconds());
    }

    /// The same `times` at once.
    pub(super) fn observe_times(&mut self, value: f64, times: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += times;
        self.sum += value * times as f64;
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a value that is as large as a bound counted above it, or one above all bounds lost.
    #[test]
    fn a_bound_holds_what_is_at_most_as_large() {
        let mut histogram = Histogram::within(&Arc::from([1.0, 2.0]));
        [0.5, 1.0, 1.5, 2.0, 2.5].iter().for_each(|value| histogram.observe(*value));
        histogram.observe_times(0.25, 4);
        assert_eq!(histogram.counts, [6, 2, 1]);
        assert_eq!((histogram.count(), histogram.sum), (9, 8.5));
    }

    /// Broken by: bounds beyond the longest request, or none at it.
    #[test]
    fn lengths_are_bounded_by_the_longest() {
        assert_eq!(*Bounds::up_to(100).length, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(*Bounds::up_to(19).length, [1.0, 2.0, 5.0, 10.0]);
        let all = [FIRST_TOKEN.as_slice(), &TOKEN_GAP, &LATENCY];
        assert!(all.iter().all(|bounds| bounds.is_sorted_by(|one, next| one < next)));
    }
}
