//! A serving run over time: what happened in each of a few hundred equal spans, however long the run is.
//!
//! Everything is entered in constant time and in any order, because workers are simulated ahead of each
//! other. When a run gets longer than its spans, two neighbours become one.

mod level;
mod values;

use wavetank_model::{Nanos, WorkerId, WorkerRole};

use crate::course::{Course, Fleet, Track};
use level::Level;
use values::Values;

/// Spans; a run has more than half of them, unless it is very short or has few requests.
const MOST: u64 = 400;
/// The shortest span.
const SHORTEST: Nanos = Nanos(1_000_000);
/// Served requests that a span should have on average: percentiles of two are two requests.
const ENOUGH: usize = 20;
/// Spans that are left where there are few requests; twice as many become fewer.
const FEWEST: usize = 40;
/// More workers than that share tracks.
const MOST_TRACKS: u32 = 64;

/// Workers that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// How many.
    pub count: u32,
    /// Blocks of each one's cache.
    pub blocks: u64,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the router.
    #[default]
    Router,
    /// In the queue of a worker.
    Waiting(WorkerId),
    /// In its batch.
    Running(WorkerId),
    /// Between workers, or gone.
    Elsewhere,
}

/// How a request that was served went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) first_token: Nanos,
    pub(crate) last_token: Nanos,
    pub(crate) ttft_ms: f64,
    pub(crate) tpot_ms: Option<f64>,
    pub(crate) e2e_ms: f64,
}

/// Collects the course of a run.
#[derive(Clone, Debug)]
pub struct CourseOf {
    step: u64,
    counts: Counts,
    levels: Levels,
    ttft_ms: Values,
    tpot_ms: Values,
    e2e_ms: Values,
    tracks: Vec<OnTrack>,
    /// Blocks in use, by worker.
    blocks: Vec<u32>,
    /// Blocks of each worker's cache.
    capacities: Vec<u64>,
    pools: Vec<Workers>,
    /// Workers of a track.
    group: u32,
}

/// Changes of the number that is somewhere, or amounts spread over time; the whole fleet's.
#[derive(Clone, Debug, Default)]
struct Levels {
    in_router: Level,
    output_tokens: Level,
    prompt_tokens: Level,
}

/// What is counted when it happens.
#[derive(Clone, Debug, Default)]
struct Counts {
    arrived: Level,
    completed: Level,
    rejected: Level,
    preempted: Level,
    asked_tokens: Level,
    reused_tokens: Level,
}

/// What is known of some workers.
#[derive(Clone, Debug, Default)]
struct OnTrack {
    waiting: Level,
    running: Level,
    blocks: Level,
    busy: Level,
}

impl OnTrack {
    /// Several as one.
    fn together(tracks: &[Self]) -> Self {
        let mut sum = Self::default();
        for track in tracks {
            sum.waiting.add(&track.waiting);
            sum.running.add(&track.running);
            sum.blocks.add(&track.blocks);
            sum.busy.add(&track.busy);
        }
        sum
    }
}

impl CourseOf {
    /// Of a fleet.
    pub fn new(pools: &[Workers]) -> Self {
        let workers: u32 = pools.iter().map(|pool| pool.count).sum();
        let group = workers.div_ceil(MOST_TRACKS).max(1);
        Self {
            step: SHORTEST.0,
            counts: Counts::default(),
            levels: Levels::default(),
            ttft_ms: Values::default(),
            tpot_ms: Values::default(),
            e2e_ms: Values::default(),
            tracks: vec![OnTrack::default(); workers.div_ceil(group) as usize],
            blocks: vec![0; workers as usize],
            capacities: pools.iter().flat_map(|pool| (0..pool.count).map(|_| pool.blocks)).collect(),
            pools: pools.to_vec(),
            group,
        }
    }

