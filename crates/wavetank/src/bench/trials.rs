//! Several runs of one plan: what they agree on, and when there have been enough.

use serde::Serialize;

/// What the trials say about one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Agreement {
    /// One value per trial, in order.
    pub(super) values: Vec<f64>,
    pub(super) median: f64,
    pub(super) mean: f64,
    /// The median of the distances from the median.
    pub(super) mad: f64,
    /// The standard deviation over the mean.
    pub(super) cv: f64,
    /// Half the 95 % confidence interval of the mean, of the mean, in percent; absent with one trial.
    pub(super) ci95_percent: Option<f64>,
    /// What to make of it.
    pub(super) verdict: &'static str,
}

/// More spread than this between trials is noise.
const NOISY_CV: f64 = 0.1;
/// Fewer trials never end early.
const FEWEST: usize = 3;
/// Student's t for 95 %, two-sided, by degrees of freedom from 1 (any table of the distribution).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Agreement {
    /// Of at least one value.
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance =
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let cv = if mean == 0.0 { 0.0 } else { variance.sqrt() / mean.abs() };
        let median = median(values);
        let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let freedom = values.len().saturating_sub(1);
        let student = freedom.checked_sub(1).map(|at| STUDENT.get(at).copied().unwrap_or(1.96));
        Self {
            median,
            mean,
            mad: self::median(&distances),
            cv,
            ci95_percent: student.map(|t| t * cv / count.sqrt() * 100.0),
            verdict: match (values.len(), cv) {
                (1, _) => "one trial: its spread is not known",
                _ if mean == 0.0 => "nothing was measured",
                (_, cv) if cv > NOISY_CV => "noise: differences below this spread mean nothing",
                _ => "steady",
            },
            values: values.to_vec(),
        }
    }

    /// Whether further trials would tell little: the interval is within `percent`, which is not zero.
    pub(super) fn is_tight(&self, percent: f64) -> bool {
        self.mean != 0.0
            && self.values.len() >= FEWEST
            && self.ci95_percent.is_some_and(|half| half <= percent && percent > 0.0)
    }

    /// The trial whose value is the median, or the lower of the two around it.
    pub(super) fn median_trial(&self) -> usize {
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_by(|&a, &b| self.values[a].total_cmp(&self.values[b]));
        order[(order.len() - 1) / 2]
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + sorted[middle]) / 2.0 } else { sorted[middle] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_trials_by_hand() {
        // Mean 10, variance (4 + 1 + 0 + 1 + 4) / 4 = 2.5, t(4) = 2.776.
        let agreement = Agreement::of(&[8.0, 12.0, 10.0, 9.0, 11.0]);
        assert_eq!((agreement.median, agreement.mean, agreement.mad), (10.0, 10.0, 1.0));
        assert!((agreement.cv - 0.158_114).abs() < 1e-6);
        let half = 2.776 * 0.158_114 / 5f64.sqrt() * 100.0;
        assert!((agreement.ci95_percent.unwrap() - half).abs() < 1e-3);
        assert!(agreement.verdict.starts_with("noise"));
        assert_eq!(agreement.median_trial(), 2);
    }

    #[test]
    fn trials_end_early_only_when_they_agree() {
        assert!(Agreement::of(&[100.0, 100.1, 99.9]).is_tight(2.0));
        assert!(!Agreement::of(&[100.0, 100.1, 99.9]).is_tight(0.0));
        assert!(!Agreement::of(&[100.0, 100.0]).is_tight(2.0));
        assert!(!Agreement::of(&[100.0, 150.0, 50.0]).is_tight(2.0));
        assert_eq!(Agreement::of(&[7.0]).ci95_percent, None);
        assert_eq!(Agreement::of(&[0.0, 0.0, 0.0]).cv, 0.0);
    }
}
