//! Latencies of real I/O: every value up to a million, then buckets with three digits. What is said about
//! them keeps both, so that runs can be added up: the union says what one run of all values would have said.

use std::sync::Arc;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use wavetank_model::Nanos;

use crate::statistics::{rank, ratio};

/// Percentiles are exact up to this many values.
pub const EXACT_LIMIT: usize = 1_000_000;
/// No run has more: as many ranks as there may be can be added up.
const MOST: u64 = 1 << 40;
/// Digits of a bucket.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies as they come.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    kept: Kept,
    sum: u64,
    max: u64,
}

#[derive(Clone, Debug)]
enum Kept {
    /// Every value, in the order they came.
    Values(Vec<u64>),
    /// There are too many for that.
    Counts(Histogram<u64>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Values(Vec::new())
    }
}

impl Latencies {
    /// Adds one.
    pub fn record(&mut self, latency: Nanos) {
        self.sum = self.sum.saturating_add(latency.0);
        self.max = self.max.max(latency.0);
        match &mut self.kept {
            Kept::Values(values) if values.len() < EXACT_LIMIT => values.push(latency.0),
            Kept::Values(values) => self.kept = Kept::Counts(counted(values.iter().chain([&latency.0]))),
            Kept::Counts(histogram) => count(histogram, latency.0, 1),
        }
    }

    /// Adds all of `other`.
    pub fn absorb(&mut self, other: &Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        match (&mut self.kept, &other.kept) {
            (Kept::Values(ours), Kept::Values(more)) if ours.len() + more.len() <= EXACT_LIMIT => {
                ours.extend_from_slice(more);
            }
            _ => {
                let mut both = self.histogram();
                both.add(other.histogram()).expect("the histogram grows with its values");
                self.kept = Kept::Counts(both);
            }
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        match &self.kept {
            Kept::Values(values) => values.len() as u64,
            Kept::Counts(histogram) => histogram.len(),
        }
    }

    /// Their sum.
    pub fn sum(&self) -> Nanos {
        Nanos(self.sum)
    }

    /// Every one in the order they came, in nanoseconds, unless there are more than `limit`.
    pub fn values(&self, limit: usize) -> Option<&[u64]> {
        match &self.kept {
            Kept::Values(values) if values.len() <= limit => Some(values),
            _ => None,
        }
    }

    /// What a report says about them.
    pub fn spread(&self) -> Spread {
        let buckets = Buckets::new(&self.histogram(), self.sum, self.max);
        let Kept::Values(values) = &self.kept else { return buckets.spread() };
        let mut sorted = values.clone();
        sorted.sort_unstable();
        Spread::exact(buckets, sorted)
    }

    fn histogram(&self) -> Histogram<u64> {
        match &self.kept {
            Kept::Values(values) => counted(values),
            Kept::Counts(histogram) => histogram.clone(),
        }
    }
}

fn counted<'v>(values: impl IntoIterator<Item = &'v u64>) -> Histogram<u64> {
    let mut histogram = empty_histogram();
    values.into_iter().for_each(|&value| count(&mut histogram, value, 1));
    histogram
}

fn count(histogram: &mut Histogram<u64>, value: u64, times: u64) {
    histogram.record_n(value, times).expect("the histogram grows with its values");
}

fn empty_histogram() -> Histogram<u64> {
    Histogram::new(SIGNIFICANT_DIGITS).expect("a sound precision")
}

/// What a report says about latencies, in milliseconds; all zero when there is none.
///
/// Written as data it is its values, or its buckets where there are too many; everything else follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "Packed", try_from = "Packed")]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// 50th percentile.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile.
    pub p9999: f64,
    /// The longest.
    pub max: f64,
    /// The same as buckets, to be added to those of other runs.
    pub buckets: Buckets,
    /// Every value, ascending, in nanoseconds; nothing where there are too many to keep.
    samples: Arc<[u64]>,
}

impl Spread {
    /// Of every value, ascending.
    fn exact(buckets: Buckets, sorted: Vec<u64>) -> Self {
        let at = |percent| sorted.get(rank(sorted.len() as u64, percent) as usize).copied().unwrap_or(0);
        Self { samples: sorted.as_slice().into(), ..Self::new(buckets, at) }
    }

    fn new(buckets: Buckets, at: impl Fn(f64) -> u64) -> Self {
        let ms = |percent| Nanos(at(percent)).as_ms();
        Self {
            mean: ratio(buckets.sum_ns as f64, buckets.count() as f64) / 1e6,
            p50: ms(50.0),
            p95: ms(95.0),
            p99: ms(99.0),
            p999: ms(99.9),
            p9999: ms(99.99),
            max: Nanos(buckets.max_ns).as_ms(),
            buckets,
            samples: Arc::default(),
        }
    }

