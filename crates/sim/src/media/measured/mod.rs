//! A medium as it was measured (`wavetank profile tier`): how long an operation takes at the present queue
//! depth, beside the present reads and writes.
//!
//! Every transfer has one unit of work, times a draw from the latencies that were seen, and gets it done at
//! the rate of the mean latency at the present depth. So operations that meet nobody take what they took at
//! depth one, as many as were measured together have the bandwidth that was measured, and more have no more.
//!
//! A device whose reads were seen to end together (the queue of a virtual machine may be answered when it is
//! empty) tells of no end before all that is under way is done, what begins meanwhile included.
//!
//! A device takes no more at a time than it was ever seen with: the rest stands in line.

mod curves;

use std::collections::VecDeque;

use rand::RngExt;
use serde::Deserialize;
use wavetank_model::{Draw, Error, Nanos, Operation, TierProfile, TierRoom, seeded};

use super::{Entry, Medium, Parameters, Transfer, configure};
use crate::TransferId;
use curves::{Beside, Curves};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "measured",
    about: "times at the present queue depth, reads and writes in each other's way: `wavetank profile tier`",
    build: |parameters, seed| {
        let Config { profile } = configure(ENTRY.name, parameters)?;
        if let Some(flaw) = profile.flaw() {
            return Err(Error::usage(format!("medium \"{}\": {flaw}", ENTRY.name)));
        }
        let curves = Curves::of(&profile)?;
        Ok(Box::new(Measured {
            curves,
            draw: seeded(seed, "medium"),
            ends_together: profile.ends_together(),
            at: Nanos::ZERO,
            under_way: Vec::new(),
            untold: Vec::new(),
            places: places(&profile),
            taken: 0.0,
            line: VecDeque::new(),
        }))
    },
    sped: |parameters, factor| {
        let Config { profile } = configure(ENTRY.name, parameters)?;
        let profile = serde_json::to_value(profile.sped(factor)).expect("a profile is written as it is read");
        Ok(Parameters::from_iter([("profile".to_owned(), profile)]))
    },
    is_random: true,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    profile: TierProfile,
}

/// The largest request to a device: a longer entry is several of them.
const PIECE: u64 = 1 << 20;
/// How many of them one entry has at the device at a time, at most.
const WINDOW: u64 = 32;
/// As many are always at the device: what a thread's queue has, and an entry that is only half in it.
const PLACES: f64 = 2.0 * WINDOW as f64;

struct Measured {
    curves: Curves,
    draw: Draw,
    /// Whether ends are told when nothing is left to do.
    ends_together: bool,
    /// Up to when the work of those under way counts.
    at: Nanos,
    under_way: Vec<Active>,
    /// What is done and was not told.
    untold: Vec<TransferId>,
    /// How many places there are at the device, and how many are taken.
    places: f64,
    taken: f64,
    /// What stands in line, with its work.
    line: VecDeque<(Transfer, f64)>,
}

/// A transfer under way.
struct Active {
    transfer: Transfer,
    /// What is left of its work.
    left: f64,
    /// How long a unit of work takes now.
    unit_ns: f64,
}

impl Active {
    fn pieces(&self) -> f64 {
        pieces(self.transfer.bytes)
    }

    fn ends_in_ns(&self) -> f64 {
        (self.left * self.unit_ns).max(0.0)
    }
}

/// How many places at the device an entry takes.
fn pieces(bytes: u64) -> f64 {
    bytes.div_ceil(PIECE).clamp(1, WINDOW) as f64
}

/// How many places a device has. One that ends together has those of one thread's queue: more would keep it
/// from ever telling.
fn places(profile: &TierProfile) -> f64 {
    let seen = profile.points.iter().map(|point| f64::from(point.depth) * pieces(point.bytes));
    if profile.ends_together() { PLACES } else { seen.fold(PLACES, f64::max) }
}

impl Measured {
    /// Lets in who stands in line, as far as there are places; whatever its length, one is always let in.
    fn let_in(&mut self) {
        while let Some(&(transfer, left)) = self.line.front()
            && (self.taken == 0.0 || self.taken + pieces(transfer.bytes) <= self.places)
        {
            self.line.pop_front();
            self.taken += pieces(transfer.bytes);
            self.under_way.push(Active { transfer, left, unit_ns: 1.0 });
        }
        self.reconsider();
    }

