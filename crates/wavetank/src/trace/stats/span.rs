//! A trace over time: counts in spans of equal length, which double whenever there are too many.

use std::collections::BTreeMap;

use serde::Serialize;
use wavetank_trace::Moment;

/// As many spans as a picture shows.
const MOST: u64 = 200;
/// The shortest span: a rate over less says little.
const SHORTEST: i64 = 1_000_000_000;

/// Counts over time. Rows may come in any order.
pub(super) struct Spans {
    origin: Option<Moment>,
    last: Moment,
    first: Moment,
    /// Nanoseconds.
    length: i64,
    counts: BTreeMap<i64, Counts>,
}

/// What came in a span.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) requests: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Input tokens that no prompt before held.
    pub(super) new_tokens: u64,
}

/// Rates over time, one number for each span.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OverTime {
    /// How long a span is.
    pub span_s: f64,
    /// Where spans begin, from the first request.
    pub from_s: Vec<f64>,
    /// Requests that came, per second.
    pub requests_per_s: Vec<f64>,
    /// Tokens of their prompts.
    pub input_tokens_per_s: Vec<f64>,
    /// Tokens they generate.
    pub output_tokens_per_s: Vec<f64>,
    /// The share of prompt tokens that prompts before them held; nothing where none came.
    pub reused_share: Vec<Option<f64>>,
}

impl Default for Spans {
    fn default() -> Self {
        let (first, last) = (Moment::default(), Moment::default());
        Self { origin: None, first, last, length: SHORTEST, counts: BTreeMap::new() }
    }
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.new_tokens += other.new_tokens;
    }
}

impl Spans {
    pub(super) fn add(&mut self, at: Moment, counts: Counts) {
        if self.origin.is_none() {
            (self.origin, self.first, self.last) = (Some(at), at, at);
        }
        (self.first, self.last) = (self.first.min(at), self.last.max(at));
        let origin = self.origin.unwrap_or(at);
        let away = at.nanos.saturating_sub(origin.nanos);
        self.counts.entry(away.div_euclid(self.length)).or_default().add(counts);
        while self.extent() > MOST {
            self.length = self.length.saturating_mul(2);
            for (place, counts) in std::mem::take(&mut self.counts) {
                self.counts.entry(place.div_euclid(2)).or_default().add(counts);
            }
        }
    }

    /// Spans from the first to the last, with those in which nothing came.
    fn extent(&self) -> u64 {
        match (self.counts.first_key_value(), self.counts.last_key_value()) {
            (Some((first, _)), Some((last, _))) => last.abs_diff(*first) + 1,
            _ => 0,
        }
    }

    /// From the first request to the last, if any has a time.
    pub(super) fn duration_s(&self) -> Option<f64> {
        self.origin.map(|_| self.last.nanos.abs_diff(self.first.nanos) as f64 / 1e9)
    }

    pub(super) fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.counts.values().for_each(|counts| total.add(*counts));
        total
    }

    pub(super) fn over_time(&self) -> OverTime {
        let Some((&first, _)) = self.counts.first_key_value() else { return OverTime::default() };
        let span_s = self.length as f64 / 1e9;
        let mut over_time = OverTime { span_s, ..OverTime::default() };
        let rate = |count: u64| count as f64 / span_s;
        for place in first..first + self.extent() as i64 {
            let counts = self.counts.get(&place).copied().unwrap_or_default();
            over_time.from_s.push((place - first) as f64 * span_s);
            over_time.requests_per_s.push(rate(counts.requests));
            over_time.input_tokens_per_s.push(rate(counts.input_tokens));
            over_time.output_tokens_per_s.push(rate(counts.output_tokens));
            let old = counts.input_tokens.saturating_sub(counts.new_tokens) as f64;
            over_time.reused_share.push((counts.input_tokens > 0).then(|| old / counts.input_tokens as f64));
        }
        over_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a request that is lost or counted twice when spans are joined, in whatever order rows come,
    /// or more spans than there may be.
    #[test]
    fn nothing_is_lost_when_spans_are_joined() {
        let mut spans = Spans::default();
        let seconds: Vec<i64> = (0..1_000).map(|number| (number * 7_919) % 5_003 - 1_000).collect();
        for second in &seconds {
            let counts = Counts { requests: 1, input_tokens: 10, output_tokens: 1, new_tokens: 4 };
            spans.add(Moment { nanos: second * 1_000_000_000 }, counts);
        }
        let over_time = spans.over_time();
        let count = over_time.from_s.len() as u64;
        assert!(count > MOST / 2 && count <= MOST, "{count}");
        assert_eq!(over_time.span_s, 32.0);
        let requests: f64 = over_time.requests_per_s.iter().map(|rate| rate * over_time.span_s).sum();
        assert!((requests - 1_000.0).abs() < 1e-6, "{requests}");
        assert_eq!(spans.total().requests, 1_000);
        let (least, most) = (seconds.iter().min().unwrap(), seconds.iter().max().unwrap());
        assert_eq!(spans.duration_s(), Some((most - least) as f64));
        assert!(over_time.reused_share.iter().flatten().all(|share| (share - 0.6).abs() < 1e-9));
    }
}
