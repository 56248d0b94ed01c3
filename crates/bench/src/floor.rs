//! What the threads of a run share: the queue, who may work, the window, the autoscaler. Held for moments,
//! never across I/O.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use wavetank_model::{
    Answer, BenchEvent, BenchFact, Nanos, Operation, Served, Sink, StoreEvent, StoreFact, TierRole, Touch,
    Why,
};
use wavetank_store::{Events, Store};

use crate::log::Log;
use crate::plan::Plan;
use crate::queue::Queue;
use crate::request::{Name, Phase, Request};
use crate::run::{Ended, Pulse};
use crate::scale::{Action, FEWEST_SERVED, Sample, Scaler};
use crate::sources::Source;

/// Between two looks at the run from outside.
const PULSE: Duration = Duration::from_millis(250);
/// Operations in a row that failed end the run: nothing comes of it any more.
const MOST_FAILURES: u32 = 200;
/// When someone who was turned away comes back.
const RETRY: Nanos = Nanos(100_000_000);

/// The shared state of a run.
pub(crate) struct Floor<'a> {
    plan: &'a Plan,
    source: Box<dyn Source>,
    queue: Queue<Request>,
    store: Arc<Store>,
    events: Events,
    sink: &'a mut (dyn Sink<BenchEvent> + Send),
    stop: &'a AtomicBool,
    log: Option<Log<'a>>,
    opened: bool,
    pub(crate) ended: Option<Ended>,
    /// Requests that came.
    came: u64,
    /// Requests being worked on.
    working: u64,
    users: u32,
    workers: u32,
    /// Entries being written.
    allocs: u32,
    /// Who waits until it may write, by the order they came.
    barred: BTreeSet<Ticket>,
    tickets: Ticket,
    pub(crate) scaler: Option<Scaler>,
    recent: Recent,
    pulse: PulseState,
    failures: u32,
    /// Failures the store reports, also where no request sees them.
    device_failures: Streaks,
}

/// Failures in a row, by tier: what one tier does well says nothing about another.
struct Streaks(Vec<u32>);

/// A place in the line of those who want to write.
pub(crate) type Ticket = u64;

/// What the autoscaler looks at: since the last decision, or since the last one had its effect.
struct Recent {
    since: Nanos,
    next: Nanos,
    settled: bool,
    served: u64,
    turned_away: u64,
    tokens: u64,
    reads: Histogram<u64>,
    writes: Histogram<u64>,
}

struct PulseState {
    next: Instant,
    served: u64,
    tokens: u64,
    latency: Histogram<u64>,
}

/// Latencies in nanoseconds. What is out of bounds is recorded as the bound, so they are wide.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, Nanos::from_seconds(3600.0).0, 3).expect("sound bounds")
}

impl<'a> Floor<'a> {
    pub(crate) fn new(plan: &'a Plan, source: Box<dyn Source>, ground: Ground<'a>) -> Self {
        let Ground { store, events, sink, stop, log } = ground;
        let interval = plan.scaling.map_or(Nanos::MAX, |scaling| scaling.interval);
        Self {
            plan,
            source,
            queue: Queue::new(plan.ageing, plan.queue_limit.map(|limit| limit as usize)),
            store,
            events,
            sink,
            stop,
            log,
            opened: false,
            ended: None,
            came: 0,
            working: 0,
            users: plan.users,
            workers: plan.users.min(plan.workers_max),
            allocs: 0,
            barred: BTreeSet::new(),
            tickets: 0,
            scaler: plan.scaling.map(|scaling| Scaler::new(scaling, plan.users)),
            recent: Recent {
                since: Nanos::ZERO,
                next: plan.warmup + interval,
                settled: true,
                served: 0,
                turned_away: 0,
                tokens: 0,
                reads: histogram(),
                writes: histogram(),
            },
            pulse: PulseState { next: Instant::now() + PULSE, served: 0, tokens: 0, latency: histogram() },
            failures: 0,
            device_failures: Streaks(vec![0; plan.tiers.len()]),
        }
    }

