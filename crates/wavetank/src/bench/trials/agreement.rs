//! What several runs of one plan agree on, and when there have been enough.

use serde::Serialize;
use wavetank_report::median;

use super::FEWEST;

/// What the trials say about one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in super::super) struct Agreement {
    /// One value per trial, in order.
    pub(in super::super) values: Vec<f64>,
    pub(in super::super) median: f64,
    pub(in super::super) mean: f64,
    /// The median of the distances from the median; absent with one trial, or where nothing was measured.
    pub(in super::super) mad: Option<f64>,
    /// The standard deviation over the mean; absent as well.
    pub(in super::super) cv: Option<f64>,
    /// Nearest-rank percentiles of the trials' values; of few trials these are the largest.
    pub(in super::super) p95: f64,
    pub(in super::super) p99: f64,
    /// Half the 95 % confidence interval of the mean, of the mean, in percent; absent where `cv` is.
    pub(in super::super) ci95_percent: Option<f64>,
    /// How much the last trial differs from the first along the fitted line, as a part of the mean, where
    /// that is more than chance.
    pub(in super::super) trend: Option<f64>,
    /// What to make of it.
    pub(in super::super) verdict: &'static str,
}

/// More spread than this between trials is noise.
const NOISY_CV: f64 = 0.1;
/// Less of a trend is not worth a word, however sure.
const NOTABLE_TREND: f64 = 0.05;
/// Student's t for 95 %, two-sided, by degrees of freedom from 1 (any table of the distribution).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Agreement {
    /// Of at least one value.
    pub(in super::super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance =
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let has_spread = values.len() > 1 && mean != 0.0;
        let cv = has_spread.then(|| variance.sqrt() / mean.abs());
        let median = median(values).unwrap_or_default();
        let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let trend = trend(values, mean);
        Self {
            median,
            mean,
            mad: self::median(&distances).filter(|_| has_spread),
            cv,
            p95: percentile(values, 95.0),
            p99: percentile(values, 99.0),
            ci95_percent: cv.zip(student(values.len() - 1)).map(|(cv, t)| t * cv / count.sqrt() * 100.0),
            trend,
            verdict: match values.len() as u32 {
                ..FEWEST => "too few trials to tell",
                _ if mean == 0.0 => "nothing was measured",
                _ if trend.is_some() => "drift: the trials rise or fall along a line",
                _ if cv.is_some_and(|cv| cv > NOISY_CV) => {
                    "noise: differences below this spread mean nothing"
                }
                _ => "steady",
            },
            values: values.to_vec(),
        }
    }

    /// Whether further trials would tell little: the interval is within `percent`.
    pub(in super::super) fn is_tight(&self, percent: f64) -> bool {
        self.mean != 0.0
            && self.values.len() >= FEWEST as usize
            && self.ci95_percent.is_some_and(|half| half <= percent)
    }

    /// The trial whose value is the median, or the lower of the two around it.
    pub(in super::super) fn median_trial(&self) -> usize {
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_by(|&a, &b| self.values[a].total_cmp(&self.values[b]));
        order[(order.len() - 1) / 2]
    }

    /// What the trend of a metric of speed means, if there is one.
    pub(in super::super) fn drift(&self, metric: &str) -> Option<String> {
        let change = self.trend?;
        let (fell, why) = match change < 0.0 {
            true => ("fell", "thermal throttling, a filling drive or its write cache; give --cooldown or"),
            false => ("rose", "the first trials still warmed up; give a longer --warmup or"),
        };
        let percent = change.abs() * 100.0;
        Some(format!(
            "trials drift: {metric} {fell} by {percent:.0} % from the first to the last: {why} --precondition"
        ))
    }
}

/// Student's t for so many degrees of freedom; absent for none.
fn student(freedom: usize) -> Option<f64> {
    freedom.checked_sub(1).map(|at| STUDENT.get(at).copied().unwrap_or(1.96))
}

