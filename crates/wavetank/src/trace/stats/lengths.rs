//! How long prompts and answers are: sum and largest exactly, the rest in buckets of three digits.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Digits of a bucket.
const DIGITS: u8 = 3;
/// Points of a distribution that are told.
const POINTS: usize = 200;

/// Lengths as they come.
pub(super) struct Lengths {
    counts: Histogram<u64>,
    sum: u64,
    max: u64,
}

/// What is said of lengths.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LengthStats {
    /// How many there are.
    pub count: u64,
    /// All together.
    pub sum: u64,
    /// On average.
    pub mean: f64,
    /// Half are no longer.
    pub p50: u64,
    /// Nine of ten are no longer.
    pub p90: u64,
    /// All but one in a hundred are no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// Lengths and the share that is no longer.
    pub distribution: Vec<(u64, f64)>,
}

impl Default for Lengths {
    fn default() -> Self {
        let counts = Histogram::new(DIGITS).expect("three digits are possible");
        Self { counts, sum: 0, max: 0 }
    }
}

impl Lengths {
    pub(super) fn add(&mut self, length: u32) {
        self.counts.record(length.into()).expect("the histogram grows");
        self.sum += u64::from(length);
        self.max = self.max.max(length.into());
    }

    pub(super) fn stats(&self) -> LengthStats {
        let (counts, count) = (&self.counts, self.counts.len());
        if count == 0 {
            return LengthStats::default();
        }
        let max = self.max;
        let at = |quantile| counts.value_at_quantile(quantile).min(max);
        let mut distribution: Vec<(u64, f64)> = (0..=POINTS)
            .map(|point| point as f64 / POINTS as f64)
            .map(|share| (if share == 0.0 { counts.min() } else { at(share) }, share))
            .collect();
        // Of equal lengths the last says how many are no longer.
        distribution.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 = if is_same { next.1 } else { kept.1 };
            is_same
        });
        LengthStats {
            count,
            sum: self.sum,
            mean: self.sum as f64 / count as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max,
            distribution,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a quantile off by a rank, or a distribution that does not end with all.
    #[test]
    fn quantiles_of_a_hundred() {
        let mut lengths = Lengths::default();
        (1..=100).for_each(|length| lengths.add(length));
        let stats = lengths.stats();
        assert_eq!((stats.p50, stats.p90, stats.p99, stats.max), (50, 90, 99, 100));
        assert_eq!((stats.sum, stats.mean), (5_050, 50.5));
        assert_eq!((stats.distribution.len(), stats.distribution[99]), (100, (100, 1.0)));
        assert_eq!(stats.distribution[49], (50, 0.5));
        let mut large = Lengths::default();
        large.add(123_457);
        assert_eq!((large.stats().p50, large.stats().max), (123_457, 123_457));
        assert_eq!(Lengths::default().stats(), LengthStats::default());
    }
}
