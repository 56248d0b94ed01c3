//! The window second by second; one that is longer than a day in wider steps.

use wavetank_model::{Nanos, Operation, Served};

use crate::statistics::rank;
use crate::storage::Second;
use crate::storage::timeline::MOST_ROWS;

const SECOND: u64 = 1_000_000_000;
/// Events of different threads may be told a little late: a row stays open this much longer.
const OPEN_ROWS: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Timeline {
    /// How long a row is, in nanoseconds.
    step: u64,
    rows: Vec<Second>,
    /// End-to-end latencies of the last rows, the newest last.
    open: Vec<Vec<u64>>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { step: SECOND, rows: Vec::new(), open: Vec::new() }
    }
}

impl Timeline {
    pub(super) fn moved(&mut self, at: Nanos, operation: Operation, bytes: u64) {
        let index = self.reach(at);
        let row = &mut self.rows[index];
        row.storage_operations += 1;
        match operation {
            Operation::Read => row.storage_read_bytes += bytes,
            Operation::Write => row.storage_written_bytes += bytes,
        }
    }

    pub(super) fn served(&mut self, at: Nanos, served: &Served) {
        let index = self.reach(at);
        self.rows[index].requests += 1;
        self.rows[index].tokens += u64::from(served.generated_tokens);
        let sealed = self.rows.len() - self.open.len();
        if let Some(latencies) = index.checked_sub(sealed).map(|open| &mut self.open[open]) {
            latencies.push(served.total.0);
        }
    }

    /// The row of `at`, which is there from now on.
    fn reach(&mut self, at: Nanos) -> usize {
        while at.0 / self.step >= MOST_ROWS {
            self.widen();
        }
        let index = (at.0 / self.step) as usize;
        while self.rows.len() <= index {
            if self.open.len() == OPEN_ROWS {
                let oldest = self.rows.len() - OPEN_ROWS;
                let latencies = self.open.remove(0);
                seal(&mut self.rows[oldest], &latencies);
            }
            self.rows.push(Second::default());
            self.open.push(Vec::new());
        }
        index
    }

    /// Makes one row of every two.
    fn widen(&mut self) {
        let sealed = self.rows.len() - self.open.len();
        let merge = |pair: &[Second]| pair.iter().fold(Second::default(), |sum, row| sum.merged(row));
        self.step *= 2;
        self.rows = self.rows.chunks(2).map(merge).collect();
        let mut open = vec![Vec::new(); self.rows.len() - sealed / 2];
        for (number, latencies) in (sealed..).zip(self.open.drain(..)) {
            open[number / 2 - sealed / 2].extend(latencies);
        }
        self.open = open;
    }

    /// Every row of a window, the last one not whole, and how long a row is.
    pub(super) fn rows(&self, elapsed: Nanos) -> (Vec<Second>, Nanos) {
        let mut whole = self.clone();
        if elapsed > Nanos::ZERO {
            whole.reach(Nanos(elapsed.0 - 1));
        }
        let sealed = whole.rows.len() - whole.open.len();
        for (row, latencies) in whole.rows[sealed..].iter_mut().zip(&whole.open) {
            seal(row, latencies);
        }
        (whole.rows, Nanos(whole.step))
    }
}

/// Part of the row may have been sealed before.
fn seal(row: &mut Second, latencies: &[u64]) {
    row.end_to_end_p95 = row.end_to_end_p95.max(p95(latencies));
}

fn p95(latencies: &[u64]) -> Nanos {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    Nanos(sorted.get(rank(sorted.len() as u64, 95.0) as usize).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use wavetank_model::Class;

    use super::*;

    fn served(total: u64) -> Served {
        Served {
            class: Class::Batch,
            waited: Nanos::ZERO,
            storage: Nanos::ZERO,
            prefill: None,
            decode: None,
            generation: Nanos::ZERO,
            total: Nanos(total),
            context_tokens: 0,
            generated_tokens: 0,
        }
    }

    /// Broken by: latencies of the last rows that end up in another row when rows are put together.
    #[test]
    fn latencies_stay_in_their_row() {
        for last in MOST_ROWS - 2..MOST_ROWS {
            let mut timeline = Timeline::default();
            timeline.served(Nanos((last - 1) * SECOND), &served(11));
            timeline.served(Nanos(last * SECOND), &served(13));
            let (rows, step) = timeline.rows(Nanos((MOST_ROWS + 1) * SECOND));
            assert_eq!(step, Nanos(2 * SECOND));
            let found = |second: u64| rows[(second / 2) as usize].end_to_end_p95;
            let apart = last % 2 == 0;
            assert_eq!((found(last - 1), found(last)), (Nanos(if apart { 11 } else { 13 }), Nanos(13)));
        }
    }
}
