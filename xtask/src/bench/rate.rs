//! What was moved, how fast and at what cost.

/// What a phase moved, how fast and at what cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    pub(super) bytes: f64,
    pub(super) seconds: f64,
    pub(super) cpu_s: f64,
}

impl Rate {
    pub(super) fn mb_per_s(&self) -> f64 {
        self.bytes / self.seconds / 1e6
    }

    pub(super) fn cpu_s_per_gib(&self) -> f64 {
        self.cpu_s / (self.bytes / (1u64 << 30) as f64)
    }
}

/// The middle value; of an even number the mean of the two in the middle.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// The standard deviation over the mean.
pub(super) fn variation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    variance.sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_middle() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
        assert!((variation(&[8.0, 12.0, 10.0, 9.0, 11.0]) - 0.158_114).abs() < 1e-6);
    }
}
