//! Latencies of real calls: every value up to a million, then buckets with three digits. Percentiles are
//! nearest rank.

use hdrhistogram::Histogram;
use serde::Serialize;
use wavetank_model::Nanos;

/// Percentiles are exact up to this many values.
const EXACT_LIMIT: usize = 1_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies as they come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Latencies {
    values: Vec<u64>,
    /// All of them, once there are too many.
    counts: Option<Histogram<u64>>,
    sum: u64,
    min: Option<u64>,
    max: u64,
}

/// What is said of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// So did 90 of 100.
    pub p90_ns: u64,
    /// So did 95 of 100.
    pub p95_ns: u64,
    /// So did 99 of 100.
    pub p99_ns: u64,
    /// So did 999 of 1000.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Latencies {
    pub(crate) fn record(&mut self, latency: Nanos) {
        self.sum = self.sum.saturating_add(latency.0);
        self.min = Some(self.min.map_or(latency.0, |min| min.min(latency.0)));
        self.max = self.max.max(latency.0);
        match &mut self.counts {
            Some(counts) => count(counts, latency.0),
            None => self.values.push(latency.0),
        }
        if self.values.len() > EXACT_LIMIT {
            self.count_all();
        }
    }

    /// Adds all of `other`.
    pub(super) fn absorb(&mut self, mut other: Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.into_iter().chain(other.min).min();
        self.max = self.max.max(other.max);
        if self.counts.is_none() && other.counts.is_none() {
            self.values.append(&mut other.values);
            if self.values.len() > EXACT_LIMIT {
                self.count_all();
            }
            return;
        }
        self.count_all();
        other.count_all();
        if let (Some(ours), Some(theirs)) = (&mut self.counts, other.counts) {
            ours.add(theirs).expect("the histogram grows with its values");
        }
    }

    pub(crate) fn spread(mut self) -> Spread {
        self.values.sort_unstable();
        let count = self.counts.as_ref().map_or(self.values.len() as u64, Histogram::len);
        if count == 0 {
            return Spread::default();
        }
        let at = |per_mille: u64| match &self.counts {
            Some(counts) => counts.value_at_quantile(per_mille as f64 / 1000.0).min(self.max),
            None => self.values[((count * per_mille).div_ceil(1000).max(1) - 1) as usize],
        };
        Spread {
            count,
            mean_ns: self.sum as f64 / count as f64,
            min_ns: self.min.unwrap_or(0),
            p50_ns: at(500),
            p90_ns: at(900),
            p95_ns: at(950),
            p99_ns: at(990),
            p999_ns: at(999),
            max_ns: self.max,
        }
    }

    /// Values that are kept one by one.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.values.len()
    }

    fn count_all(&mut self) {
        let counts = self
            .counts
            .get_or_insert_with(|| Histogram::new(SIGNIFICANT_DIGITS).expect("a sound number of digits"));
        for value in self.values.drain(..) {
            count(counts, value);
        }
    }
}

/// The smallest bucket is 1.
fn count(counts: &mut Histogram<u64>, value: u64) {
    counts.record(value.max(1)).expect("the histogram grows with its values");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a rank that is off by one, values that are lost when there are many.
    #[test]
    fn ranks_are_nearest_and_many_values_are_counted() {
        let of = |values: std::ops::RangeInclusive<u64>| {
            let mut latencies = Latencies::default();
            values.for_each(|value| latencies.record(Nanos(value)));
            latencies
        };
        let spread = of(1..=100).spread();
        assert_eq!((spread.count, spread.p50_ns, spread.p95_ns, spread.p99_ns), (100, 50, 95, 99));
        assert_eq!((spread.p999_ns, spread.max_ns, spread.mean_ns), (100, 100, 50.5));
        assert_eq!((spread.min_ns, spread.p90_ns), (1, 90));
        let mut two = of(1..=2);
        two.absorb(of(3..=EXACT_LIMIT as u64 + 1));
        let spread = two.spread();
        assert_eq!((spread.count, spread.max_ns), (EXACT_LIMIT as u64 + 1, EXACT_LIMIT as u64 + 1));
        assert!(spread.p50_ns.abs_diff(500_000) <= 500, "{}", spread.p50_ns);
        assert_eq!(Latencies::default().spread(), Spread::default());
    }
}
