//! A log of operations played against a backend: the same entries, sizes and order, on a real device.
//!
//! Operations on one entry keep their order; different entries overlap, as far as the depth allows.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Nanos, Result};
use wavetank_store::buffer::PIECE;
use wavetank_store::meter::Meter;
use wavetank_store::{Done, Existing, Key, Lane, OpId, Outcome, Payload, Put, Store, Want};

use crate::kernel::{self, KernelIo};
use crate::log::Deed;
use crate::plan::{Plan, TierPlan};
use crate::stack;

/// One operation of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, since the first one.
    pub at: Nanos,
    /// What is done.
    pub deed: Deed,
    /// The entry's length.
    pub bytes: u64,
    /// Its name.
    pub key: Box<str>,
}

/// When operations are begun.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayPace {
    /// As soon as there is room.
    Max,
    /// At their times, so many times faster.
    Recorded(f64),
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Played {
    /// Operations by how they ended.
    pub counts: PlayCounts,
    /// Latencies and bytes.
    pub meter: Meter,
    /// From the first operation to the end of the last.
    pub seconds: f64,
    /// Processor time of this process meanwhile.
    pub cpu_seconds: f64,
    /// What the kernel counted meanwhile.
    pub kernel: Option<KernelIo>,
    /// How far behind its time the latest operation began, with recorded times.
    pub latest: Nanos,
    /// What does not work here as it should.
    pub notes: Vec<String>,
    /// Whether it was ended before the log did.
    pub interrupted: bool,
}

/// Operations by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlayCounts {
    /// Read.
    pub hits: u64,
    /// To be read and not there: written before the log began, or evicted here.
    pub misses: u64,
    /// Written.
    pub written: u64,
    /// Deleted.
    pub deleted: u64,
    /// To be deleted and not there.
    pub absent: u64,
    /// Not written for lack of room.
    pub refused: u64,
    /// Failed at the device.
    pub failed: u64,
    /// Under way when it was to stop, and not over soon after.
    pub given_up: u64,
}

/// Operations are begun while their bytes are less than this many times what the device has at a time: enough
/// that it never waits for us, and no more, since what stands in line here counts as latency.
const AHEAD: u64 = 2;
/// Who waits for operations, or for the time of one, looks so often whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// What is under way when it is to stop may take so long to its end.
const GRACE: Duration = Duration::from_secs(1);
/// What is later than this never comes: a year.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// The least that a device moves.
const BLOCK: u64 = 4096;

/// Plays `steps` on the tiers of `plan`, of which only tiers, rules, depth and seed matter.
pub fn play(
    plan: &Plan,
    steps: &mut dyn Iterator<Item = Result<Step>>,
    pace: PlayPace,
    stop: &AtomicBool,
) -> Result<Played> {
    let store = stack::open(plan, None)?;
    stack::clear(&store)?;
    let queue = PlayQueue { depth: plan.io_depth, seed: plan.seed };
    play_on(&store, queue, steps, pace, stop)
}

/// How operations get to a device, and what decides the bytes that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayQueue {
    /// Pieces that are with the device at a time.
    pub depth: u32,
    /// What contents follow from.
    pub seed: u64,
}

/// Plays `steps` on one tier with nothing in it.
pub fn play_tier(
    tier: &TierPlan,
    queue: PlayQueue,
    steps: &mut dyn Iterator<Item = Result<Step>>,
    pace: PlayPace,
    stop: &AtomicBool,
) -> Result<Played> {
    let store = stack::open_one(tier)?;
    let played = play_on(&store, queue, steps, pace, stop)?;
    stack::clear(&store)?;
    Ok(played)
}