    /// Lets everything happen that is due: the window opens and closes, requests come, users change.
    pub(crate) fn turn(&mut self, now: Nanos) {
        if !self.opened && now >= self.plan.warmup {
            self.opened = true;
            self.say(self.plan.warmup, BenchFact::Opened);
            self.recent.settle(now);
        }
        let end = self.plan.warmup + self.plan.duration;
        if now >= end {
            self.close(end, Ended::Duration);
        }
        self.listen(now);
        if self.ended.is_some() {
            return;
        }
        self.admit(now);
        self.scale(now);
        if self.stop.load(Ordering::Relaxed) {
            self.close(now, Ended::Interrupted);
        } else if let Some(error) = self.log.as_mut().and_then(|log| log.failed.take()) {
            self.close(now, Ended::Failed(format!("the log cannot be written: {error}")));
        } else if self.device_failures.longest() >= MOST_FAILURES {
            let why = format!(
                "a device failed {MOST_FAILURES} times in a row, most likely while entries fell to storage"
            );
            self.close(now, Ended::Failed(why));
        }
    }

    /// Whether what happens is measured, or was.
    pub(crate) fn is_open(&self) -> bool {
        self.opened
    }

    /// Ends the run if everything asked was answered.
    pub(crate) fn end_if_drained(&mut self, now: Nanos) {
        let nothing_comes = !self.takes_more() || self.source.next_at().is_none();
        if nothing_comes && self.working == 0 && self.queue.is_empty() {
            self.close(now, Ended::Drained);
        }
    }

    /// When there is something to do next, if nothing else happens.
    pub(crate) fn next_wake(&self) -> Nanos {
        let edge = if self.opened { self.plan.warmup + self.plan.duration } else { self.plan.warmup };
        let arrival = if self.takes_more() { self.source.next_at() } else { None };
        let settled = self.recent.since.0 + (self.recent.next.0 - self.recent.since.0) / 2;
        let scale = if self.recent.settled { self.recent.next } else { Nanos(settled) };
        arrival.unwrap_or(Nanos::MAX).min(edge).min(scale)
    }

    /// The next request to work on.
    pub(crate) fn assign(&mut self) -> Option<Request> {
        if self.ended.is_some() || self.working >= u64::from(self.workers) {
            return None;
        }
        let request = self.queue.pop()?;
        self.working += 1;
        Some(request)
    }

    /// How many requests one of `threads` threads may work on.
    pub(crate) fn share(&self, threads: u32) -> usize {
        self.workers.div_ceil(threads.max(1)) as usize
    }

