//! One thread of a run: its requests, each at some operation, its lane into the store, and the loop that
//! moves them on.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wavetank_model::{Answer, IoTimes, Nanos, Operation, Served, Touch, Why};
use wavetank_store::{Done, Existing, Flow, Key, Lane, OpId, Outcome, Payload, Put, Want};

use crate::clock::Clock;
use crate::floor::{Floor, Ticket};
use crate::plan::{Plan, Time};
use crate::request::{Name, Request};
use crate::run::Watch;
use crate::worker::{Act, Worker};

/// The longest sleep: other threads may have changed what there is to do.
const NAP: Nanos = Nanos(2_000_000);
/// The longest wait for a device: the window closes meanwhile.
const WAIT: Nanos = Nanos(20_000_000);
/// Ends handled at a time.
const BATCH: usize = 64;

/// One thread's work.
pub(crate) struct Desk<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: &'a Clock,
    pub(crate) lane: Lane,
    slots: Vec<Option<Slot>>,
    vacant: Vec<usize>,
    asked: HashMap<OpId, usize>,
    generating: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Slots that wait until they may write, with what.
    barred: VecDeque<Barred>,
    /// What had gone to each tier when the window opened.
    before: Option<Vec<Flow>>,
}

/// A slot that waits until it may write.
struct Barred {
    ticket: Ticket,
    index: usize,
    doing: Doing,
    tokens: u32,
}

/// A request being worked on.
struct Slot {
    request: Request,
    worker: Worker,
    begun: Nanos,
    storage: Nanos,
    prefill: Option<Nanos>,
    decode: Option<Nanos>,
    generation: Nanos,
    doing: Option<Doing>,
}

/// The operation a request is at.
#[derive(Clone, Copy)]
struct Doing {
    name: Name,
    why: Why,
    operation: Operation,
    /// When it was to begin, and when it did.
    wanted: Nanos,
    begun: Nanos,
}

impl<'a> Desk<'a> {
    pub(crate) fn new(plan: &'a Plan, clock: &'a Clock, lane: Lane) -> Self {
        Self {
            plan,
            clock,
            lane,
            slots: Vec::new(),
            vacant: Vec::new(),
            asked: HashMap::new(),
            generating: BinaryHeap::new(),
            barred: VecDeque::new(),
            before: None,
        }
    }

