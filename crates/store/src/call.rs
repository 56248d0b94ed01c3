//! What was asked of the store and what came of it, told where it is decided: under the lock of the key's
//! shard, so that the order in which a listener hears of one key is the order in which it happened.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use wavetank_model::{Fate, Nanos};

use crate::clock::Clock;
use crate::job::{Existing, nanos};
use crate::key::Key;

/// Something that happened to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The hash of its key.
    pub key: [u8; 16],
    /// Its length; 0 where there is none.
    pub bytes: u64,
    /// How long it took since it was planned; zero for what takes none.
    pub took: Nanos,
    /// Who asked: one of the operations that a lane has under way at a time, so that what one caller asks
    /// comes one after the other.
    pub caller: u32,
    /// What was done.
    pub deed: Deed,
    /// What became of it.
    pub fate: Fate,
}

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Room is asked for.
    Reserve(Existing),
    /// It is written, and can be found from here on.
    Publish,
    /// It is looked up, and being read from here on if it is there.
    LookUp,
    /// Reading it ended.
    Read,
    /// It left the store for good.
    Leave,
}

/// Someone who is told of every call.
pub trait Listener: Send + Sync {
    /// Takes note of `call`, at once: a lock of the store is held meanwhile. It is not to ask the store.
    fn hear(&self, call: Call);
}

/// Who listens to a store, if anyone does: a store nobody listens to pays one load for each call.
#[derive(Default)]
pub(crate) struct Ear(OnceLock<Arc<dyn Listener>>);

impl Ear {
    /// From here on `listener` is told.
    pub(crate) fn attach(&self, listener: Arc<dyn Listener>) {
        assert!(self.0.set(listener).is_ok(), "a store has one listener");
    }
}

/// Operations that a lane has under way, as far as callers are told apart.
const CALLERS: u32 = 1024;

/// One caller's way to tell.
#[derive(Clone, Copy)]
pub(crate) struct Voice<'e> {
    ear: &'e Ear,
    clock: &'e Clock,
    caller: u32,
}

impl<'e> Voice<'e> {
    /// Of the operation at `place` among those of the lane with this number.
    pub(crate) fn new(ear: &'e Ear, clock: &'e Clock, lane: u32, place: usize) -> Self {
        Self { ear, clock, caller: lane.wrapping_mul(CALLERS).wrapping_add(place as u32 % CALLERS) }
    }
}

impl Voice<'_> {
    /// Tells what became of the entry of `key`, of so many bytes.
    #[inline]
    pub(crate) fn tell(self, deed: Deed, fate: Fate, (key, bytes): (&Key, u64)) {
        let Some(listener) = self.ear.0.get() else { return };
        let (key, took) = (key.hash().to_be_bytes(), Nanos::ZERO);
        listener.hear(Call { key, bytes, took, caller: self.caller, deed, fate });
    }

    /// The same of something that began at `since`.
    #[inline]
    pub(crate) fn tell_end(self, deed: Deed, fate: Fate, (key, bytes): (&Key, u64), since: Instant) {
        let Some(listener) = self.ear.0.get() else { return };
        let (key, took) = (key.hash().to_be_bytes(), nanos(self.clock.since(since)));
        listener.hear(Call { key, bytes, took, caller: self.caller, deed, fate });
    }
}
