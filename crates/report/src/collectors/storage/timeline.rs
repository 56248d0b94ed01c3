//! The window second by second.

use wavetank_model::{Nanos, Operation, Served};

use crate::statistics::rank;
use crate::storage::Second;

const SECOND: u64 = 1_000_000_000;
/// Events of different threads may be told a little late: a second stays open this much longer.
const OPEN_SECONDS: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Timeline {
    seconds: Vec<Second>,
    /// End-to-end latencies of the last seconds, the newest last.
    open: Vec<Vec<u64>>,
}

impl Timeline {
    pub(super) fn moved(&mut self, at: Nanos, operation: Operation, bytes: u64) {
        let index = self.reach(at);
        match operation {
            Operation::Read => self.seconds[index].storage_read_bytes += bytes,
            Operation::Write => self.seconds[index].storage_written_bytes += bytes,
        }
    }

    pub(super) fn served(&mut self, at: Nanos, served: &Served) {
        let index = self.reach(at);
        self.seconds[index].requests += 1;
        self.seconds[index].tokens += u64::from(served.generated_tokens);
        let sealed = self.seconds.len() - self.open.len();
        if let Some(latencies) = index.checked_sub(sealed).map(|open| &mut self.open[open]) {
            latencies.push(served.total.0);
        }
    }

    /// The second of `at`, which is there from now on.
    fn reach(&mut self, at: Nanos) -> usize {
        let index = (at.0 / SECOND) as usize;
        while self.seconds.len() <= index {
            if self.open.len() == OPEN_SECONDS {
                let oldest = self.seconds.len() - OPEN_SECONDS;
                self.seconds[oldest].end_to_end_p95 = p95(&self.open.remove(0));
            }
            self.seconds.push(Second::default());
            self.open.push(Vec::new());
        }
        index
    }

    /// Every second of a window, the last one not whole.
    pub(super) fn seconds(&self, elapsed: Nanos) -> Vec<Second> {
        let mut seconds = self.seconds.clone();
        let sealed = seconds.len() - self.open.len();
        for (second, latencies) in seconds[sealed..].iter_mut().zip(&self.open) {
            second.end_to_end_p95 = p95(latencies);
        }
        seconds.resize(seconds.len().max(elapsed.0.div_ceil(SECOND) as usize), Second::default());
        seconds
    }
}

fn p95(latencies: &[u64]) -> Nanos {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    Nanos(sorted.get(rank(sorted.len() as u64, 95.0) as usize).copied().unwrap_or(0))
}