    /// Works until the run is over, and gives what went to each tier while the window was open; what is at
    /// devices then is finished when the lane is dropped.
    pub(crate) fn work(
        &mut self,
        floor: &Mutex<Floor<'_>>,
        watch: &Mutex<&mut (dyn Watch + Send)>,
    ) -> Vec<Flow> {
        loop {
            let (wake, pulse) = {
                let mut floor = lock(floor);
                let now = self.clock.now();
                floor.turn(now);
                if floor.is_open() && self.before.is_none() {
                    self.before = Some(self.lane.flows());
                }
                self.generated(now, &mut floor);
                self.unbar(&mut floor);
                self.take_on(now, &mut floor);
                floor.end_if_drained(now);
                if floor.ended.is_some() {
                    return self.flows();
                }
                (floor.next_wake(), floor.pulse(now))
            };
            // Whoever watches may be slow, and must not stop the others.
            if let (Some(pulse), Ok(mut watch)) = (pulse, watch.try_lock()) {
                watch.pulse(&pulse);
            }
            let due = self.generating.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at);
            let mut done = self.wait(wake.min(due));
            if !done.is_empty() {
                let mut floor = lock(floor);
                floor.turn(self.clock.now());
                done.drain(..).for_each(|done| self.answered(done, &mut floor));
            }
        }
    }

    /// What went to each tier since the window opened.
    fn flows(&mut self) -> Vec<Flow> {
        let after = self.lane.flows();
        let before = self.before.take().unwrap_or_else(|| after.clone());
        after.iter().zip(&before).map(|(after, before)| after.since(before)).collect()
    }

    /// Waits for operations to end, no longer than until `until`. On a virtual clock operations take no time,
    /// and time goes on when none is under way.
    fn wait(&mut self, until: Nanos) -> Vec<Done> {
        let now = self.clock.now();
        let first = match (self.lane.pending(), self.clock.is_virtual()) {
            (0, true) => {
                self.clock.wait_until(until);
                None
            }
            (0, false) => {
                self.clock.wait_until(until.min(self.longest(now, NAP)));
                None
            }
            // Whoever wants to end it is heard while an operation is under way.
            (_, true) => self.lane.wait_until(Instant::now() + Duration::from_nanos(WAIT.0)),
            (_, false) => {
                // A permit may come from another thread, which does not say so.
                let most = if self.barred.is_empty() { WAIT } else { NAP };
                self.lane.wait_until(self.clock.instant(until.min(self.longest(now, most))))
            }
        };
        let mut done: Vec<Done> = first.into_iter().collect();
        while !done.is_empty() && done.len() < BATCH {
            let Some(next) = self.lane.ready() else { break };
            done.push(next);
        }
        done
    }

    /// Until when to wait at most, for what others may do meanwhile: where devices are modelled nobody does.
    fn longest(&self, now: Nanos, most: Nanos) -> Nanos {
        if self.plan.time == Time::Modelled { Nanos::MAX } else { now + most }
    }

    /// On a virtual clock one operation is under way at a time.
    fn is_occupied(&self) -> bool {
        self.clock.is_virtual() && self.lane.pending() > 0
    }

    fn take_on(&mut self, now: Nanos, floor: &mut Floor<'_>) {
        let most = floor.share(self.plan.lanes().0);
        while self.slots.len() - self.vacant.len() < most && !self.is_occupied() {
            let Some(request) = floor.assign() else { return };
            let worker = Worker::new(&request, self.plan.reads, self.plan.role);
            let slot = Slot {
                request,
                worker,
                begun: now,
                storage: Nanos::ZERO,
                prefill: None,
                decode: None,
                generation: Nanos::ZERO,
                doing: None,
            };
            let index = self.vacant.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
            self.slots[index] = Some(slot);
            self.step(index, floor);
        }
    }

    /// Requests whose tokens are generated by now go on.
    fn generated(&mut self, now: Nanos, floor: &mut Floor<'_>) {
        while !self.is_occupied() && self.generating.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((_, index))) = self.generating.pop() else { return };
            self.step(index, floor);
        }
    }

    fn unbar(&mut self, floor: &mut Floor<'_>) {
        while self.barred.front().is_some_and(|barred| floor.may_write(barred.ticket)) {
            let Some(Barred { index, doing, tokens, .. }) = self.barred.pop_front() else { return };
            self.write(index, doing, tokens, floor);
        }
    }

    /// Goes on with a request until it waits for something.
    fn step(&mut self, index: usize, floor: &mut Floor<'_>) {
        loop {
            let now = self.clock.now();
            let slot = self.slots[index].as_mut().expect("a request is there");
            let doing = |name, why, operation| Doing { name, why, operation, wanted: now, begun: now };
            match slot.worker.next_act() {
                Some(Act::Read { name, why }) => {
                    return self.read(index, doing(name, why, Operation::Read), floor);
                }
                Some(Act::Write { name, tokens, why }) => {
                    let doing = doing(name, why, Operation::Write);
                    let ticket = floor.ticket();
                    if floor.may_write(ticket) {
                        return self.write(index, doing, tokens, floor);
                    }
                    return self.barred.push_back(Barred { ticket, index, doing, tokens });
                }
                Some(Act::Generate(tokens)) => {
                    let time = self.plan.pace.time(tokens);
                    slot.generation += time;
                    if time > Nanos::ZERO {
                        return self.generating.push(Reverse((now + time, index)));
                    }
                }
                None => return self.serve(index, floor),
            }
        }
    }

    fn read(&mut self, index: usize, doing: Doing, floor: &mut Floor<'_>) {
        let key = Key::from(doing.name.to_string().as_str());
        let op = self.lane.get(key, Want::Nothing);
        self.begin(index, op, doing, floor);
    }

    fn write(&mut self, index: usize, doing: Doing, tokens: u32, floor: &mut Floor<'_>) {
        let put = entry(self.plan, doing.name, tokens);
        let doing = Doing { begun: self.clock.now(), ..doing };
        let op = self.lane.put(put);
        self.begin(index, op, doing, floor);
    }

    fn begin(&mut self, index: usize, op: OpId, doing: Doing, floor: &mut Floor<'_>) {
        self.asked.insert(op, index);
        let slot = self.slots[index].as_mut().expect("a request is there");
        slot.doing = Some(doing);
        floor.begins(doing.name, doing.operation, doing.why, slot.request.phase);
    }

    fn answered(&mut self, done: Done, floor: &mut Floor<'_>) {
        let index = self.asked.remove(&done.op).expect("it was asked for");
        let slot = self.slots[index].as_mut().expect("a request is there");
        let doing = slot.doing.take().expect("it was doing something");
        if doing.operation == Operation::Write {
            floor.written();
        }
        let barred = doing.begun.since(doing.wanted);
        let times =
            IoTimes { queue: done.times.queue + barred, total: done.times.total + barred, ..done.times };
        slot.account(doing.why, times.total);
        let (answer, failure) = answer(done.outcome);
        let (Doing { operation, why, name, .. }, bytes) = (doing, done.bytes);
        floor.touched(self.clock.now(), Touch { operation, why, answer, bytes, times }, failure);
        if operation == Operation::Read {
            slot.worker.was_read(name, why, matches!(answer, Answer::Hit(_)));
        }
        if floor.ended.is_none() {
            self.step(index, floor);
        }
    }

    fn serve(&mut self, index: usize, floor: &mut Floor<'_>) {
        let slot = self.slots[index].take().expect("a request is there");
        self.vacant.push(index);
        let now = self.clock.now();
        let Slot { request, begun, storage, prefill, decode, generation, .. } = slot;
        let apart = if self.clock.is_virtual() { storage } else { Nanos::ZERO };
        let served = Served {
            class: request.class,
            waited: begun.since(request.at),
            storage,
            prefill,
            decode,
            generation,
            total: now.since(request.at) + apart,
            context_tokens: request.context_tokens,
            generated_tokens: request.generate_tokens,
        };
        floor.served(now, &request, served);
    }
}

