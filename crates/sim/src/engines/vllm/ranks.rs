//! Data-parallel ranks: several schedulers behind one door whose passes begin and end together, because their
//! experts are spread over all of them (spec/vllm-timing.md 4.3). A rank without work runs along.

use std::collections::VecDeque;

use wavetank_cache::Change;
use wavetank_model::{Nanos, RequestId, Result, ServeEvent, ServeSink};

use super::Vllm;
use super::ahead::DEPTH;
use crate::engines::{Backlog, Engine, Horizon, Job, Occupancy, Seat, Signal, Work};
use crate::shell::Scheduler;
use crate::timing::Pass;

pub(super) struct Ranks {
    ranks: Vec<Vllm>,
    boundary: Nanos,
    halted: bool,
    signals: Vec<Signal>,
    /// What the ranks said at the ends of passes: requests waiting and running.
    said: VecDeque<(Nanos, Vec<Occupancy>)>,
    /// What is known of them where requests are sent, and since when.
    known: (Nanos, Vec<Occupancy>),
    /// What was sent since and counts there, with its rank.
    sent: Vec<(RequestId, usize)>,
}

/// A waiting request counts as much as four that run.
fn weight(load: Occupancy) -> u32 {
    4 * load.waiting + load.running
}

/// How often the load of the ranks is told.
const TOLD_EVERY: Nanos = Nanos(100_000_000);

impl Ranks {
    pub(super) fn build(seat: Seat<'_>) -> Self {
        let count = seat.config.data_parallel_ranks as usize;
        Self {
            ranks: (0..count).map(|_| Vllm::build(seat)).collect(),
            boundary: Nanos::ZERO,
            halted: false,
            signals: Vec::new(),
            said: VecDeque::new(),
            known: (Nanos::ZERO, vec![Occupancy::default(); count]),
            sent: Vec::new(),
        }
    }

    fn is_idle(&self) -> bool {
        self.ranks.iter().all(|rank| rank.is_idle() && rank.flights.is_empty())
    }

    /// The least loaded rank by what was told last and what was sent since.
    fn choose(&mut self, request: RequestId, now: Nanos) -> usize {
        let told = Nanos(now.0 / TOLD_EVERY.0 * TOLD_EVERY.0);
        if told > self.known.0 {
            self.known.0 = told;
            while self.said.front().is_some_and(|(at, _)| *at <= told) {
                self.known.1 = self.said.pop_front().expect("there is one").1;
                self.sent.clear();
            }
        }
        let loads = &mut self.known.1;
        let rank = (0..loads.len()).min_by_key(|&rank| weight(loads[rank])).expect("there are ranks");
        loads[rank].waiting += 1;
        self.sent.push((request, rank));
        rank
    }

    /// A request that was dropped does not count where the next ones are sent.
    fn take_back(&mut self, request: RequestId) {
        if let Some(position) = self.sent.iter().position(|&(sent, _)| sent == request) {
            let (_, rank) = self.sent.swap_remove(position);
            self.known.1[rank].waiting -= 1;
        }
    }

    /// Schedules all ranks until two passes are in flight, then lets the first one end.
    fn step(&mut self, ends_by: Nanos, sink: &mut ServeSink<'_>) -> Result<()> {
        for rank in &mut self.ranks {
            rank.shell.boundary = self.boundary;
            rank.shell.tell_queued(sink);
        }
        while self.ranks[0].flights.len() < DEPTH {
            for rank in &mut self.ranks {
                rank.schedule(sink);
                rank.reject(sink);
            }
            if self.ranks.iter().all(|rank| rank.scratch.scheduled.is_empty()) {
                break;
            }
            let start = self.ranks[0].flights.back().map_or(self.boundary, |flight| flight.end);
            let end = start + self.price();
            self.ranks.iter_mut().for_each(|rank| rank.launch(start, end, sink));
        }
        self.end_pass(ends_by, sink)
    }

    fn price(&mut self) -> Nanos {
        let decodes: Vec<_> = self.ranks.iter_mut().map(Vllm::form_pass).collect();
        let pass = |(rank, decode)| Pass { chunks: rank, decode };
        let chunks = self.ranks.iter().map(|rank| &rank.scratch.chunks[..]);
        let passes: Vec<Pass<'_>> = chunks.zip(decodes).map(pass).collect();
        self.ranks[0].shell.pace.lockstep(&passes)
    }

