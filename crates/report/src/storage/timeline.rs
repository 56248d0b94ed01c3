//! The timelines of several runs as one, on the clock that all of them have.

use wavetank_model::Nanos;

use super::{Clock, Second, StorageSummary, Window};

/// A day of seconds; a longer window has as many rows at most, each of several seconds.
pub(crate) const MOST_ROWS: u64 = 86_400;

/// The rows of `window`, and how long one is. A row of a run that lies in two of them is divided in the
/// proportion of its time in each; nothing is lost.
pub(super) fn aligned(parts: &[StorageSummary], window: &Window, clock: Clock) -> (Vec<Second>, Nanos) {
    let mut step = parts.iter().map(|run| run.timeline_step.0).max().unwrap_or(0).max(1);
    while window.elapsed.0 / step >= MOST_ROWS {
        step = step.saturating_mul(2);
    }
    let mut rows = vec![Second::default(); window.elapsed.0.div_ceil(step) as usize];
    for run in parts.iter().filter(|run| run.window.elapsed > Nanos::ZERO) {
        let began = match clock {
            Clock::Wall => run.window.began.since(window.began),
            Clock::Virtual | Clock::VirtualLogged | Clock::Simulated => Nanos::ZERO,
        };
        let end = began.0.saturating_add(run.window.elapsed.0);
        for (number, row) in (0u64..).zip(&run.timeline) {
            let begin = began.0.saturating_add(number.saturating_mul(run.timeline_step.0)).min(end - 1);
            let end = begin.saturating_add(run.timeline_step.0).clamp(begin + 1, end);
            spread_out(row, begin..end, step, &mut rows);
        }
    }
    (rows, Nanos(step))
}

/// Adds `row`, which is of this time, to the rows that it lies in.
fn spread_out(row: &Second, time: std::ops::Range<u64>, step: u64, rows: &mut [Second]) {
    let last = (time.end - 1) / step;
    let mut left = *row;
    for index in time.start / step..=last.min(rows.len() as u64) {
        let here = if index == last {
            left
        } else {
            let boundary = (index + 1).saturating_mul(step);
            left.share(boundary - time.start.max(index * step), time.end - time.start.max(index * step))
        };
        left = left.without(&here);
        // A file may say that a run ended after the end of time.
        if let Some(row) = rows.get_mut(index as usize) {
            *row = row.merged(&here);
        }
    }
}

impl Second {
    /// So many parts of so many, rounded down.
    fn share(&self, part: u64, whole: u64) -> Self {
        let of = |amount: u64| (u128::from(amount) * u128::from(part) / u128::from(whole)) as u64;
        let requests = of(self.requests);
        Self {
            storage_operations: of(self.storage_operations),
            storage_read_bytes: of(self.storage_read_bytes),
            storage_written_bytes: of(self.storage_written_bytes),
            tokens: of(self.tokens),
            requests,
            end_to_end_p95: if requests > 0 { self.end_to_end_p95 } else { Nanos::ZERO },
        }
    }

    /// What is left of it.
    fn without(&self, part: &Self) -> Self {
        let requests = self.requests - part.requests;
        Self {
            storage_operations: self.storage_operations - part.storage_operations,
            storage_read_bytes: self.storage_read_bytes - part.storage_read_bytes,
            storage_written_bytes: self.storage_written_bytes - part.storage_written_bytes,
            tokens: self.tokens - part.tokens,
            requests,
            end_to_end_p95: if requests > 0 { self.end_to_end_p95 } else { Nanos::ZERO },
        }
    }
}
