//! What every engine has around its scheduler: the clock of its passes, stretches of passes advanced at once,
//! signals and the record of its work. An engine implements [`Scheduler`] and is an [`Engine`] by that.

use std::rc::Rc;

use wavetank_cache::{Change, ChangeLog};
use wavetank_model::{Nanos, RequestId, Result, ServeEvent, ServeSink, WorkerId};

use crate::arena::Slot;
use crate::engines::{Backlog, Engine, Horizon, Job, Occupancy, Seat, Signal, Work};
use crate::pace::Pace;
use crate::stretch::{Advance, Course, Stretch};
use crate::tiers::Stack;
use crate::timing::DecodeBatch;

/// The state around a scheduler.
pub(crate) struct Shell {
    pub(crate) worker: WorkerId,
    pub(crate) pace: Pace,
    /// End of the last pass: the next one starts here.
    pub(crate) boundary: Nanos,
    /// Whether a pass would have ended beyond the horizon: nothing more happens here.
    pub(crate) halted: bool,
    pub(crate) stretch: Stretch,
    pub(crate) signals: Vec<Signal>,
    pub(crate) work: Work,
    /// Requests that get a token from the pass or stretch at hand.
    pub(crate) emitting: Vec<RequestId>,
    /// Requests submitted since the last pass began.
    unseen: Vec<RequestId>,
    /// Where KV goes behind the GPU's memory, if anywhere.
    pub(crate) tiers: Option<Box<Stack>>,
}

impl Shell {
    pub(crate) fn of(seat: Seat<'_>) -> Self {
        Self {
            worker: seat.worker,
            pace: Pace::of(seat.config, Rc::clone(seat.timing)),
            boundary: Nanos::ZERO,
            halted: false,
            stretch: Stretch::default(),
            signals: Vec::new(),
            work: Work::default(),
            emitting: Vec::new(),
            unseen: Vec::new(),
            tiers: None,
        }
    }

    /// A request was handed over and is not seen before the next pass.
    pub(crate) fn note_submitted(&mut self, request: RequestId) {
        self.unseen.push(request);
    }

    /// A request has left: nothing more is told of it, and the batch may have changed.
    fn forget(&mut self, request: RequestId) {
        self.unseen.retain(|&other| other != request);
        self.signals.retain(|&signal| signal != Signal::Prefilled(request));
        self.stretch.forget();
    }

    /// When something may happen that a load waits for; the end of time if there is none.
    fn next_load(&self) -> Nanos {
        self.tiers.as_ref().and_then(|tiers| tiers.next()).unwrap_or(Nanos::MAX)
    }

    /// Reports the requests the engine sees for the first time now, between passes.
    pub(crate) fn tell_queued(&mut self, sink: &mut ServeSink<'_>) {
        let (worker, at) = (self.worker, self.boundary);
        for request in self.unseen.drain(..) {
            sink.record(&ServeEvent::RequestQueued { request, worker, at });
        }
    }

    /// Reports one token for each of `emitting` at the end of a single pass.
    pub(crate) fn tell_tokens(&mut self, start: Nanos, end: Nanos, sink: &mut ServeSink<'_>) {
        let (worker, requests) = (self.worker, &self.emitting);
        if !requests.is_empty() {
            sink.record(&ServeEvent::TokensEmitted { worker, start, steps: &[end - start], requests });
        }
        self.emitting.clear();
    }

    /// Reports a token for each of `emitting` at the end of each of the next `count` passes of the stretch.
    fn tell_stretch(&mut self, start: Nanos, count: u32, sink: &mut ServeSink<'_>) {
        let (worker, steps, requests) = (self.worker, self.stretch.steps(count), &self.emitting);
        self.work.busy += steps.iter().copied().sum();
        self.work.advanced_passes += u64::from(count);
        sink.record(&ServeEvent::TokensEmitted { worker, start, steps, requests });
        self.stretch.done(count);
        self.emitting.clear();
    }
}

/// The part of an engine that decides.
pub(crate) trait Scheduler {
    /// The state around it.
    fn shell(&self) -> &Shell;

    /// The same, to change it.
    fn shell_mut(&mut self) -> &mut Shell;

    /// Puts a job into the queue.
    fn enqueue(&mut self, job: Job);

    /// See [`Engine::cancel`].
    fn drop_request(&mut self, request: RequestId) -> bool;

    /// Whether there is nothing to do, or nothing before somebody else gives up room.
    fn is_idle(&self) -> bool;

