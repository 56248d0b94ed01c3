//! A run as it was seen in the last minute: rates of the last seconds, and points for curves.

use std::collections::VecDeque;
use std::time::Duration;

use wavetank::gauges::{Snapshot, WorkerCounts};

/// Between two points of a curve.
const STEP: Duration = Duration::from_millis(500);
/// Points of a curve: a minute.
const POINTS: usize = 120;
/// What rates are taken over.
const WINDOW: Duration = Duration::from_secs(2);

/// What was seen of a run.
#[derive(Debug, Default)]
pub(super) struct Course {
    now: Mark,
    /// One per step, the first as old as the window or a little older.
    marks: VecDeque<Mark>,
    points: VecDeque<Point>,
}

#[derive(Clone, Debug, Default)]
struct Mark {
    at: Duration,
    counts: Snapshot,
}

/// What happened in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Mean seconds; nothing if no request got its first token.
    pub(super) first_token: Option<f64>,
    /// Mean seconds between tokens.
    pub(super) token_gap: Option<f64>,
    pub(super) tokens_per_second: f64,
}

impl Course {
    /// Takes note of what is counted `at` a time since the start.
    pub(super) fn see(&mut self, at: Duration, counts: Snapshot) {
        self.now = Mark { at, counts };
        let Some(last) = self.marks.back() else { return self.mark() };
        if at.saturating_sub(last.at) < STEP {
            return;
        }
        self.points.push_back(Point {
            first_token: self.now.counts.first_token.mean_since(last.counts.first_token),
            token_gap: self.now.counts.token_gap.mean_since(last.counts.token_gap),
            tokens_per_second: self.now.rate_since(last, |counts| counts.total(generated)),
        });
        if self.points.len() > POINTS {
            self.points.pop_front();
        }
        self.mark();
    }

    fn mark(&mut self) {
        self.marks.push_back(self.now.clone());
        while self.marks.get(1).is_some_and(|second| self.now.at.saturating_sub(second.at) >= WINDOW) {
            self.marks.pop_front();
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.now.at
    }

    pub(super) fn counts(&self) -> &Snapshot {
        &self.now.counts
    }

    /// Points of curves, the latest last.
    pub(super) fn points(&self) -> impl DoubleEndedIterator<Item = &Point> {
        self.points.iter()
    }

    /// Tokens per second that a worker answered of late.
    pub(super) fn worker_rate(&self, worker: usize) -> f64 {
        self.rate(|counts| counts.workers.get(worker).map_or(0, generated))
    }

    /// Tokens per second that all workers answered of late.
    pub(super) fn total_rate(&self) -> f64 {
        self.rate(|counts| counts.total(generated))
    }

    fn rate(&self, count: impl Fn(&Snapshot) -> u64) -> f64 {
        self.marks.front().map_or(0.0, |first| self.now.rate_since(first, count))
    }
}

impl Mark {
    fn rate_since(&self, earlier: &Self, count: impl Fn(&Snapshot) -> u64) -> f64 {
        let seconds = self.at.saturating_sub(earlier.at).as_secs_f64();
        let more = count(&self.counts).saturating_sub(count(&earlier.counts));
        if seconds > 0.0 { more as f64 / seconds } else { 0.0 }
    }
}

fn generated(counts: &WorkerCounts) -> u64 {
    counts.generated_tokens
}

#[cfg(test)]
mod tests {
    use wavetank::gauges::Tally;

    use super::*;

    fn counts(tokens: u64) -> Snapshot {
        let worker = WorkerCounts { generated_tokens: tokens, ..WorkerCounts::default() };
        let token_gap = Tally { count: tokens, seconds: tokens as f64 * 0.01 };
        Snapshot { workers: vec![worker], token_gap, ..Snapshot::default() }
    }

    /// Broken by: rates over the whole run, curves that grow without end, means of what came before.
    #[test]
    fn it_remembers_a_minute() {
        let mut course = Course::default();
        for tenth in 0..1200u64 {
            // Ten times as many in the second half.
            let tokens = if tenth < 600 { tenth } else { 600 + (tenth - 600) * 10 };
            course.see(Duration::from_millis(tenth * 100), counts(tokens));
        }
        assert_eq!(course.points().count(), POINTS);
        assert!(course.marks.len() <= 6, "{}", course.marks.len());
        assert!((course.total_rate() - 100.0).abs() < 1e-9, "{}", course.total_rate());
        assert_eq!(course.worker_rate(0), course.total_rate());
        let last = course.points().next_back().unwrap();
        assert!((last.tokens_per_second - 100.0).abs() < 1e-9, "{last:?}");
        assert!((last.token_gap.unwrap() - 0.01).abs() < 1e-9, "{last:?}");
        assert_eq!(last.first_token, None);
    }
}