    /// The work of those under way is done up to `now`.
    fn advance(&mut self, now: Nanos) {
        let passed = now.since(self.at).0 as f64;
        self.at = now;
        for active in &mut self.under_way {
            active.left -= passed / active.unit_ns;
        }
    }

    /// Who is under way has changed: so do the rates.
    fn reconsider(&mut self) {
        let (mut reads, mut used, mut new) = (0.0, 0.0, 0.0);
        for active in &self.under_way {
            *match (active.transfer.operation, active.transfer.room) {
                (Operation::Read, _) => &mut reads,
                (Operation::Write, TierRoom::Used) => &mut used,
                (Operation::Write, TierRoom::New) => &mut new,
            } += active.pieces();
        }
        let all = reads + used + new;
        let new_share = if new > 0.0 { new / (used + new) } else { 0.0 };
        let mut last: Option<(Operation, u64, f64)> = None;
        for active in &mut self.under_way {
            let Transfer { operation, bytes, .. } = active.transfer;
            let unit_ns = match last {
                Some((same, length, unit_ns)) if (same, length) == (operation, bytes) => unit_ns,
                _ => {
                    let beside = Beside { depth: all / pieces(bytes), read_share: reads / all, new_share };
                    self.curves.mean_ns(operation, bytes, beside)
                }
            };
            last = Some((operation, bytes, unit_ns));
            active.unit_ns = unit_ns;
        }
    }

    /// Operations like `transfer` that would be as many as are under way with it.
    fn depth_with(&self, transfer: Transfer) -> f64 {
        let others: f64 = self.under_way.iter().map(Active::pieces).sum();
        others / pieces(transfer.bytes) + 1.0
    }

    fn first_to_end(&self) -> Option<usize> {
        let ends = |index: &usize| self.under_way[*index].ends_in_ns();
        (0..self.under_way.len()).min_by(|a, b| ends(a).total_cmp(&ends(b)))
    }

    fn end_of(&self, index: usize) -> Nanos {
        self.at + Nanos(self.under_way[index].ends_in_ns().round() as u64)
    }
}

impl Medium for Measured {
    fn begin(&mut self, transfer: Transfer, now: Nanos) {
        self.advance(now);
        let depth = self.depth_with(transfer);
        let left = match transfer.bytes {
            0 => 0.0,
            _ => self.curves.factor(transfer, depth, self.draw.random()),
        };
        self.line.push_back((transfer, left));
        self.let_in();
    }

    fn next(&self) -> Option<Nanos> {
        self.first_to_end().map(|index| self.end_of(index))
    }

    fn end(&mut self, now: Nanos, ended: &mut Vec<TransferId>) -> Option<Nanos> {
        loop {
            let index = self.first_to_end()?;
            let end = self.end_of(index);
            if end > now {
                return None;
            }
            self.advance(end);
            let done = self.under_way.remove(index);
            self.untold.push(done.transfer.id);
            if self.ends_together && !self.under_way.is_empty() {
                self.reconsider();
                continue;
            }
            self.untold.sort_unstable();
            ended.append(&mut self.untold);
            // Places are free when ends are told.
            self.taken = if self.ends_together { 0.0 } else { self.taken - done.pieces() };
            self.let_in();
            return Some(end);
        }
    }

    fn holds_up(&self, transfer: Transfer) -> Nanos {
        Nanos(self.curves.busy_ns(transfer, self.depth_with(transfer)).round() as u64)
    }

    fn remembers(&self) -> u64 {
        self.curves.remembers()
    }

    fn alone(&self, operation: Operation, bytes: u64) -> Nanos {
        let read_share = if operation == Operation::Read { 1.0 } else { 0.0 };
        Nanos(
            self.curves.mean_ns(operation, bytes, Beside { depth: 1.0, read_share, new_share: 0.0 }).round()
                as u64,
        )
    }

    fn peak_bytes_per_second(&self, operation: Operation, bytes: u64) -> f64 {
        self.curves.peak_bytes_per_second(operation, bytes)
    }
}
