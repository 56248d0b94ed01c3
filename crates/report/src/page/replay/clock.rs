//! Simulated time as an axis.

use crate::figure::{Axis, Series};

use super::super::Run;
use crate::pointers::{number, numbers};

/// Time in the unit that suits the longest run.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    unit: &'static str,
    ms: f64,
}

impl Clock {
    pub(super) fn of(runs: &[&Run]) -> Self {
        let longest = runs.iter().map(|run| number(&run.report, "/course/end_ms")).fold(0.0, f64::max);
        let (unit, ms) = match longest {
            ..2e3 => ("ms", 1.0),
            ..6e5 => ("s", 1e3),
            ..3.6e7 => ("min", 6e4),
            _ => ("h", 3.6e6),
        };
        Self { unit, ms }
    }

    pub(super) fn axis(self) -> Axis {
        Axis::linear("simulated time", self.unit)
    }

    /// A line through corners, which are in milliseconds.
    pub(super) fn steps(self, name: String, corners: &[(f64, f64)]) -> Series {
        Series::of(name, corners.iter().map(|&(at, value)| (at / self.ms, value)).collect())
    }

    /// A column of a run's course, at the middle of its spans.
    pub(super) fn series(self, run: &Run, name: String, values: &[f64]) -> Series {
        let (step, end) = (number(&run.report, "/course/step_ms"), number(&run.report, "/course/end_ms"));
        let middle = |span: usize| {
            let begun = span as f64 * step;
            (begun + (begun + step).min(end)) / 2.0 / self.ms
        };
        Series::of(name, values.iter().enumerate().map(|(span, &value)| (middle(span), value)).collect())
    }

    /// A column of the whole fleet's.
    pub(super) fn fleet(self, run: &Run, name: String, column: &str) -> Series {
        self.series(run, name, &numbers(&run.report, &format!("/course/fleet/{column}")))
    }
}

/// What is named after its run where there are several.
pub(super) fn named(runs: &[&Run], run: &Run, name: &str) -> String {
    match (runs.len(), name.is_empty()) {
        (1, _) => name.to_owned(),
        (_, true) => run.name.clone(),
        (_, false) => format!("{}: {name}", run.name),
    }
}

/// Runs that say how they went over time.
pub(super) fn timed<'a>(runs: &[&'a Run]) -> Vec<&'a Run> {
    runs.iter().copied().filter(|run| run.report.get("course").is_some()).collect()
}