    /// There is a worker of a pool, which may be a new one.
    pub(crate) fn joined(&mut self, worker: WorkerId, pool: WorkerRole) {
        if worker.index() < self.blocks.len() {
            return;
        }
        let pool = self.pools.get(usize::from(pool == WorkerRole::Decode));
        self.capacities.push(pool.map_or(0, |pool| pool.blocks));
        self.blocks.push(0);
        let tracks = self.blocks.len().div_ceil(self.group as usize);
        self.tracks.resize(tracks, OnTrack::default());
        if tracks > 2 * MOST_TRACKS as usize {
            self.tracks = self.tracks.chunks(2).map(OnTrack::together).collect();
            self.group *= 2;
        }
    }

    pub(crate) fn arrived(&mut self, at: Nanos) {
        let place = self.place(at);
        self.counts.arrived.count(place, 1.0);
        self.levels.in_router.change(place, 1.0);
    }

    /// A request goes from one place to another.
    pub(crate) fn moved(&mut self, from: Place, to: Place, at: Nanos) {
        let spot = self.place(at);
        self.level(from).into_iter().for_each(|level| level.change(spot, -1.0));
        self.level(to).into_iter().for_each(|level| level.change(spot, 1.0));
    }

    pub(crate) fn preempted(&mut self, at: Nanos) {
        let place = self.place(at);
        self.counts.preempted.count(place, 1.0);
    }

    pub(crate) fn rejected(&mut self, at: Nanos) {
        let place = self.place(at);
        self.counts.rejected.count(place, 1.0);
    }

    /// A request was admitted for the first time.
    pub(crate) fn looked_up(&mut self, at: Nanos, asked: u32, reused: u32) {
        let place = self.place(at);
        self.counts.asked_tokens.count(place, f64::from(asked));
        self.counts.reused_tokens.count(place, f64::from(reused));
    }

    pub(crate) fn completed(&mut self, at: Nanos, served: Option<Served>) {
        let place = self.place(at);
        self.counts.completed.count(place, 1.0);
        let Some(served) = served else { return };
        let first = self.place(served.first_token);
        self.ttft_ms.add(first.span, served.ttft_ms);
        let last = self.place(served.last_token);
        self.e2e_ms.add(last.span, served.e2e_ms);
        served.tpot_ms.into_iter().for_each(|ms| self.tpot_ms.add(last.span, ms));
    }

    pub(crate) fn emitted(&mut self, start: Nanos, end: Nanos, tokens: u64) {
        let (start, end) = self.span(start, end);
        self.levels.output_tokens.spread((start, end, self.step), tokens as f64);
    }

    pub(crate) fn computed(&mut self, start: Nanos, end: Nanos, tokens: u32) {
        let (start, end) = self.span(start, end);
        self.levels.prompt_tokens.spread((start, end, self.step), f64::from(tokens));
    }

    pub(crate) fn ran(&mut self, worker: WorkerId, (start, end): (Nanos, Nanos), blocks: u32) {
        let (start, end) = self.span(start, end);
        let before = std::mem::replace(&mut self.blocks[worker.index()], blocks);
        let track = &mut self.tracks[worker.index() / self.group as usize];
        track.busy.change(start, 1.0);
        track.busy.change(end, -1.0);
        track.blocks.change(end, f64::from(blocks) - f64::from(before));
    }

