//! Percentiles of latencies, of those that were simulated and of those that were seen.

use wavetank::LatencyHistogram;
use wavetank_model::Nanos;

/// What is compared: names, and quantiles; the mean has none.
pub(super) const STATISTICS: [(&str, Option<f64>); 7] = [
    ("mean", None),
    ("p50", Some(0.5)),
    ("p90", Some(0.9)),
    ("p95", Some(0.95)),
    ("p99", Some(0.99)),
    ("p99.9", Some(0.999)),
    ("max", Some(1.0)),
];

/// Latencies in milliseconds, at [`STATISTICS`].
pub(super) struct Spread {
    pub(super) count: u64,
    pub(super) ms: [f64; STATISTICS.len()],
}

impl Spread {
    /// Of single ones; nearest rank.
    pub(super) fn of(mut all: Vec<Nanos>) -> Self {
        all.sort_unstable();
        let mean = all.iter().map(|it| it.as_ms()).sum::<f64>() / all.len().max(1) as f64;
        let at = |quantile: f64| {
            let rank = (quantile * all.len() as f64).ceil() as usize;
            all.get(rank.saturating_sub(1)).map_or(0.0, |it| it.as_ms())
        };
        Self { count: all.len() as u64, ms: STATISTICS.map(|(_, quantile)| quantile.map_or(mean, at)) }
    }

    /// Of a histogram.
    pub(super) fn seen(histogram: &LatencyHistogram) -> Self {
        let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e6;
        let mean = histogram.mean() / 1e6;
        Self { count: histogram.len(), ms: STATISTICS.map(|(_, quantile)| quantile.map_or(mean, at)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a rank that is one off, on either side.
    #[test]
    fn both_sides_of_the_same_latencies_are_the_same() {
        let all: Vec<Nanos> = (1..=1000).map(|ms| Nanos(ms * 1_000_000)).collect();
        let mut histogram = LatencyHistogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        all.iter().for_each(|it| histogram.record(it.0).unwrap());
        let (ours, theirs) = (Spread::of(all), Spread::seen(&histogram));
        assert_eq!(ours.count, theirs.count);
        assert_eq!(ours.ms, [500.5, 500.0, 900.0, 950.0, 990.0, 999.0, 1000.0]);
        for (ours, theirs) in ours.ms.iter().zip(theirs.ms) {
            assert!((ours / theirs - 1.0).abs() < 1e-3, "{ours} {theirs}");
        }
        assert_eq!(Spread::of(Vec::new()).ms, [0.0; STATISTICS.len()]);
    }
}
