//! Simulated engines: one folder per engine, one row each in [`ALL`].

mod sglang;
mod vllm;

use std::rc::Rc;

use wavetank_cache::Change;
use wavetank_model::{Nanos, Prompt, Request, RequestId, Result, ServeSink, WorkerId, described, find};

use crate::EngineConfig;
use crate::tiers::Stack;
use crate::timing::Timing;

/// A request as an engine sees it.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its number.
    pub id: RequestId,
    /// Its prompt.
    pub prompt: Prompt,
    /// Tokens to generate.
    pub output_tokens: u32,
}

impl Job {
    /// The job of a request.
    pub fn of(id: RequestId, request: &Request) -> Self {
        Self { id, prompt: request.prompt.clone(), output_tokens: request.output_tokens }
    }
}

/// How a prompt gets from a prefill worker to a decode worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It is computed, then a decode worker is chosen and asked for room.
    SourceFirst,
    /// A decode worker is chosen and asked for room, then it is computed.
    DestinationFirst,
}

/// What a router may learn about a request at the end of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It got its first token and goes on.
    Prefilled(RequestId),
    /// A prefill worker has computed its prompt and holds the KV.
    Held(RequestId),
    /// It got all its tokens.
    Ended(RequestId),
    /// It was given up, whatever tokens it had.
    Rejected(RequestId),
}

/// Whether something waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backlog {
    /// Nothing.
    #[default]
    Empty,
    /// Something.
    Waiting,
}

/// Requests in an engine, as its last pass leaves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// In its queue.
    pub waiting: u32,
    /// In its batch.
    pub running: u32,
}

/// How far an engine may go.
#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    /// Passes start before this time.
    pub starts_before: Nanos,
    /// Passes that would end after this time never happen.
    pub ends_by: Nanos,
}

/// What an engine has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Passes simulated one by one, through the whole scheduler.
    pub stepped_passes: u64,
    /// Passes simulated together with those around them, because nothing could change in between.
    pub advanced_passes: u64,
    /// Prompt tokens computed; those of a preempted request count each time.
    pub prompt_tokens: u64,
    /// Time in passes.
    pub busy: Nanos,
    /// Blocks that requests use now; none when all have ended.
    pub blocks_in_use: u64,
}

impl std::iter::Sum for Work {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            stepped_passes: sum.stepped_passes + next.stepped_passes,
            advanced_passes: sum.advanced_passes + next.advanced_passes,
            prompt_tokens: sum.prompt_tokens + next.prompt_tokens,
            busy: sum.busy + next.busy,
            blocks_in_use: sum.blocks_in_use + next.blocks_in_use,
        })
    }
}

/// One worker, advanced by the event loop.
///
/// An engine commits a whole pass when it starts and reports it to the sink with the times of its end. The
/// caller guarantees that every job with an arrival before `starts_before` has been submitted; the engine
/// guarantees that what it has reported never depends on a job that is submitted later.
pub trait Engine {
    /// Hands over a job at `now`; it is considered by the first pass that starts at or after `now`.
    fn submit(&mut self, job: Job, now: Nanos);

    /// An aggregated worker between passes drops a request, wherever it is: what it held is given back, what
    /// it computed stays findable, and nothing more is told of it. Tells whether it was there and had not
    /// ended.
    fn cancel(&mut self, request: RequestId, now: Nanos) -> bool;

    /// Runs passes up to the horizon, or to the first pass at whose end there is something to signal.
    fn advance(&mut self, horizon: Horizon, sink: &mut ServeSink<'_>) -> Result<()>;

    /// When the caller must look again: a finished request becomes visible, or the next pass must start.
    /// `None` while there is nothing to do.
    fn wake(&mut self) -> Option<Nanos>;

    /// Moves out what the end of the last pass signals, in the engine's order. Tells whether there was any.
    fn take_signals(&mut self, into: &mut Vec<Signal>) -> bool;

    /// Keeps track of changes of the cache, for [`Self::take_changes`].
    fn watch_cache(&mut self);

    /// Moves out the changes of the cache that are visible at `now`: those of passes that have ended.
    fn take_changes(&mut self, now: Nanos, into: &mut Vec<Change>);

    /// When the pass in flight ends; a worker is between passes from then on.
    fn boundary(&self) -> Nanos;

    /// A decode worker between passes takes blocks for a prompt that will come from elsewhere. The tokens it
    /// does not have already, or `None` if there is no room now.
    fn reserve(&mut self, job: &Job) -> Option<u32>;

    /// The prompt reserved for has come; its request waits for its turn from `now` on.
    fn activate(&mut self, request: RequestId, now: Nanos);

    /// A worker between passes gives up the KV it computed for another worker, or the room it kept.
    fn release(&mut self, request: RequestId, now: Nanos);

    /// Whether reservations wait on a decode worker; meanwhile preempted requests are not admitted.
    fn hold_back(&mut self, reservations: Backlog, now: Nanos);

    /// Whether nothing runs on a decode worker and preempted requests wait for its reservations.
    fn is_held_back(&self) -> bool;

    /// Who is there.
    fn occupancy(&self) -> Occupancy;

    /// What was done so far.
    fn work(&self) -> Work;

    /// Gives it tiers behind its GPU's memory, before anything happens; only to who can have them
    /// ([`crate::tiers::refusal`]).
    fn attach_tiers(&mut self, _tiers: Stack) {
        unreachable!("who cannot have tiers was refused");
    }

    /// Whether its next pass may ask its tiers for something, as far as is known now.
    fn may_ask_tiers(&self) -> bool {
        false
    }

    /// Everything that happens in its own tiers up to `now` has happened, and it knows what came from shared
    /// ones. Its passes have been brought up to `now` before.
    fn settle_tiers(&mut self, _now: Nanos, _sink: &mut ServeSink<'_>) {}
}

/// What an engine is built from.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    /// The worker it is.
    pub worker: WorkerId,
    /// What it runs.
    pub config: &'a EngineConfig,
    /// How long its passes take; workers of a pool share one model.
    pub timing: &'a Rc<dyn Timing>,
}

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// How its prompts get to decode workers.
    pub flow: Flow,
    /// Whether it schedules a pass while the one before it runs, as measured timing models have it.
    pub schedules_ahead: bool,
    /// Whether it overlaps loads from the fastest tier of a worker's own with compute, unless told otherwise.
    pub overlaps_loads: bool,
    /// The most prompt tokens of a pass; as many as there are when absent.
    pub longest_pass: fn(&EngineConfig) -> Option<u32>,
    /// What of a configuration it cannot work with.
    pub flaw: fn(&EngineConfig) -> Option<&'static str>,
    /// Builds the engine of one worker.
    pub build: fn(Seat<'_>) -> Box<dyn Engine>,
}

described!(Entry);

/// Every engine, alphabetical. `wavetank list engines` prints this table.
pub const ALL: &[Entry] = &[sglang::ENTRY, vllm::ENTRY];

/// The row called `name`.
pub fn entry(name: &str) -> Result<&'static Entry> {
    find("engine", ALL, name)
}

/// Builds the engine a worker's configuration names.
pub fn build(seat: Seat<'_>) -> Result<Box<dyn Engine>> {
    Ok((entry(&seat.config.engine_type)?.build)(seat))
}

#[cfg(test)]
mod tests;
