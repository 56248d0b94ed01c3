//! One thread's way into the store: operations go in, their ends come out, many at a time.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavetank_model::{IoTimes, StoreEvent, StoreFact};

use crate::backend::{Birth, Completion};
use crate::bus::Voice;
use crate::flow::Flow;
use crate::index::Stored;
use crate::job::{Done, Job, OpId, Outcome, Put, Request, nanos};
use crate::key::{KEY_BYTES_MAX, Key};
use crate::meter::{Meter, Work};
use crate::pipes::{Fed, Pipes, Tag, Way};
use crate::store::Store;
use crate::transfer::{Source, Target, Transfer, Want};

/// How long an operation waits for room that others are about to give back, and one that nobody waits for may
/// take to its end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to sleep when all that is left to do is to wait for such room.
const PAUSE: Duration = Duration::from_micros(200);

/// Whether an operation may wait for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It may.
    Left,
    /// It has waited long enough, or all is given up.
    Out,
}

/// One thread's operations.
///
/// Operations begin in the order they are asked for; each is planned (its place, what makes room for it) when
/// it begins, and as many are under way as the lane's depth allows.
pub struct Lane {
    pub(crate) store: Arc<Store>,
    pub(crate) pipes: Pipes,
    pub(crate) meter: Meter,
    voice: Voice,
    pub(crate) number: u32,
    next_op: OpId,
    asked: VecDeque<(OpId, Instant, Request)>,
    pub(crate) jobs: Vec<Option<Job>>,
    vacant: Vec<usize>,
    /// Jobs with pieces to begin, in order.
    pub(crate) feeding: VecDeque<usize>,
    /// Jobs that wait for room.
    blocked: VecDeque<usize>,
    done: VecDeque<Done>,
    /// Where bytes that are read may go.
    lent: Vec<Vec<u8>>,
    pub(crate) unremoved: u64,
    /// Nothing is begun any more, and nothing waits for room.
    has_given_up: bool,
}

impl Lane {
    pub(crate) fn new(store: Arc<Store>, pipes: Pipes) -> Self {
        Self {
            meter: Meter::new(store.backends.len()),
            voice: store.bus.voice(),
            number: store.next_lane(),
            store,
            pipes,
            next_op: 0,
            asked: VecDeque::new(),
            jobs: Vec::new(),
            vacant: Vec::new(),
            feeding: VecDeque::new(),
            blocked: VecDeque::new(),
            done: VecDeque::new(),
            lent: Vec::new(),
            unremoved: 0,
            has_given_up: false,
        }
    }

    /// Asks for an entry to be written.
    pub fn put(&mut self, put: Put) -> OpId {
        self.ask(Request::Put(put, None))
    }

    /// Asks for an entry to be written whose writes are numbered elsewhere, over several stores: of two
    /// entries of one key the one with the higher number is the later.
    pub fn put_born(&mut self, put: Put, birth: Birth) -> OpId {
        self.ask(Request::Put(put, Some(birth)))
    }

    /// Asks for an entry to be read.
    pub fn get(&mut self, key: Key, want: Want) -> OpId {
        self.ask(Request::Get { key, want })
    }

    /// Asks for an entry to be removed.
    pub fn remove(&mut self, key: Key) -> OpId {
        self.ask(Request::Remove(key))
    }

    /// Lends a buffer: the next entry of its length that is read for its bytes comes in it. Without one each
    /// is new memory, which the kernel has to clear first.
    pub fn lend(&mut self, buffer: Vec<u8>) {
        self.lent.push(buffer);
    }