    /// What one run with the values of all `parts` would have said: percentiles of the union, exact as long
    /// as every part has its values and there are not too many of them, otherwise by buckets.
    pub fn merged<'s>(parts: impl IntoIterator<Item = &'s Self>) -> Self {
        let parts: Vec<&Self> = parts.into_iter().collect();
        let buckets = Buckets::union(parts.iter().map(|part| &part.buckets));
        let is_exact = parts.iter().all(|part| part.samples().is_some());
        if !is_exact || buckets.count() > EXACT_LIMIT as u64 {
            return buckets.spread();
        }
        let mut sorted: Vec<u64> = parts.iter().flat_map(|part| part.samples.iter().copied()).collect();
        sorted.sort_unstable();
        Self::exact(buckets, sorted)
    }

    /// Every value, ascending, in nanoseconds; none where there were too many to keep.
    pub fn samples(&self) -> Option<&[u64]> {
        (self.samples.len() as u64 == self.count()).then_some(&*self.samples)
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.buckets.count()
    }

    /// Their sum.
    pub fn sum(&self) -> Nanos {
        Nanos(self.buckets.sum_ns)
    }

    /// The percentiles by the names they have in reports.
    pub fn percentiles(&self) -> [(&'static str, f64); 5] {
        let Self { p50, p95, p99, p999, p9999, .. } = *self;
        [("p50", p50), ("p95", p95), ("p99", p99), ("p999", p999), ("p9999", p9999)]
    }
}

/// A spread as data.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Packed {
    /// Every value, ascending: how much it is above the one before, the first above zero. One text, because
    /// a list would be ten times as long where reports are indented.
    Steps(String),
    /// Too many for that.
    Buckets(Buckets),
}

impl From<Spread> for Packed {
    fn from(spread: Spread) -> Self {
        let Some(samples) = spread.samples() else { return Self::Buckets(spread.buckets) };
        let before = [0].iter().chain(samples);
        let steps = samples.iter().zip(before).map(|(value, before)| (value - before).to_string());
        Self::Steps(steps.collect::<Vec<_>>().join(" "))
    }
}

impl TryFrom<Packed> for Spread {
    type Error = &'static str;

    fn try_from(packed: Packed) -> Result<Self, Self::Error> {
        let steps = match packed {
            Packed::Steps(steps) => steps,
            Packed::Buckets(buckets) => {
                let mut counts = buckets.buckets.iter().map(|&(_, count)| count);
                let total = counts.try_fold(0u64, u64::checked_add).filter(|total| *total <= MOST);
                return total.map(|_| buckets.spread()).ok_or("buckets with too many latencies");
            }
        };
        let mut latencies = Latencies::default();
        let mut value = 0u64;
        for step in steps.split_ascii_whitespace() {
            let step = step.parse().map_err(|_| "a latency that is no number")?;
            value = value.checked_add(step).ok_or("a latency that is too long")?;
            latencies.record(Nanos(value));
        }
        Ok(latencies.spread())
    }
}

/// Latencies as reports carry them: the highest value of each bucket, in nanoseconds, and how many are in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// Ascending.
    pub buckets: Vec<(u64, u64)>,
    /// The exact sum, so that means can be added up too.
    pub sum_ns: u64,
    /// The exact largest.
    pub max_ns: u64,
}

impl Buckets {
    fn new(histogram: &Histogram<u64>, sum_ns: u64, max_ns: u64) -> Self {
        let filled = histogram.iter_recorded();
        let buckets = filled.map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        Self { buckets, sum_ns, max_ns }
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// The buckets of both runs together.
    pub fn merged(&self, other: &Self) -> Self {
        Self::union([self, other])
    }

    /// The buckets of all runs together. All runs have the same bounds, so nothing is lost.
    fn union<'b>(parts: impl IntoIterator<Item = &'b Self>) -> Self {
        let (mut histogram, mut sum_ns, mut max_ns) = (empty_histogram(), 0u64, 0);
        for part in parts {
            part.buckets.iter().for_each(|&(value, times)| count(&mut histogram, value, times));
            sum_ns = sum_ns.saturating_add(part.sum_ns);
            max_ns = max_ns.max(part.max_ns);
        }
        Self::new(&histogram, sum_ns, max_ns)
    }