impl Slot {
    fn account(&mut self, why: Why, time: Nanos) {
        self.storage += time;
        let part = match why {
            Why::Prefill => &mut self.prefill,
            Why::Decode => &mut self.decode,
            Why::Prompt | Why::History | Why::Document => return,
        };
        *part = Some(part.unwrap_or(Nanos::ZERO) + time);
    }
}

/// The entry called `name`: its contents follow from the seed and the name.
pub(crate) fn entry(plan: &Plan, name: Name, tokens: u32) -> Put {
    let key = Key::from(name.to_string().as_str());
    let seed = plan.seed ^ key.fingerprint();
    let bytes = u64::from(tokens).saturating_mul(plan.bytes_per_token);
    Put { key, payload: Payload::Seeded { seed, bytes }, tenant: 0, existing: Existing::Keep }
}

fn answer(outcome: Outcome) -> (Answer, Option<io::Error>) {
    match outcome {
        Outcome::Stored(tier) => (Answer::Stored(tier), None),
        Outcome::Existed => (Answer::Existed, None),
        Outcome::Hit(tier) => (Answer::Hit(tier), None),
        Outcome::Missed | Outcome::Removed(_) => (Answer::Missed, None),
        Outcome::Refused(_) => (Answer::Refused, None),
        Outcome::Failed(error) => (Answer::Failed, Some(error)),
    }
}

pub(crate) fn lock<'m, 'a>(floor: &'m Mutex<Floor<'a>>) -> MutexGuard<'m, Floor<'a>> {
    floor.lock().unwrap_or_else(PoisonError::into_inner)
}
