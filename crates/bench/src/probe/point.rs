//! One point: operations of one size, as many in flight as the queue is deep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use wavetank_model::{IoTimes, Result, TIER_QUANTILES, TierLatency, TierPoint};
use wavetank_store::Lane;

use super::Load;
use super::set::{Ended, WorkingSet, ended};

/// Which share of the time goes by before anything is counted.
const WARM_UP_SHARE: f64 = 0.2;
/// A point of slow operations goes on until as many rounds of them ended, …
const ROUNDS: u64 = 2;
/// … but no longer than this many times its span.
const PATIENCE: f64 = 10.0;
/// Into how many parts operations fall to see how bandwidth scatters, and how many each has at least.
const PARTS: usize = 5;
const PART_LEAST: usize = 2;
/// An hour; what takes longer counts as that.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Measures a point for some seconds; `None` when it was stopped.
pub(super) fn measure(
    lane: &mut Lane,
    set: &mut WorkingSet,
    (load, seconds): (Load, f64),
    stop: &AtomicBool,
) -> Result<Option<TierPoint>> {
    (0..load.depth).for_each(|_| set.ask(lane, load.read_share));
    // Those that began together end together: the first round is not what comes after it.
    let warm_up = Span { seconds: seconds * WARM_UP_SHARE, operations: u64::from(load.depth) };
    let mut tally = Tally::start();
    while warm_up.goes_on(&tally) {
        if !next(lane, set, (load, &mut tally))? || stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    let span = Span { seconds, operations: ROUNDS * u64::from(load.depth) };
    let mut tally = Tally::start();
    while tally.ends.is_empty() || span.goes_on(&tally) {
        if !next(lane, set, (load, &mut tally))? || stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    while let Some(done) = lane.wait() {
        ended(done.outcome)?;
    }
    Ok(Some(tally.point(load)))
}

/// Waits for an operation and asks for the one after it; `false` when there is none.
fn next(lane: &mut Lane, set: &mut WorkingSet, (load, tally): (Load, &mut Tally)) -> Result<bool> {
    let Some(done) = lane.wait() else { return Ok(false) };
    tally.count(ended(done.outcome)?, done.times);
    set.ask(lane, load.read_share);
    Ok(true)
}

/// How long something goes on: a time, and longer where too little ended in it.
struct Span {
    seconds: f64,
    operations: u64,
}

impl Span {
    fn goes_on(&self, tally: &Tally) -> bool {
        let elapsed = tally.start.elapsed().as_secs_f64();
        let are_few = (tally.ends.len() as u64) < self.operations;
        elapsed < self.seconds || (are_few && elapsed < self.seconds * PATIENCE)
    }
}

/// What ended since a moment.
struct Tally {
    start: Instant,
    /// When each operation was seen to have ended.
    ends: Vec<Duration>,
    reads: Latencies,
    writes: Latencies,
}

impl Tally {
    fn start() -> Self {
        let (reads, writes) = (Latencies::default(), Latencies::default());
        Self { ends: Vec::new(), reads, writes, start: Instant::now() }
    }

    fn count(&mut self, ended: Ended, times: IoTimes) {
        match ended {
            Ended::Read => self.reads.record(times),
            Ended::Written => self.writes.record(times),
            Ended::Skipped => return,
        }
        self.ends.push(self.start.elapsed());
    }

    fn point(&self, load: Load) -> TierPoint {
        let operations = self.ends.len() as u64;
        let seconds = self.ends.last().map_or(0.0, Duration::as_secs_f64).max(1e-9);
        TierPoint {
            read_share: load.read_share,
            bytes: load.bytes,
            depth: load.depth,
            operations,
            reads: self.reads.count,
            seconds,
            bytes_per_second: operations as f64 * load.bytes as f64 / seconds,
            scatter: scatter(&self.ends),
            read: self.reads.summary(),
            write: self.writes.summary(),
        }
    }
}

/// Latencies of one kind of operation.
#[derive(Default)]
struct Latencies {
    count: u64,
    total_ns: u128,
    device_ns: u128,
    seen: Option<Histogram<u64>>,
}

impl Latencies {
    fn record(&mut self, times: IoTimes) {
        self.count += 1;
        self.total_ns += u128::from(times.total.0);
        self.device_ns += u128::from(times.device.0);
        let bounds = || Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("sound bounds");
        self.seen.get_or_insert_with(bounds).saturating_record(times.total.0);
    }

    fn summary(&self) -> Option<TierLatency> {
        let seen = self.seen.as_ref()?;
        let mean = |sum: u128| sum as f64 / self.count as f64 / 1e3;
        Some(TierLatency {
            mean_us: mean(self.total_ns),
            device_mean_us: mean(self.device_ns),
            quantiles_us: TIER_QUANTILES.map(|part| seen.value_at_quantile(part) as f64 / 1e3),
        })
    }
}

/// The standard deviation of the rates of equal parts of the operations, as a share of their mean.
fn scatter(ends: &[Duration]) -> Option<f64> {
    let each = ends.len() / PARTS;
    if each < PART_LEAST {
        return None;
    }
    let mut before = Duration::ZERO;
    let rates: Vec<f64> = (1..=PARTS)
        .map(|part| {
            let end = ends[part * each - 1];
            let rate = each as f64 / (end - before).as_secs_f64().max(1e-9);
            before = end;
            rate
        })
        .collect();
    let mean = rates.iter().sum::<f64>() / PARTS as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (PARTS - 1) as f64;
    Some(variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: rates of parts that begin at the start, or a deviation that is no share.
    #[test]
    fn scatter_is_of_the_parts() {
        let even: Vec<Duration> = (1..=20).map(Duration::from_secs).collect();
        assert_eq!(scatter(&even), Some(0.0));
        assert_eq!(scatter(&even[..9]), None);
        // Rates 2, 1, 1, 1, 1: the mean is 1.2, the deviation the root of 0.2.
        let halved: Vec<Duration> = [5, 10, 20, 30, 40, 50, 60, 70, 80, 90].map(Duration::from_secs).to_vec();
        let expected = 0.2_f64.sqrt() / 1.2;
        assert!((scatter(&halved).unwrap() - expected).abs() < 1e-9);
    }
}
