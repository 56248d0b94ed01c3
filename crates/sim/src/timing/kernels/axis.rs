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

    /// The point below `value` and how far it is to the next one: beyond the last point the last interval goes
    /// on, below the first one nothing changes.
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