    /// What a report says about them: percentiles to three digits, never above the largest value.
    pub fn spread(&self) -> Spread {
        let at = |percent| {
            let (rank, mut before) = (rank(self.count(), percent), 0);
            let found = self.buckets.iter().find(|(_, count)| {
                before = count.saturating_add(before);
                before > rank
            });
            found.map_or(0, |&(value, _)| value.min(self.max_ns))
        };
        Spread::new(self.clone(), at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn latencies(values: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        values.iter().for_each(|&value| latencies.record(Nanos(value)));
        latencies
    }

    proptest! {
        /// Broken by: another rounding of the rank, forgetting to sort, dropping values on `absorb`.
        #[test]
        fn percentiles_are_those_of_a_sorted_list(values in prop::collection::vec(0u64..1 << 40, 1..400)) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let nearest = |p: f64| ((sorted.len() - 1) as f64 * p / 100.0).round() as usize;
            let naive = |p: f64| sorted[nearest(p)] as f64 / 1e6;
            let (head, tail) = values.split_at(values.len() / 2);
            let mut found = latencies(head);
            found.absorb(&latencies(tail));
            let found = found.spread();
            let percents = [50.0, 95.0, 99.0, 99.9, 99.99];
            for ((_, ms), percent) in found.percentiles().into_iter().zip(percents) {
                prop_assert_eq!(ms, naive(percent));
            }
            prop_assert_eq!(found.max, naive(100.0));
        }

        /// Broken by: buckets written by their lowest value of a wider neighbour, a forgotten sum or maximum.
        #[test]
        fn two_reports_merge_into_the_report_of_both(
            values in prop::collection::vec(0u64..1 << 44, 1..300),
            cut in 0usize..300,
        ) {
            let (head, tail) = values.split_at(cut.min(values.len()));
            let read_back = |part: &[u64]| -> Buckets {
                let text = serde_json::to_string(&latencies(part).spread().buckets).expect("plain data");
                serde_json::from_str(&text).expect("what was just written")
            };
            let merged = read_back(head).merged(&read_back(tail));
            let whole = latencies(&values).spread();
            prop_assert_eq!(&merged, &whole.buckets);
            for ((_, found), (_, exact)) in merged.spread().percentiles().iter().zip(whole.percentiles()) {
                prop_assert!((found - exact).abs() <= exact * 1e-3 + 1e-6, "{} {}", found, exact);
            }
        }
    }

    proptest! {
        /// Broken by: the largest or the mean of the parts' percentiles, weights by parts instead of values,
        /// percentiles by buckets where every value is known, an empty part that counts as unknown.
        #[test]
        fn parts_merge_into_what_the_pooled_values_give(
            parts in prop::collection::vec(prop::collection::vec(0u64..1 << 44, 0..120), 0..5),
        ) {
            let pooled = latencies(&parts.concat()).spread();
            let spreads: Vec<Spread> = parts.iter().map(|part| latencies(part).spread()).collect();
            let merged = Spread::merged(&spreads);
            prop_assert_eq!(&merged, &pooled);
            let mut sorted = parts.concat();
            sorted.sort_unstable();
            prop_assert_eq!(merged.samples(), Some(sorted.as_slice()));
        }
    }

    /// Broken by: exact percentiles of a union that one run would not have kept, or of the parts that were.
    #[test]
    fn a_union_that_is_too_large_is_what_one_run_would_say() {
        let values: Vec<u64> = (0..=EXACT_LIMIT as u64).map(|value| value * value % 1_000_003).collect();
        let (head, tail) = values.split_at(EXACT_LIMIT / 3);
        let whole = latencies(&values).spread();
        assert_eq!(whole.samples(), None);
        assert_eq!(Spread::merged([&latencies(head).spread(), &latencies(tail).spread()]), whole);
        let more = latencies(&[7]);
        let mut pooled = latencies(&values);
        pooled.absorb(&more);
        assert_eq!(Spread::merged([&whole, &more.spread()]), pooled.spread());
        let small = latencies(&[5, 7]).spread();
        let without_values = small.buckets.spread();
        assert_eq!(without_values.samples(), None);
        assert_eq!(Spread::merged([&small, &without_values]).samples(), None);
    }

    /// Broken by: keeping values beyond the limit, or percentiles of the kept part only.
    #[test]
    fn beyond_a_million_values_percentiles_have_three_digits() {
        let mut many = Latencies::default();
        (0..=EXACT_LIMIT as u64).for_each(|value| many.record(Nanos(value * 1000)));
        assert_eq!(many.values(usize::MAX), None);
        let mut absorbed = latencies(&[0]);
        let rest: Vec<u64> = (1..=EXACT_LIMIT as u64).map(|value| value * 1000).collect();
        absorbed.absorb(&latencies(&rest));
        assert_eq!(absorbed.spread(), many.spread());
        let spread = many.spread();
        assert_eq!(spread.count(), EXACT_LIMIT as u64 + 1);
        assert!((spread.p99 - 990.0).abs() < 1.0, "{}", spread.p99);
        assert_eq!((spread.mean, spread.max), (500.0, 1000.0));
    }

    #[test]
    fn nothing_is_all_zero() {
        assert_eq!(Latencies::default().spread(), Spread::default());
        assert_eq!(Buckets::default().spread(), Spread::default());
    }
}
