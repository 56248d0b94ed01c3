//! Operations played on what was measured.

use std::sync::atomic::AtomicBool;

use hdrhistogram::Histogram;
use wavetank_bench::{PlayCounts, PlayPace, PlayQueue, Step, TierPlan, play_tier};
use wavetank_model::{Nanos, Result, TierRole};
use wavetank_store::meter::Work;

use super::TierProbe;

/// Pieces that are with the device at a time, as a benchmark has them unless told otherwise.
const DEPTH: u32 = 32;

/// Latencies in nanoseconds.
pub type LatencyHistogram = Histogram<u64>;

/// What came of operations that were played.
pub struct PlayedIo {
    /// Operations by how they ended.
    pub counts: PlayCounts,
    /// How long reads took, from being asked for to the end.
    pub read_ns: LatencyHistogram,
    /// How long writes took.
    pub write_ns: LatencyHistogram,
    /// From the first operation to the end of the last.
    pub seconds: f64,
    /// How far behind its time the latest operation began.
    pub latest: Nanos,
    /// What does not work here as it should.
    pub notes: Vec<String>,
    /// Whether it was ended before the last.
    pub interrupted: bool,
}

/// Plays `steps` at their times on the backend that `probe` measures, in a place of its own there that holds
/// so many bytes. Nothing of it is left.
pub fn play(
    probe: &TierProbe,
    capacity_bytes: u64,
    steps: &mut dyn Iterator<Item = Result<Step>>,
    stop: &AtomicBool,
) -> Result<PlayedIo> {
    let place = probe.target.place()?;
    let tier = TierPlan {
        role: TierRole::Storage,
        backend: probe.probe.backend.clone(),
        location: place.location(),
        capacity_bytes: Some(capacity_bytes),
        eviction: "lru".to_owned(),
        options: probe.probe.options.clone(),
    };
    let queue = PlayQueue { depth: DEPTH, seed: probe.probe.seed };
    let played = play_tier(&tier, queue, steps, PlayPace::Recorded(1.0), stop);
    let left = place.close();
    let played = played?;
    left?;
    let took = |work| played.meter.gauge(0, work).total_ns.clone();
    Ok(PlayedIo {
        counts: played.counts,
        read_ns: took(Work::Read),
        write_ns: took(Work::Write),
        seconds: played.seconds,
        latest: played.latest,
        notes: played.notes,
        interrupted: played.interrupted,
    })
}
