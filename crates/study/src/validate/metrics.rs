//! Latencies of requests, their statistics, and how far simulated ones are from measured ones.
//!
//! Times count from when the engine saw a request, as the published measurements do; percentiles are
//! interpolated between the two nearest ranks.

use serde_json::{Map, Value, json};

/// The latencies of one request in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// When the engine saw it, in seconds of the measured clock.
    pub queued_s: f64,
    /// To the first token.
    pub ttft_ms: f64,
    /// Between tokens on average; `None` for a single token.
    pub tpot_ms: Option<f64>,
    /// To the last token.
    pub e2e_ms: f64,
    /// To the first pass.
    pub queue_ms: f64,
}

impl Latency {
    /// From the times it was queued, scheduled, and got its first and its last token, in seconds.
    pub(super) fn of([queued, scheduled, first, last]: [f64; 4], output_tokens: u32) -> Self {
        let ms = |from: f64, to: f64| (to - from) * 1000.0;
        Self {
            queued_s: queued,
            ttft_ms: ms(queued, first),
            tpot_ms: (output_tokens > 1).then(|| ms(first, last) / f64::from(output_tokens - 1)),
            e2e_ms: ms(queued, last),
            queue_ms: ms(queued, scheduled),
        }
    }
}

/// Whether the error of a metric counts when a tolerance is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It does.
    Yes,
    /// It does not: most requests wait for microseconds only, and microseconds are not modelled.
    No,
}

/// A latency by its name.
pub(super) struct Metric {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) judged: Judged,
    pub(super) of: fn(&Latency) -> Option<f64>,
}

/// Every metric, in the order of the table.
pub(super) const METRICS: [Metric; 4] = [
    Metric { key: "ttft_ms", title: "TTFT", judged: Judged::Yes, of: |request| Some(request.ttft_ms) },
    Metric { key: "tpot_ms", title: "TPOT", judged: Judged::Yes, of: |request| request.tpot_ms },
    Metric { key: "e2e_ms", title: "E2E", judged: Judged::Yes, of: |request| Some(request.e2e_ms) },
    Metric { key: "queue_ms", title: "Queue", judged: Judged::No, of: |request| Some(request.queue_ms) },
];

/// A statistic: the mean, or a percentile.
const STATISTICS: [(&str, Option<f64>); 5] =
    [("mean", None), ("p50", Some(0.50)), ("p90", Some(0.90)), ("p95", Some(0.95)), ("p99", Some(0.99))];

/// One statistic of one metric, measured and simulated.
pub struct Cell {
    pub(super) metric: &'static Metric,
    pub(super) statistic: &'static str,
    pub(super) measured: Option<f64>,
    pub(super) simulated: Option<f64>,
}

impl Cell {
    /// Simulated over measured, less one; infinite where nothing was measured and something is simulated.
    pub fn error(&self) -> Option<f64> {
        let (measured, simulated) = (self.measured?, self.simulated?);
        Some(if measured == simulated { 0.0 } else { simulated / measured - 1.0 })
    }

    /// `TTFT P99`.
    pub fn name(&self) -> String {
        let statistic = self.statistic.replacen('p', "P", 1);
        format!("{} {statistic}", self.metric.title)
    }

    /// Its error, if it counts.
    fn judged_error(&self) -> Option<f64> {
        self.error().filter(|_| self.metric.judged == Judged::Yes)
    }
}

/// Every statistic of every metric.
pub struct Comparison {
    pub(super) cells: Vec<Cell>,
}

impl Comparison {
    pub(super) fn of(measured: Option<&[Latency]>, simulated: &[Latency]) -> Self {
        let mut cells = Vec::new();
        for metric in &METRICS {
            let sorted = |requests: &[Latency]| {
                let mut values: Vec<f64> = requests.iter().filter_map(metric.of).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let (measured, simulated) = (sorted(measured.unwrap_or_default()), sorted(simulated));
            cells.extend(STATISTICS.map(|(statistic, rank)| Cell {
                metric,
                statistic,
                measured: value(&measured, rank),
                simulated: value(&simulated, rank),
            }));
        }
        Self { cells }
    }

    /// The cell farthest off among TTFT, TPOT and E2E, the first of equals.
    pub fn worst(&self) -> Option<&Cell> {
        let judged = self.cells.iter().filter_map(|cell| Some((cell, cell.judged_error()?.abs())));
        judged.rev().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(cell, _)| cell)
    }

