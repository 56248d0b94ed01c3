//! One point: operations on entries of one size, as many in flight as the queue is deep, in one or more
//! passes.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use wavetank_model::{IoTimes, Result, TIER_QUANTILES, TierLatency, TierPoint};
use wavetank_store::Lane;

use super::crew::{Crew, Halt, Hand};
use super::labour::Labour;
use super::plan::Load;
use super::set::{Ended, ended};
use super::window::{Moment, Span, Window};
use crate::kernel::thread_cpu_seconds;

/// Which share of the time goes by before anything is counted.
const WARM_UP_SHARE: f64 = 0.2;
/// A pass of slow operations goes on until as many rounds of them ended, …
const ROUNDS: u64 = 2;
/// … but no longer than this many times its span.
const PATIENCE: f64 = 5.0;
/// An hour; what takes longer counts as that.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Measures a point for some seconds, once; `None` when it was stopped.
pub(super) fn measure(crew: Crew<'_>, seconds: f64) -> Result<Option<Seen>> {
    let depth = u64::from(crew.load.depth);
    // Those that began together end together: the first round is not what comes after it.
    let warm_up = Span { seconds: seconds * WARM_UP_SHARE, operations: depth, patience: f64::INFINITY };
    let window = Window::after(warm_up, Span { seconds, operations: ROUNDS * depth, patience: PATIENCE });
    let parts = crew.work(|hand, halt| count(hand, &window, halt))?;
    Ok(parts.and_then(|parts| parts.into_iter().reduce(Seen::beside)))
}

/// Writes `entries`, which were never there, and measures it; `None` when it was stopped.
pub(super) fn fill(crew: Crew<'_>, entries: &Range<u64>) -> Result<Option<Seen>> {
    let begun = OnceLock::new();
    let parts = crew.work(|mut hand, halt| {
        let start = *begun.get_or_init(Instant::now);
        let mut seen = Seen::default();
        let labour = Labour::begin(&mut hand.lane);
        write_all(&mut hand, entries, halt, |ended, times| seen.count(ended, times, start.elapsed()))?;
        seen.busy_seconds = labour.busy_seconds(&mut hand.lane);
        Ok(seen)
    })?;
    Ok(parts.and_then(|parts| parts.into_iter().reduce(Seen::beside)))
}

/// Writes a thread's share of `entries`, and tells of what ended.
fn write_all(
    hand: &mut Hand,
    entries: &Range<u64>,
    halt: &Halt<'_>,
    mut saw: impl FnMut(Ended, IoTimes),
) -> Result<()> {
    (0..hand.depth).for_each(|_| hand.part.fill(&mut hand.lane, entries));
    while let Some(done) = hand.lane.wait() {
        if halt.is_called() {
            break;
        }
        saw(ended(done.outcome)?, done.times);
        hand.part.fill(&mut hand.lane, entries);
    }
    Ok(())
}

/// One thread's operations.
fn count(mut hand: Hand, window: &Window, halt: &Halt<'_>) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut labour: Option<Labour> = None;
    (0..hand.depth).for_each(|_| hand.part.ask(&mut hand.lane));
    while let Some(done) = hand.lane.wait() {
        if halt.is_called() {
            break;
        }
        let ended = ended(done.outcome)?;
        match window.saw_end(Instant::now()) {
            Moment::Before => {}
            Moment::Inside(elapsed) => {
                if hand.part.counts() {
                    seen.count(ended, done.times, elapsed);
                }
                match &mut labour {
                    Some(labour) => labour.saw_end(&mut hand.lane),
                    None => labour = Some(Labour::begin(&mut hand.lane)),
                }
            }
            Moment::After => {
                seen.end(labour.take(), &mut hand.lane);
                continue;
            }
        }
        hand.part.ask(&mut hand.lane);
    }
    seen.end(labour, &mut hand.lane);
    Ok(seen)
}

/// Processor time that making the bytes of an entry takes: of writes with nothing behind them, once buffers
/// have been touched. Those of a drive are when its queue takes them, before anything is measured.
pub(super) fn making_seconds(crew: Crew<'_>) -> Result<f64> {
    const BYTES: u64 = 64 << 20;
    let load = Load { depth: 1, ..crew.load };
    let entries = (BYTES / load.bytes.max(1)).clamp(8, 512);
    let spent = Crew { load, threads: 1, ..crew }.work(|mut hand, halt| {
        write_all(&mut hand, &(0..entries), halt, |_, _| ())?;
        let before = thread_cpu_seconds();
        write_all(&mut hand, &(0..2 * entries), halt, |_, _| ())?;
        Ok(thread_cpu_seconds() - before)
    })?;
    Ok(spent.map_or(0.0, |threads| threads.iter().sum::<f64>() / entries as f64))
}

/// What ended while it was counted.
#[derive(Default)]
pub(super) struct Seen {
    elapsed: Duration,
    busy_seconds: f64,
    /// Of all threads together.
    ended_at_once: f64,
    reads: Latencies,
    writes: Latencies,
}

impl Seen {
    /// What a thread did with its time, if anything ended.
    fn end(&mut self, labour: Option<Labour>, lane: &mut Lane) {
        let Some(labour) = labour else { return };
        self.busy_seconds = labour.busy_seconds(lane);
        self.ended_at_once = labour.ended_at_once(lane);
    }

