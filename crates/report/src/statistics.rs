//! Distributions: exact ones of values per request, bucketed ones of values per token.

use wavetank_model::Nanos;

use crate::Histogram;

/// The nearest rank of a percentile among `count` sorted values, from zero; zero when there is none.
pub(crate) fn rank(count: u64, percent: f64) -> u64 {
    (count.saturating_sub(1) as f64 * percent / 100.0).round() as u64
}

/// `part / whole`; zero without a whole.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The value in the middle, or half way between the two there; none where there is no value.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(lower.midpoint(upper))
}

/// All of them, or the largest number there is: counts are also read from files, which may say anything.
pub(crate) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// What a report says about a distribution; all zero when there is nothing in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// 50th percentile.
    pub median: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Population standard deviation.
    pub std: f64,
}

impl Distribution {
    /// The same distribution in another unit.
    fn map(self, unit: impl Fn(f64) -> f64) -> Self {
        let Self { count, mean, min, max, median, p75, p90, p95, p99, std } = self;
        let [mean, min, max, median, p75] = [mean, min, max, median, p75].map(&unit);
        let [p90, p95, p99, std] = [p90, p95, p99, std].map(&unit);
        Self { count, mean, min, max, median, p75, p90, p95, p99, std }
    }

    fn of(count: u64, moments: &Moments, at_rank: impl Fn(u64) -> f64) -> Self {
        if count == 0 {
            return Self::default();
        }
        let percentile = |p: f64| at_rank(rank(count, p));
        let (mean, std) = moments.mean_and_deviation();
        Self {
            count,
            mean,
            min: moments.min,
            max: moments.max,
            median: percentile(50.0),
            p75: percentile(75.0),
            p90: percentile(90.0),
            p95: percentile(95.0),
            p99: percentile(99.0),
            std,
        }
    }
}

/// Count, extremes, mean and deviation of a weighted stream; sums are taken about the first value, so that a
/// narrow distribution far from zero keeps its digits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: u64,
    origin: f64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    /// Adds `weight` occurrences of `value`.
    pub fn record(&mut self, value: f64, weight: u64) {
        self.record_all([value], weight);
    }

    /// Adds `weight` occurrences of each of `values`.
    pub(crate) fn record_all(&mut self, values: impl IntoIterator<Item = f64>, weight: u64) {
        let mut values = values.into_iter().peekable();
        let Some(&first) = values.peek() else { return };
        if self.count == 0 {
            (self.origin, self.min, self.max) = (first, first, first);
        }
        let Self { origin, mut min, mut max, .. } = *self;
        let (mut count, mut sum, mut squares) = (0, 0.0, 0.0);
        for value in values {
            let offset = value - origin;
            count += 1;
            sum += offset;
            squares += offset * offset;
            min = if value < min { value } else { min };
            max = if value > max { value } else { max };
        }
        (self.min, self.max) = (min, max);
        self.count += count * weight;
        self.sum += sum * weight as f64;
        self.squares += squares * weight as f64;
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean and population standard deviation; zero without values.
    pub fn mean_and_deviation(&self) -> (f64, f64) {
        if self.count == 0 {
            return (0.0, 0.0);
        }
        let count = self.count as f64;
        let offset = self.sum / count;
        let variance = self.squares / count - offset * offset;
        (self.origin + offset, variance.max(0.0).sqrt())
    }
}

/// Values of which every one is kept: percentiles are exact, by nearest rank.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a value.
    pub fn record(&mut self, value: f64) {
        self.0.push(value);
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts them in order, for curves.
    pub fn sort(&mut self) {
        self.0.sort_unstable_by(f64::total_cmp);
    }

    /// The value at each percentile, of values in order.
    pub fn curve(&self, percentiles: &[f64]) -> Vec<f64> {
        let at = |percent: &f64| self.0.get(rank(self.0.len() as u64, *percent) as usize).copied();
        percentiles.iter().filter_map(at).collect()
    }

    /// Sorts and describes them; the order in which they came does not matter.
    pub fn distribution(mut self) -> Distribution {
        self.sort();
        let mut moments = Moments::default();
        for &value in &self.0 {
            moments.record(value, 1);
        }
        Distribution::of(self.0.len() as u64, &moments, |rank| self.0[rank as usize])
    }
}

/// Spans of time of which only buckets are kept: mean and extremes are exact, percentiles within 0.025 %.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    histogram: Histogram,
    nanos: Moments,
}

impl Spans {
    /// Adds one span.
    pub fn record(&mut self, span: Nanos) {
        self.record_all(&[span], 1);
    }

    /// Adds so many spans of one length, to the last bit as if they came one by one.
    pub(crate) fn record_each(&mut self, span: Nanos, count: u32) {
        self.histogram.record_all(std::iter::once(span.0), count.into());
        (0..count).for_each(|_| self.nanos.record(span.0 as f64, 1));
    }

