//! The entries that points of one size read and write: one half is read, the other written again and again,
//! so that no read waits for a write of the same entry. Others are written once, beside reads.

use std::ops::Range;

use rand::RngExt;
use wavetank_model::{Draw, Error, Operation, Result, mix, seeded};
use wavetank_store::{Existing, Key, Lane, Outcome, Payload, Put, Want};

use super::ProbePlan;

/// Entries of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkingSet {
    bytes: u64,
    /// How many are only read; as many again are written.
    half: u64,
    seed: u64,
    order: Order,
}

/// Which entries come next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Any of those that are read, and those that are written one after another.
    Random,
    /// Some, again and again, and then others.
    InTurn(Turns),
}

/// Some entries one after another: they are read or written, read again as often as it says, and read once
/// more, which is what counts. Then it is the turn of others, where nothing was for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    pub(super) after: Operation,
    /// [`MOST_REPEATS`] stands for more: the same are read for ever.
    pub(super) repeats: u32,
    pub(super) entries: u64,
}

/// What was read again as often is as near as it can be.
pub(super) const MOST_REPEATS: u32 = 2;

impl Turns {
    /// Which entry of `half` comes when so many were asked for, and which round of its turn that is.
    fn at(self, asked: u64, half: u64) -> (u64, u64) {
        let rounds = if self.repeats == MOST_REPEATS { u64::MAX } else { u64::from(self.repeats) + 2 };
        let (round, entry) = (asked / self.entries, asked % self.entries);
        ((round / rounds * self.entries + entry) % half, round % rounds)
    }

    /// Whether that round counts.
    fn counts(self, round: u64) -> bool {
        round > u64::from(self.repeats)
    }
}

/// What one of the threads asks for: any entry to read, some of the others to write.
pub(super) struct Part {
    set: WorkingSet,
    read_share: f64,
    /// The entries to write that are this thread's: this one, and every so many after it.
    first: u64,
    stride: u64,
    written: u64,
    asked: u64,
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
    /// As many entries of `bytes` as the plan wants, and enough for what is in flight.
    pub(super) fn of(bytes: u64, plan: &ProbePlan) -> Self {
        Self { bytes, half: plan.half(bytes), seed: plan.seed, order: Order::Random }
    }

    /// Some of them alone, in turn.
    pub(super) fn in_turn(self, turns: Turns) -> Self {
        Self { order: Order::InTurn(turns), ..self }
    }

    /// What the thread with this number, of so many, asks for the `turn`th time that this set is used: reads
    /// with probability `read_share`.
    pub(super) fn part(self, read_share: f64, (thread, threads): (u32, u32), turn: u64) -> Part {
        let draw = seeded(mix(mix(self.seed, turn), u64::from(thread)), "probe");
        let (first, stride) = (u64::from(thread), u64::from(threads));
        Part { set: self, read_share, first, stride, written: 0, asked: 0, draw }
    }

    fn put(self, lane: &mut Lane, number: u64, seed: u64) {
        let payload = Payload::Seeded { seed, bytes: self.bytes };
        lane.put(Put { key: self.key(number), payload, tenant: 0, existing: Existing::Replace });
    }

    fn key(self, number: u64) -> Key {
        let mut name = [0; 16];
        name[..8].copy_from_slice(&self.bytes.to_le_bytes());
        name[8..].copy_from_slice(&number.to_le_bytes());
        Key::new(name.as_slice())
    }
}

impl Part {
    /// Asks for the next of `entries` that is this thread's to be written for the first time, or for a read;
    /// for nothing when all were.
    pub(super) fn fill(&mut self, lane: &mut Lane, entries: &Range<u64>) {
        let number = entries.start + self.first + self.written * self.stride;
        if entries.contains(&number) && !self.reads(lane) {
            self.written += 1;
            self.set.put(lane, number, mix(self.set.seed, number));
        }
    }

    /// Asks for a read, if it is time for one.
    fn reads(&mut self, lane: &mut Lane) -> bool {
        let next = self.next_read();
        next.into_iter().for_each(|number| _ = lane.get(self.set.key(number), Want::Nothing));
        next.is_some()
    }

    /// Which entry is read, if it is time for that.
    fn next_read(&mut self) -> Option<u64> {
        let asked = self.asked;
        self.asked += 1;
        match self.set.order {
            Order::Random => {
                let is_time = self.draw.random::<f64>() < self.read_share;
                is_time.then(|| self.draw.random_range(0..self.set.half))
            }
            Order::InTurn(turns) => {
                let (entry, round) = turns.at(asked, self.set.half);
                match turns.after {
                    Operation::Read => Some(entry),
                    Operation::Write => (round > 0).then_some(self.set.half + entry),
                }
            }
        }
    }

    /// Whether what was asked for last is what is to be measured, and no preparation of it.
    pub(super) fn counts(&self) -> bool {
        match self.set.order {
            Order::Random => true,
            Order::InTurn(turns) => turns.counts(turns.at(self.asked - 1, self.set.half).1),
        }
    }

    /// Asks for an operation.
    pub(super) fn ask(&mut self, lane: &mut Lane) {
        if self.reads(lane) {
            return;
        }
        let mine = (self.set.half - self.first).div_ceil(self.stride);
        let number = self.first + self.written % mine * self.stride;
        self.written += 1;
        // Every write has bytes of its own: a drive that looks for equal blocks finds none.
        self.set.put(lane, self.set.half + number, self.draw.random());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: entries in turn that are too many or out of turn, others than were written before or always
    /// the same of those, or random ones that are not all of them.
    #[test]
    fn entries_are_read_in_turn_or_at_random() {
        let set = WorkingSet { bytes: 1, half: 8, seed: 1, order: Order::Random };
        let reads = |set: WorkingSet, count| {
            let mut part = set.part(1.0, (0, 1), 0);
            (0..count).map(|_| part.next_read()).collect::<Vec<_>>()
        };
        let turns = |after, repeats| set.in_turn(Turns { after, repeats, entries: 3 });
        let read_for_ever = reads(turns(Operation::Read, MOST_REPEATS), 7);
        assert_eq!(read_for_ever, [0, 1, 2, 0, 1, 2, 0].map(Some));
        let read_thrice = reads(turns(Operation::Read, 1), 20);
        let rounds =
            read_thrice.chunks(3).map(|round| round.iter().map(|it| it.unwrap()).collect::<Vec<_>>());
        let (a, b) = ([0, 1, 2], [3, 4, 5]);
        assert_eq!(rounds.collect::<Vec<_>>(), [&a[..], &a, &a, &b, &b, &b, &[6, 7]]);
        let after_writes = reads(turns(Operation::Write, 0), 18);
        let read = after_writes.chunks(3).skip(1).step_by(2).map(<[_]>::to_vec).collect::<Vec<_>>();
        assert_eq!(read, [[8, 9, 10], [11, 12, 13], [14, 15, 8]].map(|turn| turn.map(Some)));
        assert_eq!(after_writes.iter().flatten().count(), 9, "each is written first");
        let counted = |set: WorkingSet| {
            let mut part = set.part(1.0, (0, 1), 0);
            let mut counts = || {
                part.next_read();
                u8::from(part.counts())
            };
            (0..12).map(|_| counts()).collect::<Vec<_>>()
        };
        assert_eq!(counted(turns(Operation::Read, 0)), [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
        assert_eq!(counted(turns(Operation::Read, 1)), [0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]);
        assert_eq!(counted(turns(Operation::Read, MOST_REPEATS)), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
        let random: std::collections::BTreeSet<u64> = reads(set, 200).into_iter().flatten().collect();
        assert_eq!(random.into_iter().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }
}