fn play_on(
    store: &Arc<Store>,
    queue: PlayQueue,
    steps: &mut dyn Iterator<Item = Result<Step>>,
    pace: PlayPace,
    stop: &AtomicBool,
) -> Result<Played> {
    let told = |error| Error::usage(format!("cannot open a queue: {error}"));
    let lane = store.lane(queue.depth as usize).map_err(told)?;
    let (kernel, processor) = (KernelIo::now(), kernel::cpu_seconds());
    let mut player = Player {
        seed: queue.seed,
        lane,
        bytes_max: AHEAD * u64::from(queue.depth) * PIECE as u64,
        bytes: 0,
        busy: HashSet::new(),
        asked: HashMap::new(),
        counts: PlayCounts::default(),
        stop,
        stopped: None,
    };
    let (started, mut latest, mut interrupted) = (Instant::now(), Nanos::ZERO, false);
    for step in steps {
        let step = step?;
        if let PlayPace::Recorded(speedup) = pace {
            let after = Duration::try_from_secs_f64(step.at.as_seconds() / speedup).unwrap_or(FAR);
            let due = started + after.min(FAR);
            player.wait_until(due);
            let late = Instant::now().saturating_duration_since(due);
            latest = latest.max(Nanos(late.as_nanos() as u64));
        }
        let key = Key::from(&*step.key);
        player.make_room(&key);
        interrupted = player.is_to_stop();
        if interrupted {
            break;
        }
        player.begin(&step, key);
    }
    player.drain(0);
    interrupted |= player.counts.given_up > 0;
    let (seconds, meter) = (started.elapsed().as_secs_f64(), player.lane.meter().clone());
    let counts = player.counts;
    drop(player);
    Ok(Played {
        counts,
        meter,
        seconds,
        cpu_seconds: kernel::cpu_seconds() - processor,
        kernel: KernelIo::since(kernel),
        latest,
        notes: store.notes(),
        interrupted,
    })
}

struct Player<'a> {
    seed: u64,
    lane: Lane,
    /// Bytes of what is under way, and how many there may be before another operation begins.
    bytes: u64,
    bytes_max: u64,
    /// Entries that something is being done to.
    busy: HashSet<Key>,
    asked: HashMap<OpId, (Key, u64)>,
    counts: PlayCounts,
    /// Raised to end it, and since when that is known.
    stop: &'a AtomicBool,
    stopped: Option<Instant>,
}