    /// A place in the line of those who want to write.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        self.barred.insert(self.tickets);
        self.tickets
    }

    /// Whether the holder of `ticket` may write now; if so it counts until [`Self::written`]. Who came first
    /// goes first, on whatever thread.
    pub(crate) fn may_write(&mut self, ticket: Ticket) -> bool {
        let is_free = self.plan.max_concurrent_allocs.is_none_or(|most| self.allocs < most);
        let is_next = self.barred.first() == Some(&ticket);
        if is_free && is_next {
            self.barred.remove(&ticket);
            self.allocs += 1;
        }
        is_free && is_next
    }

    pub(crate) fn written(&mut self) {
        self.allocs -= 1;
    }

    /// An operation begins.
    pub(crate) fn begins(&mut self, name: Name, operation: Operation, why: Why, phase: Phase) {
        if let Some(log) = &mut self.log {
            log.begin(name, operation, why, phase);
        }
    }

    /// An operation ended.
    pub(crate) fn touched(&mut self, now: Nanos, touch: Touch, failure: Option<io::Error>) {
        self.say(now, BenchFact::Touched(touch));
        match failure {
            Some(error) if error.kind() == io::ErrorKind::StorageFull => {
                self.close(now, Ended::Failed(full(self.plan, &error)));
            }
            Some(error) => {
                self.failures += 1;
                if self.failures >= MOST_FAILURES {
                    self.close(now, Ended::Failed(format!("{MOST_FAILURES} failures in a row: {error}")));
                }
            }
            None if touch.answer != Answer::Missed => self.failures = 0,
            None => {}
        }
    }

    /// A request was served.
    pub(crate) fn served(&mut self, now: Nanos, request: &Request, served: Served) {
        self.working -= 1;
        self.say(now, BenchFact::Served(served));
        self.recent.served += 1;
        self.recent.tokens += u64::from(served.generated_tokens);
        self.pulse.served += 1;
        self.pulse.tokens += u64::from(served.generated_tokens);
        self.pulse.latency.saturating_record(served.total.0);
        self.source.answered(request, now);
    }

    /// Tells what the store said last, after all lanes are gone.
    pub(crate) fn finish(mut self, now: Nanos) -> (Option<Ended>, Option<Scaler>, u64) {
        self.listen(now);
        (self.ended, self.scaler, self.events.lost())
    }

    /// Ends the run.
    pub(crate) fn close(&mut self, at: Nanos, ended: Ended) {
        if self.ended.is_some() {
            return;
        }
        if !self.opened {
            self.opened = true;
            self.say(at, BenchFact::Opened);
        }
        let (in_flight, queued) = (self.working, self.queue.len() as u64);
        self.say(at, BenchFact::Closed { in_flight, queued });
        self.ended = Some(ended);
    }

    fn say(&mut self, at: Nanos, fact: BenchFact) {
        self.sink.record(&BenchEvent { at, fact });
    }

    fn listen(&mut self, now: Nanos) {
        for event in self.events.take() {
            self.sink.record(&BenchEvent { at: now, fact: BenchFact::Stored(event) });
            self.recent.heard(&event, self.plan);
            self.device_failures.heard(event.fact);
            if let Some(log) = &mut self.log {
                log.heard(now, &event);
            }
        }
    }

    fn takes_more(&self) -> bool {
        self.plan.max_requests.is_none_or(|most| self.came < most)
    }

    fn admit(&mut self, now: Nanos) {
        while self.takes_more() && self.source.next_at().is_some_and(|at| at <= now) {
            let request = self.source.take();
            let (class, at) = (request.class, request.at);
            self.came += 1;
            self.say(at, BenchFact::Arrived(class));
            if let Err(request) = self.queue.push(request, self.plan.targets[class as usize].priority, at) {
                self.say(at, BenchFact::TurnedAway(class));
                self.came -= 1;
                self.recent.turned_away += 1;
                self.source.answered(&request, now + RETRY);
            }
        }
    }

    fn scale(&mut self, now: Nanos) {
        let Some(scaler) = &mut self.scaler else { return };
        let recent = &mut self.recent;
        if !recent.settled && now.since(recent.since) >= Nanos((recent.next.0 - recent.since.0) / 2) {
            recent.settle(now);
        }
        if now < recent.next {
            return;
        }
        let sample = recent.sample(now, self.queue.len() as u64);
        let (action, users) = {
            let step = scaler.decide(sample);
            (step.action, step.users)
        };
        if action == Action::Hold && sample.served < FEWEST_SERVED {
            recent.next = now + scaler.scaling.interval;
            return;
        }
        recent.restart(now, scaler.scaling.interval, action == Action::Hold);
        if action == Action::Stop {
            self.close(now, Ended::PeakFound);
        } else if action != Action::Hold {
            self.source.resize(users, now);
            self.users = users;
            self.workers = users.min(self.plan.workers_max);
        }
    }

    /// How it goes, now and then.
    pub(crate) fn pulse(&mut self, now: Nanos) -> Option<Pulse> {
        if Instant::now() < self.pulse.next {
            return None;
        }
        self.pulse.next = Instant::now() + PULSE;
        let fill = self.store.usage().into_iter().zip(&self.plan.tiers);
        let fill = fill.map(|(usage, tier)| (tier.role, usage.bytes, tier.capacity_bytes)).collect();
        Some(Pulse {
            at: now,
            of: self.plan.warmup + self.plan.duration,
            warming: !self.opened || now < self.plan.warmup,
            served: self.pulse.served,
            tokens_per_second: self.pulse.tokens as f64 / now.as_seconds().max(1e-9),
            p95_ms: self.pulse.latency.value_at_quantile(0.95) as f64 / 1e6,
            queued: self.queue.len() as u64,
            users: self.users,
            fill,
        })
    }
}

