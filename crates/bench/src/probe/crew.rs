//! The threads that ask, each with a lane of its own and its share of what is in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use wavetank_model::{Error, Result};
use wavetank_store::{Lane, Store};

use super::plan::Load;
use super::set::{Part, WorkingSet};

/// What one thread works with.
pub(super) struct Hand {
    pub(super) lane: Lane,
    pub(super) part: Part,
    /// How many operations it keeps in flight.
    pub(super) depth: u32,
}

/// Who works on what.
#[derive(Clone, Copy)]
pub(super) struct Crew<'a> {
    pub(super) store: &'a Arc<Store>,
    pub(super) set: WorkingSet,
    pub(super) load: Load,
    pub(super) threads: u32,
    /// How often this set was used before.
    pub(super) turn: u64,
    /// Raised to end it.
    pub(super) stop: &'a AtomicBool,
}

/// A lane of a store.
pub(super) fn lane(store: &Arc<Store>, pieces: usize) -> Result<Lane> {
    store.lane(pieces).map_err(|error| Error::usage(format!("cannot open a queue: {error}")))
}

impl Crew<'_> {
    /// Lets every thread do its `work`, which begins when all have their lanes, and gives what each made;
    /// `None` when it was stopped.
    pub(super) fn work<T: Send>(
        self,
        work: impl Fn(Hand, &Halt) -> Result<T> + Sync,
    ) -> Result<Option<Vec<T>>> {
        let shares = self.load.shares(self.threads);
        let ready = Barrier::new(shares.len());
        let halt = Halt { stop: self.stop, failed: AtomicBool::new(false) };
        let one = |thread: usize| {
            let depth = shares[thread];
            let lane = lane(self.store, self.load.pieces(depth));
            ready.wait();
            let part = self.set.part(self.load.read_share, (thread as u32, shares.len() as u32), self.turn);
            let made = lane.and_then(|lane| work(Hand { lane, part, depth }, &halt));
            if made.is_err() {
                halt.failed.store(true, Ordering::Relaxed);
            }
            made
        };
        let made: Result<Vec<T>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..shares.len()).map(|thread| scope.spawn(move || one(thread))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Result<T>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        Ok(Some(made?).filter(|_| !self.stop.load(Ordering::Relaxed)))
    }
}

/// Whether to go on.
pub(super) struct Halt<'a> {
    stop: &'a AtomicBool,
    /// One of the threads failed: what the others do is of no use.
    failed: AtomicBool,
}

impl Halt<'_> {
    /// Whether nothing more is to be done.
    pub(super) fn is_called(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}
