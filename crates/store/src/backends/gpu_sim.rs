//! `gpu_sim`: a GPU's memory without a GPU. The bytes are real, the time they take is modelled.
//!
//! It is `memory` behind `throttle`: each direction is a link shared by all threads, a piece holds it for its
//! length over the bandwidth and is done the latency later. Entries made from a seed take room but no RAM:
//! what is read of them is made again, so that a large GPU fits a small machine.

use std::sync::Arc;

use wavetank_model::Result;

use super::memory::{self, Seeded};
use super::{Entry, Site};
use crate::backend::{Backend, Caps, Location};
use crate::wrappers::throttle::{self, Bandwidth, Limits};

pub(super) const ENTRY: Entry = Entry {
    name: "gpu_sim",
    about: "a modelled GPU: real bytes, modelled bandwidth and latency",
    caps: Caps { keeps_bytes: true, survives: false, inline: false, location: Location::None },
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
    let latency = site.options.microseconds("latency_us", LATENCY_US)?;
    let memory = memory::open_with(site, ENTRY.name, Seeded::MadeAgain)?;
    let bandwidth = Bandwidth::Apart { read: Some(gbps), write: Some(gbps) };
    Ok(throttle::wrap(memory, Limits { bandwidth, latency, operations_per_second: None }))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::Key;
    use crate::backend::{Completion, NewEntry, Piece, Seal};
    use crate::buffer::{Mover, PIECE, Region};
    use crate::payload;

    /// More than any machine has: only what has no seed is held.
    const CAPACITY: u64 = 1 << 42;

    #[test]
    fn a_seed_is_enough_and_the_link_carries_one_piece_at_a_time() {
        let site = Site { capacity_bytes: Some(CAPACITY), ..Site::default() };
        let gpu = open(&site).unwrap();
        let region = Region::new(4).unwrap();
        let mut port = gpu.port(&region, 4).unwrap();
        let (key, bytes) = (Key::from("k"), CAPACITY / 2);
        let held =
            port.create(&NewEntry { key: &key, bytes, recipe: Some(9), birth: Default::default() }).unwrap();
        port.write(
            &held,
            Piece { token: 0, offset: 0, len: PIECE },
            region.take(Mover::Thread).unwrap(),
            Some(Seal { checksum: 0 }),
        );
        let mut done: Vec<Completion> = Vec::new();
        let deadline = || Some(Instant::now() + Duration::from_secs(30));
        port.reap(deadline(), &mut done).unwrap();
        done.clear();
        for token in 0..4 {
            port.read(
                &held,
                Piece { token, offset: token << 38, len: PIECE },
                region.take(Mover::Thread).unwrap(),
            );
        }
        while done.len() < 4 {
            port.reap(deadline(), &mut done).unwrap();
        }
        for completion in &done {
            let mut expected = vec![0; PIECE];
            payload::fill(9, completion.token << 38, &mut expected);
            assert!(completion.buffer.payload() == expected, "piece {}", completion.token);
        }
        let first = done.iter().map(|one| one.submitted).min().unwrap();
        let last = done.iter().map(|one| one.finished).max().unwrap();
        let least = Duration::from_secs_f64(4.0 * PIECE as f64 / (GBPS * 1e9));
        assert!(last - first >= least, "{:?} for {least:?} of link time", last - first);
    }
}
