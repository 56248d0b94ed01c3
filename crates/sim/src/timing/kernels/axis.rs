//! Points on an axis, and where a value lies between them.

/// Rising points; at least two.
#[derive(Clone, Debug)]
pub(super) struct Axis(Vec<f64>);

impl Axis {
    pub(super) fn of(points: Vec<u32>) -> Self {
        Self(points.into_iter().map(f64::from).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn value(&self, at: usize) -> f64 {
        self.0[at]
    }

    pub(super) fn points(&self) -> &[f64] {
        &self.0
    }

    /// Whether `value` is beyond the last point.
    pub(super) fn is_beyond(&self, value: f64) -> bool {
        self.0.last().is_some_and(|&last| value > last)
    }

    /// The point below `value` and how far it is to the next one: beyond the last point the last interval
    /// goes on, below the first one nothing changes.
    pub(super) fn locate(&self, value: f64) -> (usize, f64) {
        let above = self.0.partition_point(|&point| point <= value);
        let at = above.saturating_sub(1).min(self.0.len() - 2);
        let part = (value - self.0[at]) / (self.0[at + 1] - self.0[at]);
        (at, part.max(0.0))
    }
}

pub(super) fn lerp(low: f64, high: f64, part: f64) -> f64 {
    low + (high - low) * part
}