impl Player<'_> {
    fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until an operation on `key` may begin.
    fn make_room(&mut self, key: &Key) {
        while self.busy.contains(key) || self.bytes >= self.bytes_max {
            self.drain(self.asked.len() - 1);
        }
    }

    fn begin(&mut self, step: &Step, key: Key) {
        let op = match step.deed {
            Deed::Read => self.lane.get(key.clone(), Want::Nothing),
            Deed::Delete => self.lane.remove(key.clone()),
            Deed::Write => {
                let payload = Payload::Seeded { seed: self.seed ^ key.fingerprint(), bytes: step.bytes };
                self.lane.put(Put { key: key.clone(), payload, tenant: 0, existing: Existing::Replace })
            }
        };
        self.busy.insert(key.clone());
        // A device moves no less than a block, and what is longer than all room takes it all.
        let bytes = step.bytes.clamp(BLOCK, self.bytes_max);
        self.bytes += bytes;
        self.asked.insert(op, (key, bytes));
        if let Some(done) = self.lane.poll() {
            self.ended(done);
        }
    }

    /// Waits until at most `left` operations are under way. When it is to stop, what is not over soon is
    /// given up.
    fn drain(&mut self, left: usize) {
        while self.asked.len() > left {
            match self.lane.wait_until(Instant::now() + LOOK) {
                Some(done) => self.ended(done),
                None if self.is_to_stop() => {
                    let since = *self.stopped.get_or_insert_with(Instant::now);
                    if since.elapsed() >= GRACE {
                        self.lane.give_up();
                    }
                }
                None => {}
            }
        }
    }

    /// Waits until then, or until it is to stop.
    fn wait_until(&mut self, due: Instant) {
        while Instant::now() < due && !self.is_to_stop() {
            let look = due.min(Instant::now() + LOOK);
            match self.lane.wait_until(look) {
                Some(done) => self.ended(done),
                None => std::thread::sleep(look.saturating_duration_since(Instant::now())),
            }
        }
    }

    fn ended(&mut self, done: Done) {
        let (key, bytes) = self.asked.remove(&done.op).expect("it was asked for");
        self.busy.remove(&key);
        self.bytes -= bytes;
        let counts = &mut self.counts;
        let count = match done.outcome {
            Outcome::Hit(_) => &mut counts.hits,
            Outcome::Missed => &mut counts.misses,
            Outcome::Stored(_) | Outcome::Existed => &mut counts.written,
            Outcome::Removed(true) => &mut counts.deleted,
            Outcome::Removed(false) => &mut counts.absent,
            Outcome::Refused(_) => &mut counts.refused,
            Outcome::Failed(error) if error.kind() == io::ErrorKind::Interrupted => &mut counts.given_up,
            Outcome::Failed(_) => &mut counts.failed,
        };
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetank_model::TierRole;

    use crate::testing::{plan, tier};

    fn steps(text: &str) -> Vec<Result<Step>> {
        let step = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let deed = match words[0] {
                "read" => Deed::Read,
                "write" => Deed::Write,
                _ => Deed::Delete,
            };
            let bytes = words.get(2).map_or(0, |bytes| bytes.parse().unwrap());
            Ok(Step { at: Nanos::ZERO, deed, bytes, key: words[1].into() })
        };
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(step).collect()
    }

    /// Broken by: a sleep until an operation is due that nobody can end, or times that no clock can hold.
    #[test]
    fn what_is_due_in_years_can_be_ended() {
        let far = Step { at: Nanos(u64::MAX), deed: Deed::Read, bytes: 1, key: "a".into() };
        let played = play(
            &Plan { tiers: vec![tier(TierRole::Storage, "memory", Some(1 << 20))], ..plan(1) },
            &mut [Ok(far)].into_iter(),
            PlayPace::Recorded(1e-300),
            &AtomicBool::new(true),
        );
        assert!(played.unwrap().interrupted);
    }

    /// Broken by: an entry that is written to its end whoever wants to stop, lengths that add up to more than
    /// a number holds, or an end that does not say that something was given up.
    #[test]
    fn what_takes_years_can_be_ended() {
        for bytes in [1 << 50, u64::MAX] {
            let stop = AtomicBool::new(false);
            let step = |(key, bytes): (&str, u64)| {
                // The last one is asked for when the one before is under way.
                stop.store(key == "late", Ordering::Relaxed);
                Ok(Step { at: Nanos::ZERO, deed: Deed::Write, bytes, key: key.into() })
            };
            let mut steps = [("short", 1), ("endless", bytes), ("late", 1)].into_iter().map(step);
            let moving = TierPlan { options: Default::default(), ..tier(TierRole::Storage, "null", None) };
            let plan = Plan { tiers: vec![moving], ..plan(1) };
            let played = play(&plan, &mut steps, PlayPace::Max, &stop).unwrap();
            let expected = PlayCounts { written: 1, given_up: 1, ..PlayCounts::default() };
            assert_eq!((played.counts, played.interrupted), (expected, true));
        }
    }

    /// Broken by: two operations on one entry at a time, in the wrong order.
    #[test]
    fn operations_on_one_entry_keep_their_order() {
        let plan = Plan { tiers: vec![tier(TierRole::Storage, "memory", Some(64 << 20))], ..plan(1) };
        let text = "read early\n".to_owned() + &"write a 3000000\nread a\ndelete a\nread a\n".repeat(50);
        let played =
            play(&plan, &mut steps(&text).into_iter(), PlayPace::Max, &AtomicBool::new(false)).unwrap();
        let expected = PlayCounts { hits: 50, misses: 51, written: 50, deleted: 50, ..PlayCounts::default() };
        assert_eq!(played.counts, expected);
        let read = played.meter.gauge(0, wavetank_store::meter::Work::Read);
        assert_eq!((read.count, read.bytes), (50, 150_000_000));
    }
}