    /// One pass, through all the rules. It moves the boundary, or halts if it would end after `ends_by`.
    fn step(&mut self, ends_by: Nanos, sink: &mut ServeSink<'_>) -> Result<()>;

    /// How many passes can be advanced together now; the last of them may finish requests.
    fn uneventful_passes(&self) -> u32;

    /// The batch that decodes in these passes.
    fn decode_batch(&self) -> DecodeBatch;

    /// When the first of these passes ends, if it is in flight already.
    fn in_flight(&self) -> Option<Nanos> {
        None
    }

    /// The passes that were in flight are over, and the next one runs until `end`.
    fn take_off(&mut self, _end: Nanos) {}

    /// Enters `count` tokens into every running request and fills `emitting` and the signals of those that
    /// have all their tokens. Tells whether any has.
    fn grow_all(&mut self, count: u32) -> bool;

    /// Lets the requests go that have all their tokens.
    fn finish(&mut self, end: Nanos, sink: &mut ServeSink<'_>);

    /// See [`Engine::reserve`].
    fn reserve_blocks(&mut self, job: &Job) -> Option<u32>;

    /// See [`Engine::activate`].
    fn enqueue_reserved(&mut self, request: RequestId);

    /// See [`Engine::release`].
    fn release_held(&mut self, request: RequestId);

    /// See [`Engine::hold_back`].
    fn note_backlog(&mut self, reservations: Backlog);

    /// See [`Engine::is_held_back`].
    fn waits_for_reservations(&self) -> bool;

    /// Requests that waited for a load have it: they are the first to be looked at, in their order.
    fn readmit(&mut self, loaded: &[Slot]);

    /// Keeps what is needed for tiers that are there now.
    fn meet_tiers(&mut self);

    /// Writes to tiers what `count` passes that began at `start` completed or took the place of; they are
    /// entered, and priced next.
    fn write_passes(&mut self, start: Nanos, count: u32);

    /// Blocks that requests use.
    fn blocks_in_use(&self) -> u32;

    /// See [`Engine::occupancy`].
    fn requests(&self) -> Occupancy;

    /// What changed in the cache.
    fn log(&mut self) -> &mut ChangeLog;

    /// Makes a change at `now`. A worker that has something to do only by that starts its next pass then.
    fn rouse(&mut self, now: Nanos, change: impl FnOnce(&mut Self))
    where
        Self: Sized,
    {
        let idle = self.is_idle();
        change(self);
        if idle && !self.is_idle() {
            let shell = self.shell_mut();
            shell.boundary = shell.boundary.max(now);
        }
    }

    /// Advances up to `most` passes, to the horizon.
    fn stretch(&mut self, most: u32, horizon: Horizon, sink: &mut ServeSink<'_>) {
        let (batch, in_flight) = (self.decode_batch(), self.in_flight());
        let Shell { stretch, pace, boundary, halted, .. } = self.shell_mut();
        let (start, course) = (*boundary, Course { pace, batch, most });
        stretch.prime(in_flight.map(|end| end - start));
        let Advance { count, end, halted: halts } = stretch.advance(course, start, horizon);
        (*boundary, *halted) = (end, halts);
        if in_flight.is_some() && count > 0 {
            let next = stretch.step_after(course, count);
            self.take_off(end + next);
        }
        // A pass that ends beyond the horizon is still in flight there: its changes must stay apart.
        if end > horizon.starts_before && count > 1 && self.log().is_kept() {
            let last = self.shell().stretch.steps(count)[count as usize - 1];
            self.book(start, count - 1, sink);
            self.book(Nanos(end.0 - last.0), 1, sink);
        } else {
            self.book(start, count, sink);
        }
    }

    /// Enters `count` passes that began at `start`.
    fn book(&mut self, start: Nanos, count: u32, sink: &mut ServeSink<'_>) {
        if count == 0 {
            return;
        }
        self.log().settle();
        let finishing = self.grow_all(count);
        if self.shell().tiers.is_some() {
            self.write_passes(start, count);
        }
        self.shell_mut().tell_stretch(start, count, sink);
        if finishing {
            self.shell_mut().stretch.forget();
            self.finish(self.shell().boundary, sink);
        }
    }

    /// Requests whose loads have ended by the next pass come back.
    fn receive_loads(&mut self, sink: &mut ServeSink<'_>) {
        let Shell { tiers: Some(tiers), boundary, .. } = self.shell_mut() else { return };
        if !tiers.is_loading() {
            return;
        }
        let mut loaded = Vec::new();
        tiers.settle(*boundary, sink);
        tiers.take_ended(*boundary, &mut loaded, sink);
        if !loaded.is_empty() {
            self.readmit(&loaded);
        }
    }

    /// A worker with nothing to do looks at what is loaded for it, before `starts_before`. Tells whether
    /// there was anything to look at.
    fn await_load(&mut self, starts_before: Nanos, sink: &mut ServeSink<'_>) -> bool {
        let Shell { tiers: Some(tiers), boundary, .. } = self.shell_mut() else { return false };
        let Some(at) = tiers.next().filter(|&at| at < starts_before) else { return false };
        tiers.settle(at, sink);
        *boundary = tiers.ended().map_or(*boundary, |end| end.max(*boundary));
        true
    }
}

impl<S: Scheduler> Engine for S {
    fn submit(&mut self, job: Job, now: Nanos) {
        self.shell_mut().note_submitted(job.id);
        self.rouse(now, |engine| engine.enqueue(job));
    }

    fn cancel(&mut self, request: RequestId, now: Nanos) -> bool {
        let mut was_there = false;
        self.rouse(now, |engine| was_there = engine.drop_request(request));
        if was_there {
            self.shell_mut().forget(request);
        }
        was_there
    }

    fn advance(&mut self, horizon: Horizon, sink: &mut ServeSink<'_>) -> Result<()> {
        while self.shell().boundary < horizon.starts_before && self.shell().signals.is_empty() {
            self.receive_loads(sink);
            if self.shell().halted {
                break;
            }
            if self.is_idle() {
                match self.await_load(horizon.starts_before, sink) {
                    true => continue,
                    false => break,
                }
            }
            self.shell_mut().tell_queued(sink);
            let start = self.shell().boundary;
            match self.uneventful_passes() {
                0 => self.step(horizon.ends_by, sink)?,
                most => {
                    let starts_before = self.shell().next_load().min(horizon.starts_before);
                    self.stretch(most, Horizon { starts_before, ..horizon }, sink);
                }
            }
            let (worker, end) = (self.shell().worker, self.shell().boundary);
            if end > start {
                let blocks_in_use = self.blocks_in_use();
                sink.record(&ServeEvent::PassesRan { worker, start, end, blocks_in_use });
            }
        }
        Ok(())
    }

    fn wake(&mut self) -> Option<Nanos> {
        if !self.shell().signals.is_empty() {
            return Some(self.shell().boundary);
        }
        if self.shell().halted {
            return None;
        }
        let loads = self.shell().tiers.as_ref();
        if loads.is_some_and(|tiers| tiers.ended().is_some()) {
            return Some(self.shell().boundary);
        }
        if self.is_idle() {
            return loads.and_then(|tiers| tiers.next());
        }
        let next_load = self.shell().next_load();
        let (most, batch, in_flight) = (self.uneventful_passes(), self.decode_batch(), self.in_flight());
        let Shell { stretch, pace, boundary, .. } = self.shell_mut();
        stretch.prime(in_flight.map(|end| end.since(*boundary)));
        let course = Course { pace, batch, most };
        Some(match most {
            0 => *boundary,
            _ if next_load <= *boundary => *boundary,
            _ if next_load < Nanos::MAX => stretch.end_of_start(course, *boundary, next_load),
            _ => stretch.end_of_plan(course, *boundary),
        })
    }

    fn take_signals(&mut self, into: &mut Vec<Signal>) -> bool {
        let signals = &mut self.shell_mut().signals;
        let any = !signals.is_empty();
        into.append(signals);
        any
    }

    fn watch_cache(&mut self) {
        self.log().keep();
    }

    fn take_changes(&mut self, now: Nanos, into: &mut Vec<Change>) {
        match self.shell().boundary <= now {
            true => self.log().take(into),
            false => self.log().take_settled(into),
        }
    }

    fn boundary(&self) -> Nanos {
        self.shell().boundary
    }

    fn reserve(&mut self, job: &Job) -> Option<u32> {
        self.reserve_blocks(job)
    }

    fn activate(&mut self, request: RequestId, now: Nanos) {
        self.rouse(now, |engine| engine.enqueue_reserved(request));
    }

    fn release(&mut self, request: RequestId, now: Nanos) {
        self.rouse(now, |engine| engine.release_held(request));
    }

    fn hold_back(&mut self, reservations: Backlog, now: Nanos) {
        self.rouse(now, |engine| engine.note_backlog(reservations));
    }

    fn is_held_back(&self) -> bool {
        self.waits_for_reservations()
    }

    fn occupancy(&self) -> Occupancy {
        self.requests()
    }

    fn attach_tiers(&mut self, tiers: Stack) {
        self.shell_mut().tiers = Some(Box::new(tiers));
        self.meet_tiers();
    }

    fn may_ask_tiers(&self) -> bool {
        let is_loading = |tiers: &Stack| tiers.is_loading();
        self.requests().waiting > 0 || self.shell().tiers.as_deref().is_some_and(is_loading)
    }

    fn settle_tiers(&mut self, now: Nanos, sink: &mut ServeSink<'_>) {
        let idle = self.is_idle();
        let Shell { tiers: Some(tiers), boundary, .. } = self.shell_mut() else { return };
        tiers.settle(now, sink);
        if idle && let Some(end) = tiers.ended() {
            *boundary = end.max(*boundary);
        }
    }

    fn work(&self) -> Work {
        Work { blocks_in_use: u64::from(self.blocks_in_use()), ..self.shell().work }
    }
}