    /// Gives back the buffers that were lent and not used.
    pub fn take_back(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.lent)
    }

    /// Where an entry of `len` bytes goes that is read.
    pub(crate) fn room(&mut self, len: usize) -> Vec<u8> {
        let place = self.lent.iter().position(|buffer| buffer.len() == len);
        place.map_or_else(|| vec![0; len], |place| self.lent.swap_remove(place))
    }

    /// How many operations were asked for and have not been given back.
    pub fn pending(&self) -> usize {
        self.asked.len() + self.jobs.len() - self.vacant.len() + self.done.len()
    }

    /// Goes on with what there is to do and gives an operation that ended, without waiting for devices.
    pub fn poll(&mut self) -> Option<Done> {
        if self.done.is_empty() {
            self.turn(None);
        }
        self.done.pop_front()
    }

    /// An operation that ended while another was waited for; no work is done for it.
    pub fn ready(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// The next operation to end; `None` when there is none.
    pub fn wait(&mut self) -> Option<Done> {
        while self.done.is_empty() && self.pending() > 0 {
            self.turn(Some(self.now() + Duration::from_secs(1)));
        }
        self.done.pop_front()
    }

    /// As [`Self::wait`], no longer than until `deadline`.
    pub fn wait_until(&mut self, deadline: Instant) -> Option<Done> {
        while self.done.is_empty() && self.pending() > 0 && self.now() < deadline {
            self.turn(Some(deadline));
        }
        self.done.pop_front()
    }

    /// Gives up, for good, what was asked for and has pieces to begin: it ends as failed as soon as those at
    /// devices are back, and leaves nothing half-written. What was on its way to a slower tier is lost.
    pub fn give_up(&mut self) {
        self.has_given_up = true;
        for (op, asked, _) in std::mem::take(&mut self.asked) {
            let times = IoTimes { total: nanos(self.store.clock.since(asked)), ..IoTimes::default() };
            let outcome = Outcome::Failed(given_up());
            self.done.push_back(Done { op, outcome, bytes: 0, data: None, times });
        }
        let moving = self.jobs.iter_mut().flatten().filter_map(|job| job.current.as_mut());
        moving.for_each(|(_, transfer)| transfer.give_up(given_up()));
    }

    /// What was measured so far.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// How long its thread slept until devices were done with something, since it was asked first: from then
    /// on that is counted.
    pub fn asleep(&mut self) -> Duration {
        self.pipes.asleep()
    }

    /// What went to each tier so far, as its device sees it.
    pub fn flows(&mut self) -> Vec<Flow> {
        self.pipes.flows()
    }

    /// How many copies could not be removed from their device, which then still takes room there.
    pub fn unremoved(&self) -> u64 {
        self.unremoved
    }

    fn ask(&mut self, request: Request) -> OpId {
        self.next_op += 1;
        self.asked.push_back((self.next_op, self.now(), request));
        self.next_op
    }

    pub(crate) fn now(&self) -> Instant {
        self.store.clock.now()
    }

    /// A transfer that begins now.
    pub(crate) fn transfer(
        &self,
        entry: &Arc<Stored>,
        (source, target): (Source, Option<Target>),
        want: Option<Want>,
    ) -> Transfer {
        let mut transfer = Transfer::new(self.store.load(entry), source, target, want, self.now());
        if self.has_given_up {
            transfer.give_up(given_up());
        }
        transfer
    }

    /// One round: begin what there is room for, take what is done.
    fn turn(&mut self, deadline: Option<Instant>) {
        self.send_ready();
        self.retry_blocked();
        self.feed();
        while self.feeding.is_empty() && self.blocked.is_empty() && self.begin_next() {
            self.feed();
        }
        let deadline = if self.done.is_empty() { deadline } else { None };
        let mut done = self.pipes.reap(deadline);
        self.keep_busy();
        for completion in done.drain(..) {
            self.completed(completion);
        }
        self.pipes.recycle(done);
        if !self.pipes.is_busy() && !self.blocked.is_empty() && self.done.is_empty() {
            let clock = &self.store.clock;
            clock.wait_until(clock.now() + PAUSE);
        }
    }

    /// Gives devices what is at hand before their completions are looked at, which may take a while.
    fn keep_busy(&mut self) {
        self.send_ready();
        while self.feeding.is_empty()
            && !self.pipes.is_full()
            && matches!(self.asked.front(), Some((_, _, Request::Get { .. })))
            && self.begin_next()
        {
            self.feed();
        }
        self.pipes.flush();
    }

    fn send_ready(&mut self) {
        while let Some((index, part, buffer)) = self.pipes.next_ready() {
            let transfer = transfer_of(&mut self.jobs, index);
            self.pipes.write(index, transfer, part, buffer);
        }
    }

    fn feed(&mut self) {
        while let Some(&index) = self.feeding.front() {
            let transfer = transfer_of(&mut self.jobs, index);
            if !transfer.has_more() {
                self.feeding.pop_front();
                // One that was given up with nothing at devices hears of no completion.
                if transfer.is_over() {
                    self.end_step(index);
                }
            } else if self.pipes.feed(index, transfer) == Fed::Full {
                return;
            }
        }
    }

    /// Plans the next operation asked for. `false` when there is none.
    fn begin_next(&mut self) -> bool {
        let Some((op, asked, request)) = self.asked.pop_front() else { return false };
        self.pipes.flush();
        if let Some(refused) = refuse((op, self.store.clock.since(asked)), &request) {
            self.done.push_back(refused);
            return true;
        }
        let key = request.key().fingerprint();
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        let job = Job::plan(&self.store, self.store.voice(self.number, index), (op, asked), request);
        self.say_planned(&job, key);
        self.jobs[index] = Some(job);
        self.step(index);
        true
    }

    /// Says what is known of an operation as soon as it is planned.
    fn say_planned(&self, job: &Job, key: u64) {
        let fact = match job.outcome {
            Outcome::Existed => StoreFact::Existed,
            Outcome::Missed if job.steps.is_empty() => StoreFact::Missed,
            Outcome::Removed(true) => StoreFact::Removed,
            Outcome::Refused(_) => StoreFact::Refused,
            _ => return,
        };
        self.say(key, job.bytes, fact, job.times);
    }

    pub(crate) fn say(&self, key: u64, bytes: u64, fact: StoreFact, times: IoTimes) {
        let at = nanos(self.store.clock.since(self.store.opened));
        self.voice.say(StoreEvent { at, key, bytes, fact, times });
    }

    pub(crate) fn block(&mut self, index: usize) {
        self.blocked.push_back(index);
    }

    fn retry_blocked(&mut self) {
        for _ in 0..self.blocked.len() {
            let Some(index) = self.blocked.pop_front() else { return };
            self.step(index);
        }
    }

    /// Whether a job that waits for room since then goes on waiting.
    pub(crate) fn patience(&self, since: Instant) -> Patience {
        let is_out = self.has_given_up || self.store.clock.since(since) >= PATIENCE;
        if is_out { Patience::Out } else { Patience::Left }
    }

    fn completed(&mut self, completion: Completion) {
        let Tag { job: index, part, way } = Tag::of(completion.token);
        let transfer = transfer_of(&mut self.jobs, index);
        transfer.watch.came_back(completion.finished);
        let part = transfer.part(part);
        match (way, completion.result) {
            (Way::Write, result) => transfer.written(result),
            (Way::Read, Err(e)) => transfer.landed(Err(e)),
            (Way::Read, Ok(())) => {
                let start = self.store.clock.now();
                let result = transfer.arrived(part, transfer.contents(part, &completion.buffer));
                transfer.watch.worked(self.store.clock.since(start));
                if result.is_ok() && transfer.goes_on() {
                    return self.pipes.write(index, transfer, part, completion.buffer);
                }
                transfer.landed(result);
            }
        }
        if transfer.is_over() {
            self.feeding.retain(|feeding| *feeding != index);
            self.end_step(index);
        }
    }

    /// Gives a finished job to the caller.
    pub(crate) fn conclude(&mut self, index: usize) {
        let job = self.jobs[index].take().expect("it was under way");
        self.vacant.push(index);
        if let Some(claim) = &job.claim {
            self.store.index.disclaim(claim);
        }
        self.done.push_back(job.finish(self.store.clock.now()));
    }

    /// Measures a step.
    pub(crate) fn record(&mut self, tier: u8, work: Work, bytes: u64, times: IoTimes) {
        self.meter.record(tier, work, bytes, times);
    }
}

