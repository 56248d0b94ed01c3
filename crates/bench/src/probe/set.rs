//! The entries that a point reads and writes: one half is read, the other written again and again, so that
//! no read waits for a write of the same entry.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::RngExt;
use wavetank_model::{Draw, Error, Result, mix, seeded};
use wavetank_store::{Existing, Key, Lane, Outcome, Payload, Put, Want};

use super::ProbePlan;

/// More small entries say nothing new, and take long to write.
const ENTRIES_MAX: u64 = 4096;

/// Entries of one size.
pub(super) struct WorkingSet {
    bytes: u64,
    /// How many are only read; as many again are written.
    half: u64,
    writes: u64,
    seed: u64,
    draw: Draw,
}

/// What an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Read,
    Written,
    /// Nothing was done: an earlier write of the entry has not ended yet.
    Skipped,
}

impl WorkingSet {
    /// As many entries of `bytes` as the plan wants, and enough for `depth` operations in flight.
    pub(super) fn of(bytes: u64, depth: u32, plan: &ProbePlan) -> Self {
        let least = u64::from(depth) + 1;
        let half = (plan.working_set_bytes / bytes / 2).min(ENTRIES_MAX / 2).max(least);
        Self { bytes, half, writes: 0, seed: plan.seed, draw: seeded(plan.seed, "probe") }
    }

    /// Writes every entry; `false` when it was stopped.
    pub(super) fn write(&mut self, lane: &mut Lane, depth: usize, stop: &AtomicBool) -> Result<bool> {
        let (mut asked, entries) = (0, 2 * self.half);
        while asked < entries || lane.pending() > 0 {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            while asked < entries && lane.pending() < depth {
                self.put(lane, asked);
                asked += 1;
            }
            if let Some(done) = lane.wait() {
                ended(done.outcome)?;
            }
        }
        Ok(true)
    }

    /// Asks for an operation; a read with probability `read_share`.
    pub(super) fn ask(&mut self, lane: &mut Lane, read_share: f64) {
        if self.draw.random::<f64>() < read_share {
            let number = self.draw.random_range(0..self.half);
            lane.get(key(number), Want::Nothing);
        } else {
            self.put(lane, self.half + self.writes % self.half);
        }
    }

    /// Every write has bytes of its own: a drive that looks for equal blocks finds none.
    fn put(&mut self, lane: &mut Lane, number: u64) {
        self.writes += 1;
        let payload = Payload::Seeded { seed: mix(self.seed, self.writes), bytes: self.bytes };
        lane.put(Put { key: key(number), payload, tenant: 0, existing: Existing::Replace });
    }
}

fn key(number: u64) -> Key {
    Key::new(number.to_le_bytes().as_slice())
}

/// What ended, or why it did not work.
pub(super) fn ended(outcome: Outcome) -> Result<Ended> {
    match outcome {
        Outcome::Hit(_) => Ok(Ended::Read),
        Outcome::Stored(_) => Ok(Ended::Written),
        Outcome::Existed => Ok(Ended::Skipped),
        Outcome::Failed(error) => {
            let failed = Error::usage(format!("an operation failed: {error}"));
            Err(match error.kind() {
                std::io::ErrorKind::StorageFull => failed.hint("give less room with --size-gb"),
                _ => failed,
            })
        }
        other => Err(Error::usage(format!("an operation ended as {other:?}"))),
    }
}
