//! Values of single requests, by span.

use crate::course::Percentiles;
use crate::statistics::rank;

/// Every value, by span.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    spans: Vec<Vec<f32>>,
}

impl Values {
    pub(super) fn add(&mut self, span: usize, value: f64) {
        if span >= self.spans.len() {
            self.spans.resize(span + 1, Vec::new());
        }
        self.spans[span].push(value as f32);
    }

    /// Values of all spans.
    pub(super) fn count(&self) -> usize {
        self.spans.iter().map(Vec::len).sum()
    }

    /// Makes one span of every two.
    pub(super) fn widen(&mut self) {
        let mut spans = std::mem::take(&mut self.spans).into_iter();
        while let Some(mut first) = spans.next() {
            first.extend(spans.next().into_iter().flatten());
            self.spans.push(first);
        }
    }

    /// Of the first spans; a span without values has none.
    pub(super) fn percentiles(&mut self, spans: usize) -> Percentiles {
        self.spans.resize(spans, Vec::new());
        self.spans.iter_mut().for_each(|values| values.sort_unstable_by(f32::total_cmp));
        let at = |percent: f64| {
            let value = |values: &Vec<f32>| values.get(rank(values.len() as u64, percent) as usize).copied();
            self.spans.iter().map(|values| value(values).map_or(f64::NAN, f64::from)).collect()
        };
        Percentiles { p50: at(50.0), p90: at(90.0), p99: at(99.0) }
    }
}