impl Request {
    fn key(&self) -> &Key {
        match self {
            Self::Put(put, _) => &put.key,
            Self::Get { key, .. } | Self::Remove(key) => key,
        }
    }
}

fn transfer_of(jobs: &mut [Option<Job>], index: usize) -> &mut Transfer {
    let job = jobs[index].as_mut().expect("a piece belongs to a job");
    &mut job.current.as_mut().expect("a piece belongs to a transfer").1
}

impl Drop for Lane {
    /// What was begun is finished, or given up if that takes too long, so that no entry stays half-written;
    /// what was only asked for is dropped.
    fn drop(&mut self) {
        self.asked.clear();
        let patience_ends = Instant::now() + PATIENCE;
        while self.jobs.len() > self.vacant.len() && !std::thread::panicking() {
            if Instant::now() > patience_ends {
                self.give_up();
            }
            self.done.clear();
            self.turn(Some(self.now() + Duration::from_secs(1)));
        }
    }
}

fn given_up() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "it was given up before its end")
}

/// What cannot be asked for.
fn refuse((op, waited): (OpId, Duration), request: &Request) -> Option<Done> {
    let len = request.key().bytes().len();
    let why = format!("a key of {len} bytes is longer than {KEY_BYTES_MAX}");
    let times = IoTimes { total: nanos(waited), ..IoTimes::default() };
    let outcome = Outcome::Failed(io::Error::new(io::ErrorKind::InvalidInput, why));
    (len > KEY_BYTES_MAX).then_some(Done { op, outcome, bytes: 0, data: None, times })
}
