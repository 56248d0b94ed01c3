//! `gpu_sim`: a GPU's memory without a GPU. The bytes are real, the time they take is modelled.
//!
//! It is `memory` behind `throttle`: each direction is a link shared by all threads, a piece holds it for its length over
//! the bandwidth and is done the latency later. Entries made from a seed take room but no RAM: what is read of them is
//! made again, so that a large GPU fits a small machine.

use std::sync::Arc;
use std::time::Duration;

use wavetank_model::{Error, Result};

use super::memory::{self, Seeded};
use super::{Entry, Site};
use crate::backend::{Backend, Caps, Location};
use crate::wrappers::throttle::{self, Bandwidth, Limits};

pub(super) const ENTRY: Entry = Entry {
    name: "gpu_sim",
    about: "a modelled GPU: real bytes, modelled bandwidth and latency",
    caps: Caps { keeps_bytes: true, survives: false, location: Location::None },
    options: &[
        ("gbps", "GB/s in each direction, 48 unless given"),
        ("latency_us", "microseconds of every piece besides its transfer, 10 unless given"),
    ],
    open,
};

/// Pinned copies into an H200 (PCIe 5.0 x16), records/2026-11-15-store.md.
const GBPS: f64 = 48.0;
/// A round figure for queueing a copy and seeing its event.
const LATENCY_US: f64 = 10.0;

fn open(site: &Site) -> Result<Arc<dyn Backend>> {
    let gbps = site.options.above_zero("gbps")?.unwrap_or(GBPS);
    let latency = Duration::try_from_secs_f64(site.options.option("latency_us", LATENCY_US)? / 1e6)
        .map_err(|_| Error::usage("option latency_us: must not be negative"))?;
    let memory = memory::open_with(site, ENTRY.name, Seeded::MadeAgain)?;
    let bandwidth = Bandwidth::Apart { read: Some(gbps), write: Some(gbps) };
    Ok(throttle::wrap(memory, Limits { bandwidth, latency, operations_per_second: None }))
}
