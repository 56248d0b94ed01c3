//! What a case came to: the repetitions boiled down, and the counts of its report.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::cases::Case;
use super::measure::Sample;

/// One program on one case. CPU is the least of the repetitions, memory the most, wall time the median.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) who: &'static str,
    pub(super) case: &'static str,
    pub(super) against: Option<&'static str>,
    pub(super) command: String,
    pub(super) reps: usize,
    pub(super) cost: Sample,
    pub(super) completed: Option<u64>,
    pub(super) passes: Option<Value>,
}

impl Outcome {
    /// Fails when there is nothing to boil down.
    pub(super) fn of(
        who: &'static str,
        case: &Case,
        command: String,
        samples: &[Sample],
    ) -> Result<Self, String> {
        let cost = boiled_down(samples).ok_or_else(|| format!("{}: no repetitions", case.name))?;
        let (reps, against) = (samples.len(), case.against);
        Ok(Self { who, case: case.name, against, command, reps, cost, completed: None, passes: None })
    }

    /// Adds the counts of the report the last repetition wrote.
    pub(super) fn with_report(mut self, path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let report: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        self.completed = report["completed_requests"].as_u64();
        self.passes = report.pointer("/counts/passes").cloned();
        Ok(self)
    }

    #[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^52")]
    pub(super) fn requests_per_s(&self) -> Option<f64> {
        self.completed.map(|completed| completed as f64 / self.cost.wall_s)
    }
}

fn boiled_down(samples: &[Sample]) -> Option<Sample> {
    let mut walls: Vec<f64> = samples.iter().map(|sample| sample.wall_s).collect();
    walls.sort_by(f64::total_cmp);
    let middle = walls.len() / 2;
    let wall_s = match walls.len() {
        0 => return None,
        odd if odd % 2 == 1 => walls[middle],
        _ => f64::midpoint(walls[middle - 1], walls[middle]),
    };
    let cpu_s = samples.iter().map(|sample| sample.cpu_s).min_by(f64::total_cmp)?;
    let max_rss_bytes = samples.iter().map(|sample| sample.max_rss_bytes).max()?;
    Some(Sample { cpu_s, wall_s, max_rss_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu_s: f64, wall_s: f64, max_rss_bytes: u64) -> Sample {
        Sample { cpu_s, wall_s, max_rss_bytes }
    }

    #[test]
    fn the_least_cpu_the_middle_wall_and_the_most_memory_count() {
        let three = [sample(3.0, 9.0, 10), sample(1.0, 5.0, 30), sample(2.0, 6.0, 20)];
        assert_eq!(boiled_down(&three), Some(sample(1.0, 6.0, 30)));
        assert_eq!(boiled_down(&three[..2]), Some(sample(1.0, 7.0, 30)));
        assert_eq!(boiled_down(&[]), None);
    }

    #[test]
    fn counts_come_from_the_report() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), r#"{"completed_requests": 12, "counts": {"passes": {"run": 7}}}"#).unwrap();
        let case = Case { name: "a", args: Vec::new(), against: None, peer_reps: 0 };
        let outcome = Outcome::of("wavetank", &case, String::new(), &[sample(1.0, 4.0, 1)]).unwrap();
        let outcome = outcome.with_report(file.path()).unwrap();
        assert_eq!((outcome.completed, outcome.requests_per_s()), (Some(12), Some(3.0)));
        assert_eq!(outcome.passes.unwrap()["run"], 7);
    }
}
