//! A latency and a bandwidth for every transfer of its own: nobody waits for anybody.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wavetank_model::{Nanos, Operation};

use super::{Entry, Medium, Transfer, with_bandwidth};
use crate::TransferId;
use crate::rates::Rates;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "constant",
    about: "latency_us, then the bytes at gbps (or read_gbps, write_gbps), whoever else is there",
    build: |parameters, _| {
        Ok(Box::new(Constant { rates: Rates::read(ENTRY.name, parameters)?, ends: BinaryHeap::new() }))
    },
    sped: with_bandwidth,
    is_random: false,
};

struct Constant {
    rates: Rates,
    ends: BinaryHeap<Reverse<(Nanos, TransferId)>>,
}

impl Medium for Constant {
    fn begin(&mut self, transfer: Transfer, now: Nanos) {
        let took = match transfer.bytes {
            0 => Nanos::ZERO,
            bytes => self.alone(transfer.operation, bytes),
        };
        self.ends.push(Reverse((now + took, transfer.id)));
    }

    fn next(&self) -> Option<Nanos> {
        self.ends.peek().map(|&Reverse((at, _))| at)
    }

    fn end(&mut self, now: Nanos, ended: &mut Vec<TransferId>) -> Option<Nanos> {
        let at = self.next().filter(|&at| at <= now)?;
        while self.next() == Some(at) {
            ended.extend(self.ends.pop().map(|Reverse((_, id))| id));
        }
        Some(at)
    }

    fn takes_runs(&self) -> bool {
        true
    }

    fn alone(&self, operation: Operation, bytes: u64) -> Nanos {
        self.rates.latency() + self.rates.carried(operation, bytes)
    }

    fn peak_bytes_per_second(&self, _operation: Operation, _bytes: u64) -> f64 {
        f64::INFINITY
    }
}