    #[cfg(test)]
    pub(super) fn cell(&self, key: &str, statistic: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.metric.key == key && cell.statistic == statistic)
    }

    /// By metric and statistic; what does not exist is `null`.
    pub(super) fn json(&self) -> Value {
        let mut metrics = Map::new();
        for cell in &self.cells {
            let entry = metrics.entry(cell.metric.key).or_insert_with(|| json!({}));
            entry[cell.statistic] =
                json!({ "measured": cell.measured, "simulated": cell.simulated, "error": cell.error() });
        }
        Value::Object(metrics)
    }
}

/// So many pairs are more than a picture shows.
const MOST_PAIRS: usize = 2_000;

/// What was measured and what was simulated of each request that has both; of many requests every so many-th.
pub(super) fn pairs(measured: Option<&[Latency]>, simulated: &[Option<Latency>]) -> Value {
    let both: Vec<(&Latency, &Latency)> = measured
        .into_iter()
        .flatten()
        .zip(simulated)
        .filter_map(|(measured, simulated)| Some((measured, simulated.as_ref()?)))
        .collect();
    let step = both.len().div_ceil(MOST_PAIRS).max(1);
    let of = |metric: &Metric| -> Value {
        let pair = |(measured, simulated): &(&Latency, &Latency)| {
            Some(json!([(metric.of)(measured)?, (metric.of)(simulated)?]))
        };
        both.iter().step_by(step).filter_map(pair).collect()
    };
    METRICS.iter().map(|metric| (metric.key.to_owned(), of(metric))).collect::<Map<_, _>>().into()
}

/// The mean of sorted values, or what lies at `rank` of them, interpolated.
fn value(sorted: &[f64], rank: Option<f64>) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let Some(rank) = rank else { return Some(sorted.iter().sum::<f64>() / sorted.len() as f64) };
    let position = last as f64 * rank;
    let below = position.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + (high - low) * position.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_interpolated() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(value(&sorted, None), Some(3.75));
        assert_eq!(value(&sorted, Some(0.5)), Some(3.0));
        assert_eq!(value(&sorted, Some(0.9)), Some(4.0 + 4.0 * (3.0 * 0.9 - 2.0)));
        assert_eq!(value(&[5.0], Some(0.99)), Some(5.0));
        assert_eq!(value(&[], None), None);
    }

    #[test]
    fn latencies_count_from_the_queue() {
        let latency = Latency::of([1.0, 1.5, 2.0, 4.0], 5);
        assert_eq!((latency.queue_ms, latency.ttft_ms, latency.e2e_ms), (500.0, 1000.0, 3000.0));
        assert_eq!(latency.tpot_ms, Some(500.0));
        assert_eq!(Latency::of([0.0, 0.0, 1.0, 1.0], 1).tpot_ms, None);
    }

    #[test]
    fn the_worst_is_not_a_queue_time() {
        let measured = [Latency::of([0.0, 0.1, 1.0, 2.0], 2)];
        let simulated = [Latency::of([0.0, 0.9, 1.1, 1.9], 2)];
        let comparison = Comparison::of(Some(&measured), &simulated);
        let worst = comparison.worst().unwrap();
        assert_eq!(worst.metric.key, "tpot_ms");
        assert!((worst.error().unwrap() + 0.2).abs() < 1e-9);
        assert!(Comparison::of(None, &simulated).worst().is_none());
        let nothing = [Latency::of([0.0, 0.0, 0.0, 0.0], 2)];
        assert_eq!(Comparison::of(Some(&nothing), &nothing).worst().unwrap().error(), Some(0.0));
        let error = Comparison::of(Some(&nothing), &simulated).worst().unwrap().error();
        assert_eq!(error, Some(f64::INFINITY));
    }
}
