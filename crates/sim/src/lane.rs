//! A link or device whose transfers share what it can carry in equal parts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wavetank_model::Nanos;

/// A transfer by its number.
pub type TransferId = u64;

/// The transfers that share it.
pub(crate) struct Lane {
    bytes_per_ms: f64,
    own_bytes_per_ms: f64,
    /// Up to when `served` counts.
    at: Nanos,
    /// Bytes every transfer that was there all the time has got since the lane was empty.
    served: f64,
    /// Transfers by what `served` is when they end; its bits order as the numbers do.
    ends: BinaryHeap<Reverse<(u64, TransferId)>>,
    /// When the next one ends if none joins before.
    next: Option<Nanos>,
}

impl Lane {
    /// A lane of which one transfer can use `own_bytes_per_ms` at most.
    pub(crate) fn of(bytes_per_ms: f64, own_bytes_per_ms: f64) -> Self {
        let (at, served, ends) = (Nanos::ZERO, 0.0, BinaryHeap::new());
        Self { bytes_per_ms, own_bytes_per_ms, at, served, ends, next: None }
    }

    /// What each transfer gets.
    fn share(&self) -> f64 {
        (self.bytes_per_ms / self.ends.len().max(1) as f64).min(self.own_bytes_per_ms)
    }

    fn advance(&mut self, now: Nanos) {
        if !self.ends.is_empty() {
            self.served += self.share() * (now - self.at).as_ms();
        }
        self.at = now;
    }

    /// The first byte of a transfer enters.
    pub(crate) fn join(&mut self, id: TransferId, bytes: u64, now: Nanos) {
        self.advance(now);
        self.ends.push(Reverse(((self.served + bytes as f64).to_bits(), id)));
        self.next = self.look_ahead();
    }

    /// When the next one ends if none joins before.
    pub(crate) fn next_end(&self) -> Option<Nanos> {
        self.next
    }

    fn look_ahead(&self) -> Option<Nanos> {
        let &Reverse((served, _)) = self.ends.peek()?;
        let left = (f64::from_bits(served) - self.served).max(0.0);
        Some(self.at + Nanos::from_ms(left / self.share()))
    }

    /// The next one leaves, at the time of its end.
    pub(crate) fn end_next(&mut self, now: Nanos) -> Option<TransferId> {
        self.advance(now);
        let Reverse((_, id)) = self.ends.pop()?;
        if self.ends.is_empty() {
            self.served = 0.0;
        }
        self.next = self.look_ahead();
        Some(id)
    }
}