    fn count(&mut self, ended: Ended, times: IoTimes, elapsed: Duration) {
        match ended {
            Ended::Read => self.reads.record(times),
            Ended::Written => self.writes.record(times),
            Ended::Skipped => return,
        }
        self.elapsed = self.elapsed.max(elapsed);
    }

    /// Together with what another thread saw at the same time.
    fn beside(mut self, other: Self) -> Self {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.busy_seconds += other.busy_seconds;
        self.ended_at_once += other.ended_at_once;
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        self
    }
}

/// What was seen of a point in all passes so far.
#[derive(Default)]
pub(super) struct Tally {
    seconds: f64,
    busy_seconds: f64,
    ended_at_once: f64,
    pass_bytes_per_second: Vec<f64>,
    reads: Latencies,
    writes: Latencies,
}

impl Tally {
    /// Adds a pass; one in which nothing ended says nothing.
    pub(super) fn add(&mut self, load: Load, seen: &Seen) {
        let (operations, seconds) = (seen.reads.count + seen.writes.count, seen.elapsed.as_secs_f64());
        if operations == 0 {
            return;
        }
        self.seconds += seconds;
        self.busy_seconds += seen.busy_seconds;
        self.ended_at_once += seen.ended_at_once;
        self.pass_bytes_per_second.push(operations as f64 * load.bytes as f64 / seconds);
        self.reads.add(&seen.reads);
        self.writes.add(&seen.writes);
    }

    /// The point, where making the bytes of an entry takes so long; `None` where nothing was seen of it.
    pub(super) fn point(self, load: Load, making_seconds: f64) -> Option<TierPoint> {
        let operations = self.reads.count + self.writes.count;
        let busy_seconds = self.busy_seconds - making_seconds * self.writes.count as f64;
        let passes = self.pass_bytes_per_second.len() as f64;
        let (read, write) = (self.reads.summary(), self.writes.summary());
        let longest = [&read, &write].into_iter().flatten().map(TierLatency::longest_us).fold(0.0, f64::max);
        (operations > 0).then(|| TierPoint {
            read_share: load.read_share,
            room: load.room,
            bytes: load.bytes,
            depth: load.depth,
            operations,
            reads: self.reads.count,
            seconds: self.seconds,
            bytes_per_second: operations as f64 * load.bytes as f64 / self.seconds,
            pass_bytes_per_second: self.pass_bytes_per_second,
            busy_us: (busy_seconds / operations as f64 * 1e6).clamp(0.0, longest),
            ended_at_once: (self.ended_at_once / passes).min(f64::from(load.depth)),
            read,
            write,
        })
    }
}

/// Latencies of one kind of operation, from being asked for to the end, as the benchmark reports them.
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
        self.seen.get_or_insert_with(histogram).saturating_record(times.total.0);
    }

    fn add(&mut self, other: &Self) {
        let Some(theirs) = &other.seen else { return };
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.device_ns += other.device_ns;
        self.seen.get_or_insert_with(histogram).add(theirs).expect("histograms of the same bounds");
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

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("sound bounds")
}

#[cfg(test)]
mod tests {
    use wavetank_model::Nanos;

    use super::*;

    fn seen(latencies_us: impl Iterator<Item = u64>, seconds: u64) -> Seen {
        let mut seen = Seen::default();
        for latency in latencies_us {
            let total = Nanos(latency * 1000);
            let times = IoTimes { total, device: total, ..IoTimes::default() };
            seen.count(Ended::Read, times, Duration::from_secs(seconds));
        }
        seen
    }

    /// Broken by: passes that are averaged instead of added up, or whose own rates are lost.
    #[test]
    fn passes_add_up_and_keep_their_rates() {
        let load = Load::writes(10, 1);
        let mut tally = Tally::default();
        tally.add(load, &seen(1..=30, 1));
        tally.add(load, &seen(1..=30, 3));
        tally.add(load, &seen(std::iter::empty(), 0));
        let point = tally.point(load, 0.0).unwrap();
        assert_eq!((point.operations, point.seconds, point.bytes_per_second), (60, 4.0, 150.0));
        assert_eq!(point.pass_bytes_per_second, [300.0, 100.0]);
        assert_eq!(Tally::default().point(load, 0.0), None);
    }

    /// Broken by: threads whose times are added up.
    #[test]
    fn threads_work_at_the_same_time() {
        let load = Load::writes(10, 2);
        let mut tally = Tally::default();
        tally.add(load, &seen(1..=10, 2).beside(seen(1..=20, 3)));
        let point = tally.point(load, 0.0).unwrap();
        assert_eq!((point.operations, point.seconds, point.bytes_per_second), (30, 3.0, 100.0));
    }

    /// Broken by: a quantile that lies between or beyond what was seen.
    #[test]
    fn a_quantile_is_a_latency_that_was_seen() {
        let load = Load::writes(1, 1);
        let mut tally = Tally::default();
        tally.add(load, &seen((1..=40).map(|number| number * 10), 1));
        let read = tally.point(load, 0.0).unwrap().read.unwrap();
        let expected = [10.0, 40.0, 100.0, 200.0, 300.0, 360.0, 380.0, 400.0, 400.0, 400.0];
        for (quantile, expected) in read.quantiles_us.into_iter().zip(expected) {
            assert!((quantile / expected - 1.0).abs() < 1e-3, "{quantile} for {expected}");
        }
    }
}
