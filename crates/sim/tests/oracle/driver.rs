//! Arrivals and workers in global time order, as spec/replay.md 4 and 5.1 describe the event loop.

use std::collections::BTreeSet;

use wavetank_sim::ConcurrencyUnit;

use crate::case::{Case, LoadCase};
use crate::engine::{Engine, Pass, Sequence};
use crate::history::{End, Histories, History};

/// More passes than any generated case needs.
const MOST_PASSES: usize = 2_000_000;

struct Worker {
    engine: Engine,
    /// The pass in flight and its end.
    busy: Option<(u64, Pass)>,
}

struct Driver<'c> {
    case: &'c Case,
    now: u64,
    workers: Vec<Worker>,
    /// Turns that may be sent: time, session, turn.
    ready: BTreeSet<(u64, usize, usize)>,
    /// The next session a closed loop of sessions begins.
    next_session: usize,
    in_flight: usize,
    /// Session and turn by number of the request.
    sent: Vec<(usize, usize)>,
    histories: Histories,
    passes: usize,
}

/// Runs `case` to its end.
pub(crate) fn run(case: &Case) -> Histories {
    let worker = || Worker { engine: Engine::of(&case.engine), busy: None };
    let mut driver = Driver {
        case,
        now: 0,
        workers: (0..case.workers).map(|_| worker()).collect(),
        ready: BTreeSet::new(),
        next_session: 0,
        in_flight: 0,
        sent: Vec::new(),
        histories: Histories::default(),
        passes: 0,
    };
    driver.open_first();
    while let Some(next) = driver.next_time() {
        assert!(next >= driver.now, "time goes forward");
        driver.now = next;
        driver.drain();
    }
    assert!(driver.workers.iter().all(|worker| !worker.engine.has_work()), "a dead end");
    driver.histories
}

impl Driver<'_> {
    /// Turns that are ready without any completion.
    fn open_first(&mut self) {
        for (number, session) in self.case.sessions.iter().enumerate() {
            match self.case.load {
                LoadCase::Schedule => self.ready.insert((session.start, number, 0)),
                LoadCase::Closed { unit: ConcurrencyUnit::Requests, .. } => self.ready.insert((0, number, 0)),
                LoadCase::Closed { unit: ConcurrencyUnit::Sessions, concurrency } => {
                    let begins = number < concurrency as usize;
                    self.next_session += usize::from(begins);
                    begins && self.ready.insert((0, number, 0))
                }
            };
        }
    }

    /// How many requests may be sent now.
    fn places(&self) -> usize {
        match self.case.load {
            LoadCase::Closed { unit: ConcurrencyUnit::Requests, concurrency } => {
                concurrency as usize - self.in_flight
            }
            _ => usize::MAX,
        }
    }

    fn next_time(&self) -> Option<u64> {
        let arrival = self.ready.first().filter(|_| self.places() > 0).map(|&(at, ..)| at);
        let ends = self.workers.iter().filter_map(|worker| Some(worker.busy.as_ref()?.0));
        arrival.into_iter().chain(ends).min()
    }

    /// Everything that happens at one time. Requests that passes without duration cause to arrive come in a
    /// later round, when every worker with work has started a pass.
    fn drain(&mut self) {
        loop {
            let mut changed = self.complete_passes();
            changed |= self.release_arrivals();
            while self.start_passes() {
                changed = true;
            }
            if !changed {
                return;
            }
        }
    }

    fn complete_passes(&mut self) -> bool {
        let mut changed = false;
        for number in 0..self.workers.len() {
            let due = self.workers[number].busy.as_ref().is_some_and(|&(end, _)| end == self.now);
            if let Some((_, pass)) = due.then(|| self.workers[number].busy.take()).flatten() {
                self.complete(number, &pass);
                changed = true;
            }
        }
        changed
    }

    /// The results of a pass that ends now.
    fn complete(&mut self, worker: usize, pass: &Pass) {
        let now = self.now;
        for &id in &pass.emitted {
            self.history(id).tokens.push(now);
        }
        for &id in &pass.completed {
            self.end(id, worker, End::Completed);
        }
        for &(id, reason) in &pass.rejected {
            self.end(id, worker, End::Rejected(reason));
        }
    }

    /// A request is over: the next turn of its session, or the next session, becomes ready.
    fn end(&mut self, id: u32, worker: usize, end: End) {
        let now = self.now;
        self.history(id).ends.push((now, worker as u32, end));
        self.in_flight -= 1;
        let (session, turn) = self.sent[id as usize];
        if turn + 1 < self.case.sessions[session].turns.len() {
            let think = self.case.sessions[session].turns[turn].think;
            self.ready.insert((now + think, session, turn + 1));
        } else if let LoadCase::Closed { unit: ConcurrencyUnit::Sessions, .. } = self.case.load
            && self.next_session < self.case.sessions.len()
        {
            self.ready.insert((now, self.next_session, 0));
            self.next_session += 1;
        }
    }

    /// Sends what is ready, as many as there are places; round robin chooses the workers.
    fn release_arrivals(&mut self) -> bool {
        let due = self.ready.iter().copied().take_while(|&(at, ..)| at <= self.now);
        let batch: Vec<_> = due.take(self.places()).collect();
        for &(at, session, turn) in &batch {
            self.ready.remove(&(at, session, turn));
            let id = self.sent.len() as u32;
            self.sent.push((session, turn));
            self.in_flight += 1;
            let arrived = if self.case.load == LoadCase::Schedule { at } else { self.now };
            let history = History { number: id, arrived, ..History::default() };
            self.histories.insert((session as u32, turn as u32), history);
            let worker = self.worker_of(id as usize);
            let (tokens, output) = self.case.tokens(session, turn);
            self.workers[worker].engine.submit(Sequence::of(id, tokens, output));
        }
        !batch.is_empty()
    }

    fn worker_of(&self, number: usize) -> usize {
        number % self.workers.len()
    }

    /// Each worker that is between passes and has work starts one. A pass without duration ends at once.
    fn start_passes(&mut self) -> bool {
        let mut changed = false;
        for number in 0..self.workers.len() {
            let worker = &mut self.workers[number];
            if worker.busy.is_some() || !worker.engine.has_work() {
                continue;
            }
            self.passes += 1;
            assert!(self.passes < MOST_PASSES, "the case never ends");
            let pass = worker.engine.pass();
            changed = true;
            self.begin(number, &pass);
            if pass.duration == 0 {
                self.complete(number, &pass);
            } else {
                self.workers[number].busy = Some((self.now + pass.duration, pass));
            }
        }
        changed
    }

    /// What is visible at the start of a pass.
    fn begin(&mut self, worker: usize, pass: &Pass) {
        let now = self.now;
        for &(id, reused) in &pass.admitted {
            self.history(id).admitted.push((now, worker as u32, reused));
        }
        for &id in &pass.preempted {
            self.history(id).preempted.push((now, worker as u32));
        }
    }

    fn history(&mut self, id: u32) -> &mut History {
        let (session, turn) = self.sent[id as usize];
        self.histories.get_mut(&(session as u32, turn as u32)).expect("it arrived")
    }
}