    fn end_pass(&mut self, ends_by: Nanos, sink: &mut ServeSink<'_>) -> Result<()> {
        let Some(end) = self.ranks[0].flights.front().map(|flight| flight.end) else {
            self.collect();
            return if self.signals.is_empty() { Err(self.ranks[0].stuck()) } else { Ok(()) };
        };
        if end > ends_by {
            self.halted = true;
            return Ok(());
        }
        for rank in &mut self.ranks {
            let flight = rank.flights.pop_front().expect("ranks fly together");
            rank.land(&flight, sink);
        }
        let (worker, start) = (self.ranks[0].shell.worker, std::mem::replace(&mut self.boundary, end));
        let blocks_in_use = self.ranks.iter().map(|rank| rank.blocks_in_use()).sum();
        sink.record(&ServeEvent::PassesRan { worker, start, end, blocks_in_use });
        self.collect();
        self.said.push_back((end, self.ranks.iter().map(|rank| rank.requests()).collect()));
        Ok(())
    }

    fn collect(&mut self) {
        for rank in &mut self.ranks {
            self.signals.append(&mut rank.shell.signals);
        }
    }
}

impl Engine for Ranks {
    fn submit(&mut self, job: Job, now: Nanos) {
        if self.is_idle() {
            self.boundary = self.boundary.max(now);
        }
        let rank = self.choose(job.id, now);
        self.ranks[rank].shell.note_submitted(job.id);
        self.ranks[rank].enqueue(job);
    }

    fn cancel(&mut self, request: RequestId, now: Nanos) -> bool {
        let was_there = self.ranks.iter_mut().any(|rank| rank.cancel(request, now));
        if was_there {
            self.signals.retain(|&signal| signal != Signal::Prefilled(request));
            self.take_back(request);
        }
        was_there
    }

    fn advance(&mut self, horizon: Horizon, sink: &mut ServeSink<'_>) -> Result<()> {
        while self.boundary < horizon.starts_before && self.signals.is_empty() {
            if self.is_idle() || self.halted {
                break;
            }
            self.step(horizon.ends_by, sink)?;
        }
        Ok(())
    }

    fn wake(&mut self) -> Option<Nanos> {
        let works = !self.signals.is_empty() || !(self.is_idle() || self.halted);
        works.then_some(self.boundary)
    }

    fn take_signals(&mut self, into: &mut Vec<Signal>) -> bool {
        let any = !self.signals.is_empty();
        into.append(&mut self.signals);
        any
    }

    fn watch_cache(&mut self) {
        self.ranks.iter_mut().for_each(|rank| rank.log().keep());
    }

    fn take_changes(&mut self, now: Nanos, into: &mut Vec<Change>) {
        self.ranks.iter_mut().for_each(|rank| rank.take_changes(now, into));
    }

    fn boundary(&self) -> Nanos {
        self.boundary
    }

    fn reserve(&mut self, _job: &Job) -> Option<u32> {
        unreachable!("{ALONE}")
    }

    fn activate(&mut self, _request: RequestId, _now: Nanos) {
        unreachable!("{ALONE}")
    }

    fn release(&mut self, _request: RequestId, _now: Nanos) {
        unreachable!("{ALONE}")
    }

    fn hold_back(&mut self, _reservations: Backlog, _now: Nanos) {
        unreachable!("{ALONE}")
    }

    fn is_held_back(&self) -> bool {
        false
    }

    fn occupancy(&self) -> Occupancy {
        let both = |sum: Occupancy, rank: &Vllm| {
            let Occupancy { waiting, running } = rank.requests();
            Occupancy { waiting: sum.waiting + waiting, running: sum.running + running }
        };
        self.ranks.iter().fold(Occupancy::default(), both)
    }

    fn work(&self) -> Work {
        self.ranks.iter().map(|rank| rank.work()).sum()
    }
}

const ALONE: &str = "plans have no prefill and decode workers with ranks";