    /// All of it, of a run that ended at `end`.
    pub fn course(&self, end: Nanos) -> Course {
        let mut whole = self.clone();
        let last = Nanos(end.0.saturating_sub(1));
        let mut spans = whole.place(last).span + 1;
        let served = whole.ttft_ms.count();
        while spans >= 2 * FEWEST && (1..ENOUGH * spans).contains(&served) {
            whole.widen();
            spans = whole.place(last).span + 1;
        }
        let step = Nanos(whole.step);
        let width = |span: usize| (end.0 - span as u64 * step.0).min(step.0) as f64;
        let widths: Vec<f64> = (0..spans).map(width).collect();
        let seconds: Vec<f64> = widths.iter().map(|width| width / 1e9).collect();
        let per_second = |level: &Level| over(&level.counts(spans), &seconds);
        let rate = |level: &Level| over(&level.integrals(spans, step.0), &seconds);
        let mean = |level: &Level| over(&level.integrals(spans, step.0), &widths);
        let (counts, levels) = (&whole.counts, &whole.levels);
        let asked = counts.asked_tokens.counts(spans);
        let fleet = Fleet {
            arrived_per_s: per_second(&counts.arrived),
            completed_per_s: per_second(&counts.completed),
            rejected_per_s: per_second(&counts.rejected),
            preempted_per_s: per_second(&counts.preempted),
            output_tokens_per_s: rate(&levels.output_tokens),
            prompt_tokens_per_s: rate(&levels.prompt_tokens),
            reused_share: over(&counts.reused_tokens.counts(spans), &asked),
            in_router: mean(&levels.in_router),
            ttft_ms: whole.ttft_ms.percentiles(spans),
            tpot_ms: whole.tpot_ms.percentiles(spans),
            e2e_ms: whole.e2e_ms.percentiles(spans),
        };
        let tracks = (0..).zip(&whole.tracks).map(|(number, track)| whole.track(number, track, &mean));
        Course { step, end, fleet, tracks: tracks.collect() }
    }

    fn track(&self, number: u32, track: &OnTrack, mean: &impl Fn(&Level) -> Vec<f64>) -> Track {
        let workers = self.blocks.len() as u32;
        let (first, last) = (number * self.group, ((number + 1) * self.group).min(workers) - 1);
        let count = f64::from(last - first + 1);
        let capacity: u64 = self.capacities[first as usize..=last as usize].iter().sum();
        let each = |level: &Level, whole: f64| -> Vec<f64> {
            mean(level).into_iter().map(|value| value / whole.max(1.0)).collect()
        };
        Track {
            first_worker: first,
            last_worker: last,
            waiting: each(&track.waiting, count),
            running: each(&track.running, count),
            cache_use: each(&track.blocks, capacity as f64),
            busy: each(&track.busy, count),
        }
    }

    fn level(&mut self, place: Place) -> Option<&mut Level> {
        let group = self.group as usize;
        match place {
            Place::Router => Some(&mut self.levels.in_router),
            Place::Waiting(worker) => Some(&mut self.tracks[worker.index() / group].waiting),
            Place::Running(worker) => Some(&mut self.tracks[worker.index() / group].running),
            Place::Elsewhere => None,
        }
    }

    fn span(&mut self, start: Nanos, end: Nanos) -> (Spot, Spot) {
        // The later first: it may make spans longer.
        let end = self.place(end);
        (self.place(start), end)
    }

    /// Where a time is, among spans that reach it from now on.
    fn place(&mut self, at: Nanos) -> Spot {
        while at.0 / self.step >= MOST {
            self.widen();
        }
        Spot { span: (at.0 / self.step) as usize, after: at.0 % self.step }
    }

    fn widen(&mut self) {
        let step = self.step;
        let Levels { in_router, output_tokens, prompt_tokens } = &mut self.levels;
        let Counts { arrived, completed, rejected, preempted, asked_tokens, reused_tokens } =
            &mut self.counts;
        let fleet = [in_router, output_tokens, prompt_tokens, arrived, completed, rejected];
        let more = [preempted, asked_tokens, reused_tokens];
        let tracks = self.tracks.iter_mut().flat_map(|track| {
            let OnTrack { waiting, running, blocks, busy } = track;
            [waiting, running, blocks, busy]
        });
        fleet.into_iter().chain(more).chain(tracks).for_each(|level| level.widen(step));
        [&mut self.ttft_ms, &mut self.tpot_ms, &mut self.e2e_ms].into_iter().for_each(Values::widen);
        self.step *= 2;
    }
}

/// A time: its span, and nanoseconds since that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    span: usize,
    after: u64,
}

/// Quotients; without a divisor there is none.
fn over(values: &[f64], by: &[f64]) -> Vec<f64> {
    values.iter().zip(by).map(|(value, by)| if *by > 0.0 { value / by } else { f64::NAN }).collect()
}

#[cfg(test)]
mod tests;
