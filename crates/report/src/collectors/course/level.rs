//! A number that changes over time, and what it is on average in each span.

use super::Spot;

/// Changes of a number, by span: their sum, and how late in the span they were.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    spans: Vec<Change>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Change {
    sum: f64,
    /// Each change times the nanoseconds from the beginning of the span to it.
    moment: f64,
}

impl Level {
    /// It changes by so much.
    pub(super) fn change(&mut self, at: Spot, by: f64) {
        let change = self.span(at.span);
        change.sum += by;
        change.moment += by * at.after as f64;
    }

    /// So much happens at once; for numbers that are only counted.
    pub(super) fn count(&mut self, at: Spot, amount: f64) {
        self.span(at.span).sum += amount;
    }

    /// So much happens evenly between two times; what the integral of the spans between gets.
    pub(super) fn spread(&mut self, (from, to, step): (Spot, Spot, u64), amount: f64) {
        let length = (to.span as u64 * step + to.after) - (from.span as u64 * step + from.after);
        if length == 0 {
            self.span(from.span).moment -= amount;
            return;
        }
        let rate = amount / length as f64;
        self.change(from, rate);
        self.change(to, -rate);
    }

    /// The sum of both from now on.
    pub(super) fn add(&mut self, other: &Self) {
        for (number, change) in other.spans.iter().enumerate() {
            let sum = self.span(number);
            sum.sum += change.sum;
            sum.moment += change.moment;
        }
    }

    /// What was counted in each of the first spans.
    pub(super) fn counts(&self, spans: usize) -> Vec<f64> {
        self.padded(spans).map(|change| change.sum).collect()
    }

    /// The number times nanoseconds, over each of the first spans of length `step`.
    pub(super) fn integrals(&self, spans: usize, step: u64) -> Vec<f64> {
        let (mut level, step) = (0.0_f64, step as f64);
        let integral = |change: Change| {
            let area = level * step + change.sum * step - change.moment;
            level += change.sum;
            // Rates are added and taken back again: what is left of rounding is nothing.
            if area.abs() < 1e-6 { 0.0 } else { area.max(0.0) }
        };
        self.padded(spans).map(integral).collect()
    }

    /// Makes one span of every two of length `step`.
    pub(super) fn widen(&mut self, step: u64) {
        let merged = |pair: &[Change]| {
            let later = pair.get(1).copied().unwrap_or_default();
            let moment = pair[0].moment + later.moment + later.sum * step as f64;
            Change { sum: pair[0].sum + later.sum, moment }
        };
        self.spans = self.spans.chunks(2).map(merged).collect();
    }

    fn padded(&self, spans: usize) -> impl Iterator<Item = Change> + '_ {
        self.spans.iter().copied().chain(std::iter::repeat(Change::default())).take(spans)
    }

    fn span(&mut self, number: usize) -> &mut Change {
        if number >= self.spans.len() {
            self.spans.resize(number + 1, Change::default());
        }
        &mut self.spans[number]
    }
}
