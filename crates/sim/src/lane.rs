//! A link or device whose transfers share what it can carry in equal parts.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wavetank_model::Nanos;

/// A transfer by its number.
pub type TransferId = u64;

/// The transfers that share it. Those of one length that join at once are a run: they go through it as one.
pub(crate) struct Lane {
    bytes_per_ms: f64,
    own_bytes_per_ms: f64,
    /// Up to when `served` counts.
    at: Nanos,
    /// Bytes every transfer that was there all the time has got since the lane was empty.
    served: f64,
    /// Runs by what `served` is when they end, with how many they are; its bits order as the numbers do.
    ends: BinaryHeap<Reverse<(u64, TransferId, u32)>>,
    /// Transfers of all runs.
    transfers: u64,
    /// What each of them gets.
    share: f64,
    /// When the next one ends if none joins before, once that was asked.
    next: Cell<Option<Nanos>>,
    /// What `served` was to be at the end of the last that left.
    last: u64,
}

impl Lane {
    /// A lane of which one transfer can use `own_bytes_per_ms` at most.
    pub(crate) fn of(bytes_per_ms: f64, own_bytes_per_ms: f64) -> Self {
        Self {
            bytes_per_ms,
            own_bytes_per_ms,
            at: Nanos::ZERO,
            served: 0.0,
            ends: BinaryHeap::new(),
            transfers: 0,
            share: bytes_per_ms.min(own_bytes_per_ms),
            next: Cell::new(None),
            last: 0,
        }
    }

    fn advance(&mut self, now: Nanos) {
        if now != self.at && self.transfers > 0 {
            self.served += self.share * (now - self.at).as_ms();
        }
        self.at = now;
    }

    /// There are so many transfers from now on.
    fn divide(&mut self, transfers: u64) {
        self.transfers = transfers;
        // Most of the time there is one.
        let part = if transfers > 1 { self.bytes_per_ms / transfers as f64 } else { self.bytes_per_ms };
        self.share = part.min(self.own_bytes_per_ms);
        self.next.set(None);
    }

    /// The first byte of each of `count` transfers enters; they are of so many bytes each, and a run.
    pub(crate) fn join(&mut self, id: TransferId, count: u32, bytes: u64, now: Nanos) {
        self.advance(now);
        self.ends.push(Reverse(((self.served + bytes as f64).to_bits(), id, count)));
        self.divide(self.transfers + u64::from(count));
    }

    /// When the next one ends if none joins before.
    pub(crate) fn next_end(&self) -> Option<Nanos> {
        if self.next.get().is_none() {
            self.next.set(self.look_ahead());
        }
        self.next.get()
    }

    fn look_ahead(&self) -> Option<Nanos> {
        let &Reverse((served, ..)) = self.ends.peek()?;
        let left = (f64::from_bits(served) - self.served).max(0.0);
        Some(self.at + Nanos::from_ms(left / self.share))
    }

    /// The next run leaves, at the time of its end.
    pub(crate) fn end_next(&mut self, now: Nanos) -> Option<TransferId> {
        let Reverse((served, id, count)) = self.ends.pop()?;
        self.last = served;
        match self.ends.is_empty() {
            true => (self.at, self.served) = (now, 0.0),
            false => self.advance(now),
        }
        self.divide(self.transfers - u64::from(count));
        Some(id)
    }

    /// The next run leaves if nothing but its number tells it from the last one that left.
    pub(crate) fn end_like_last(&mut self) -> Option<TransferId> {
        let &Reverse((served, ..)) = self.ends.peek()?;
        if served == self.last { self.end_next(self.at) } else { None }
    }
}