/// The slope of the fitted line over all trials as a part of their mean, if zero is outside of its 95 %
/// confidence interval.
fn trend(values: &[f64], mean: f64) -> Option<f64> {
    let t = student(values.len().checked_sub(2)?)?;
    let middle = (values.len() - 1) as f64 / 2.0;
    let offsets = || (0..values.len()).map(|at| at as f64 - middle);
    let spread: f64 = offsets().map(|x| x * x).sum();
    let slope = offsets().zip(values).map(|(x, value)| x * (value - mean)).sum::<f64>() / spread;
    let residual = offsets().zip(values).map(|(x, value)| (value - mean - slope * x).powi(2)).sum::<f64>();
    let error = (residual / (values.len() - 2) as f64 / spread).sqrt();
    let change = slope * (values.len() - 1) as f64 / mean;
    (mean != 0.0 && slope.abs() > t * error && change.abs() > NOTABLE_TREND).then_some(change)
}

/// By nearest rank, as everywhere in reports.
fn percentile(values: &[f64], percent: f64) -> f64 {
    sorted(values)[((values.len() - 1) as f64 * percent / 100.0).round() as usize]
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_trials_by_hand() {
        // Mean 10, variance (4 + 1 + 0 + 1 + 4) / 4 = 2.5, t(4) = 2.776.
        let agreement = Agreement::of(&[8.0, 12.0, 10.0, 9.0, 11.0]);
        assert_eq!((agreement.median, agreement.mean, agreement.mad), (10.0, 10.0, Some(1.0)));
        assert!((agreement.cv.unwrap() - 0.158_114).abs() < 1e-6);
        let half = 2.776 * 0.158_114 / 5f64.sqrt() * 100.0;
        assert!((agreement.ci95_percent.unwrap() - half).abs() < 1e-3);
        assert!(agreement.verdict.starts_with("noise"));
        assert_eq!(agreement.median_trial(), 2);
        assert_eq!((agreement.p95, agreement.p99, agreement.trend), (12.0, 12.0, None));
    }

    #[test]
    fn trials_end_early_only_when_they_agree() {
        assert!(Agreement::of(&[100.0, 100.1, 99.9]).is_tight(2.0));
        assert!(!Agreement::of(&[100.0, 100.1, 99.9]).is_tight(0.1));
        assert!(!Agreement::of(&[100.0, 100.0]).is_tight(2.0));
        assert!(!Agreement::of(&[100.0, 150.0, 50.0]).is_tight(2.0));
    }

    /// Broken by: a spread of 0 where none is known, or a verdict on fewer trials than tell anything.
    #[test]
    fn what_is_not_known_is_absent() {
        let spreads = |values: &[f64]| {
            let Agreement { mad, cv, ci95_percent, verdict, .. } = Agreement::of(values);
            (mad.is_some(), cv.is_some(), ci95_percent.is_some(), verdict)
        };
        let few = "too few trials to tell";
        assert_eq!(spreads(&[7.0]), (false, false, false, few));
        assert_eq!(spreads(&[7.0, 7.0]), (true, true, true, few));
        assert_eq!(spreads(&[1.0, 9.0]), (true, true, true, few));
        assert_eq!(spreads(&[7.0, 7.0, 7.0]), (true, true, true, "steady"));
        assert_eq!(spreads(&[0.0; 3]), (false, false, false, "nothing was measured"));
    }

    /// Broken by: calling noise a trend, or a trend noise.
    #[test]
    fn a_drive_that_slows_down_is_told_from_noise() {
        let slower = Agreement::of(&[100.0, 95.5, 89.0, 86.0, 79.5]);
        // The fitted slope is -5.05 a trial, over four steps of a mean of 90.
        assert!((slower.trend.unwrap() + 5.05 * 4.0 / 90.0).abs() < 1e-9);
        assert_eq!(slower.verdict, "drift: the trials rise or fall along a line");
        // The third is above the second: the line falls, not each step.
        let uneven = Agreement::of(&[100.0, 90.0, 91.0, 80.0, 75.0, 70.0]);
        assert!(uneven.trend.is_some_and(|change| change < 0.0), "{uneven:?}");
        assert!(slower.drift("tokens/s").unwrap().contains("tokens/s fell by 22 %"));
        let faster = Agreement::of(&[80.0, 90.0, 100.0, 110.0]);
        assert!(faster.drift("tokens/s").unwrap().contains("rose by 32 %"));
        for noise in [&[100.0, 80.0, 95.0, 85.0, 90.0][..], &[100.0, 99.9, 99.8], &[1.0, 2.0], &[0.0; 4]] {
            assert_eq!(Agreement::of(noise).trend, None, "{noise:?}");
        }
    }
}
