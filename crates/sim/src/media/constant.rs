//! A latency and a bandwidth for every transfer of its own: nobody waits for anybody.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Deserialize;
use wavetank_model::{Nanos, Operation};

use super::{Entry, Medium, Transfer, carried, checked, configure, with_bandwidth};
use crate::TransferId;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "constant",
    about: "latency_us, then the bytes at gbps (or read_gbps, write_gbps), whoever else is there",
    build: |parameters, _| {
        let config: Config = configure(ENTRY.name, parameters)?;
        checked(
            ENTRY.name,
            config.latency_us,
            &[config.gbps(Operation::Read), config.gbps(Operation::Write)],
        )?;
        Ok(Box::new(Constant { config, ends: BinaryHeap::new() }))
    },
    sped: with_bandwidth,
    is_random: false,
};

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    latency_us: f64,
    gbps: f64,
    read_gbps: Option<f64>,
    write_gbps: Option<f64>,
}

impl Config {
    fn gbps(&self, operation: Operation) -> f64 {
        match operation {
            Operation::Read => self.read_gbps,
            Operation::Write => self.write_gbps,
        }
        .unwrap_or(self.gbps)
    }
}

struct Constant {
    config: Config,
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

    fn end(&mut self, now: Nanos) -> Option<(TransferId, Nanos)> {
        self.next().filter(|&at| at <= now)?;
        self.ends.pop().map(|Reverse((at, id))| (id, at))
    }

    fn alone(&self, operation: Operation, bytes: u64) -> Nanos {
        Nanos::from_ms(self.config.latency_us / 1000.0) + carried(bytes, self.config.gbps(operation))
    }

    fn peak_bytes_per_second(&self, _operation: Operation, _bytes: u64) -> f64 {
        f64::INFINITY
    }
}