/// Which drive has no room left.
pub(crate) fn full(plan: &Plan, error: &io::Error) -> String {
    let place = plan.tiers.last().map_or("", |tier| tier.location.as_str());
    format!("the drive is full: {place}: {error}")
}

/// What a floor stands on.
pub(crate) struct Ground<'a> {
    pub(crate) store: Arc<Store>,
    pub(crate) events: Events,
    pub(crate) sink: &'a mut (dyn Sink<BenchEvent> + Send),
    pub(crate) stop: &'a AtomicBool,
    pub(crate) log: Option<Log<'a>>,
}

impl Streaks {
    fn heard(&mut self, fact: StoreFact) {
        match fact {
            StoreFact::Failed { tier } => self.0[usize::from(tier)] += 1,
            // A full drive goes on being read: only what was written there ends a row.
            StoreFact::Stored { tier } => self.0[usize::from(tier)] = 0,
            StoreFact::Demoted { to, .. } | StoreFact::Promoted { to, .. } => self.0[usize::from(to)] = 0,
            _ => {}
        }
    }

    fn longest(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or_default()
    }
}

impl Recent {
    /// How long requests waited for storage, from asking to the end.
    fn heard(&mut self, event: &StoreEvent, plan: &Plan) {
        let is_storage = |tier: u8| plan.tiers[usize::from(tier)].role == TierRole::Storage;
        match event.fact {
            StoreFact::Hit { tier } if is_storage(tier) => {
                self.reads.saturating_record(event.times.total.0);
            }
            StoreFact::Stored { tier } if is_storage(tier) => {
                self.writes.saturating_record(event.times.total.0);
            }
            _ => {}
        }
    }

    fn settle(&mut self, now: Nanos) {
        self.settled = true;
        self.since = now;
        (self.served, self.turned_away, self.tokens) = (0, 0, 0);
        self.reads.reset();
        self.writes.reset();
    }

    fn sample(&self, at: Nanos, queue: u64) -> Sample {
        let p95 =
            |times: &Histogram<u64>| (!times.is_empty()).then(|| times.value_at_quantile(0.95) as f64 / 1e6);
        let seconds = at.since(self.since).as_seconds().max(1e-9);
        Sample {
            at,
            tokens_per_second: self.tokens as f64 / seconds,
            read_p95_ms: p95(&self.reads),
            write_p95_ms: p95(&self.writes),
            queue,
            served: self.served,
            turned_away: self.turned_away,
        }
    }

    fn restart(&mut self, now: Nanos, interval: Nanos, settled: bool) {
        self.settle(now);
        self.next = now + interval;
        self.settled = settled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(facts: impl IntoIterator<Item = StoreFact>) -> u32 {
        let mut streaks = Streaks(vec![0; 2]);
        facts.into_iter().for_each(|fact| streaks.heard(fact));
        streaks.longest()
    }

    /// Broken by: failures that are counted over a whole run, or a storage tier that takes nothing behind
    /// memory that does, or while it is read.
    #[test]
    fn failures_in_a_row_are_those_of_one_tier() {
        let failed = StoreFact::Failed { tier: 1 };
        let moved = [StoreFact::Demoted { from: 0, to: 1 }, StoreFact::Promoted { from: 0, to: 1 }];
        for fact in moved.into_iter().chain([StoreFact::Stored { tier: 1 }]) {
            assert_eq!(after((0..900).flat_map(|_| [failed, fact, failed])), 1, "{fact}");
        }
        let elsewhere = [StoreFact::Stored { tier: 0 }, StoreFact::Demoted { from: 1, to: 0 }];
        let read = [StoreFact::Missed, StoreFact::Evicted { tier: 1 }, StoreFact::Hit { tier: 1 }];
        for fact in elsewhere.into_iter().chain(read) {
            assert_eq!(after((0..900).flat_map(|_| [failed, fact])), 900, "{fact}");
        }
    }
}
