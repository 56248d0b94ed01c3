//! A latency and bandwidths, as media of constants have them.

use serde::Deserialize;
use wavetank_model::{Error, Nanos, Operation, Result};

use crate::media::{Parameters, configure};

/// How long something takes that meets nobody.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rates {
    #[serde(default)]
    latency_us: f64,
    gbps: f64,
    read_gbps: Option<f64>,
    write_gbps: Option<f64>,
}

impl Rates {
    /// Those of the row `name`, where they make sense.
    pub(crate) fn read(name: &str, parameters: &Parameters) -> Result<Self> {
        // A bound keeps the sum of transfers inside the simulated clock.
        const A_DAY_US: f64 = 86.4e9;
        let rates: Self = configure(name, parameters)?;
        if !(0.0..=A_DAY_US).contains(&rates.latency_us) {
            return Err(Error::usage(format!("medium \"{name}\": latency_us must be from 0 to a day")));
        }
        let is_bandwidth = |gbps: f64| gbps.is_finite() && gbps > 0.0;
        match [Operation::Read, Operation::Write].into_iter().all(|way| is_bandwidth(rates.gbps(way))) {
            true => Ok(rates),
            false => Err(Error::usage(format!("medium \"{name}\": a bandwidth must be above 0 GB/s"))),
        }
    }

    pub(crate) fn gbps(&self, operation: Operation) -> f64 {
        match operation {
            Operation::Read => self.read_gbps,
            Operation::Write => self.write_gbps,
        }
        .unwrap_or(self.gbps)
    }

    pub(crate) fn latency(&self) -> Nanos {
        Nanos::from_ms(self.latency_us / 1000.0)
    }

    /// The time of so many bytes after the latency.
    pub(crate) fn carried(&self, operation: Operation, bytes: u64) -> Nanos {
        carried(bytes, self.gbps(operation))
    }
}

/// The time of so many bytes at a bandwidth in gigabytes (1e9) per second: a byte at 1 GB/s is a nanosecond.
pub(crate) fn carried(bytes: u64, gbps: f64) -> Nanos {
    Nanos((bytes as f64 / gbps).round() as u64)
}