    /// Adds `weight` times each of `spans`.
    pub(crate) fn record_all(&mut self, spans: &[Nanos], weight: u64) {
        self.histogram.record_all(spans.iter().map(|span| span.0), weight);
        self.nanos.record_all(spans.iter().map(|span| span.0 as f64), weight);
    }

    /// Milliseconds at each percentile; these ascend.
    pub(crate) fn curve_ms(&self, percentiles: &[f64]) -> Vec<f64> {
        let Moments { min, max, .. } = self.nanos;
        let ranks = percentiles.iter().map(|percent| rank(self.histogram.total(), *percent));
        self.histogram.at_ranks(ranks).into_iter().map(|nanos| nanos.clamp(min, max) / 1e6).collect()
    }

    /// In milliseconds.
    pub(crate) fn distribution_ms(&self) -> Distribution {
        let Moments { min, max, .. } = self.nanos;
        let at_rank = |rank| self.histogram.at_rank(rank).clamp(min, max);
        Distribution::of(self.histogram.total(), &self.nanos, at_rank).map(|ns| ns / 1e6)
    }
}

/// Gaps between consecutive tokens, and what they mean as tokens per second for the one who reads them.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    spans: Spans,
    rates: Moments,
}

impl Gaps {
    /// Adds `weight` gaps of `span`.
    pub fn record(&mut self, span: Nanos, weight: u64) {
        self.record_all(&[span], weight);
    }

    /// Adds `weight` gaps of each of `spans`. A zero gap has no rate.
    pub(crate) fn record_all(&mut self, spans: &[Nanos], weight: u64) {
        self.spans.record_all(spans, weight);
        let moving = spans.iter().filter(|&&span| span > Nanos::ZERO);
        self.rates.record_all(moving.map(|span| 1e9 / span.0 as f64), weight);
    }

    /// Milliseconds between tokens.
    pub(crate) fn spans_ms(&self) -> Distribution {
        self.spans.distribution_ms()
    }

    /// Milliseconds between tokens at each percentile; these ascend.
    pub(crate) fn curve_ms(&self, percentiles: &[f64]) -> Vec<f64> {
        self.spans.curve_ms(percentiles)
    }

    /// Tokens per second, over the gaps that are not zero: the longest gap is the lowest rate.
    pub fn rates(&self) -> Distribution {
        let Moments { min, max, .. } = self.rates;
        let histogram = &self.spans.histogram;
        let last = histogram.total().saturating_sub(1);
        let at_rank = |rank| (1e9 / histogram.at_rank(last - rank)).clamp(min, max);
        Distribution::of(histogram.total() - histogram.zeros(), &self.rates, at_rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 5e-4 * b.abs(), "{a} {b}");
    }

    /// Broken by: the upper of two in the middle, or values that have to come in their order.
    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!((median(&[]), median(&[7.0])), (None, Some(7.0)));
        assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(median(&[9.0, 1.0, 4.0, 2.0]), Some(3.0));
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut samples = Samples::default();
        for value in [4.0, 1.0, 3.0, 2.0] {
            samples.record(value);
        }
        let found = samples.distribution();
        // (n - 1) p: 1.5 rounds away from zero, 2.25 down, 2.7 up.
        assert_eq!((found.median, found.p75, found.p90, found.p99), (3.0, 3.0, 4.0, 4.0));
        assert_eq!((found.mean, found.min, found.max), (2.5, 1.0, 4.0));
        close(found.std, 1.25f64.sqrt());
        assert_eq!(Samples::default().distribution(), Distribution::default());
    }

    #[test]
    fn gaps_give_spans_and_rates() {
        let mut gaps = Gaps::default();
        for (ms, weight) in [(2.0, 1), (3.0, 1), (0.0, 2)] {
            gaps.record(Nanos::from_ms(ms), weight);
        }
        let (spans, rates) = (gaps.spans_ms(), gaps.rates());
        close(spans.mean, 1.25);
        assert_eq!((spans.min, spans.max), (0.0, 3.0));
        close(spans.median, 2.0);
        close(rates.mean, (500.0 + 1000.0 / 3.0) / 2.0);
        close(rates.median, 500.0);
        close(rates.min, 333.333_333);
    }

    #[test]
    fn a_narrow_distribution_keeps_its_deviation() {
        let mut moments = Moments::default();
        for i in 0..1000 {
            moments.record(1e9 + f64::from(i % 2), 1000);
        }
        let (mean, deviation) = moments.mean_and_deviation();
        assert_eq!((mean, deviation), (1e9 + 0.5, 0.5));
    }
}
