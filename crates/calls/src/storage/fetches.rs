//! Loads of single objects under way, and who waits for them: what is on its way is not asked for again.

use std::collections::HashMap;
use std::sync::Arc;

use wavetank_model::{Fate, KeyId};

use super::Then;
use super::state::State;
use crate::bytes::Object;

/// Who is told of an object that comes.
pub(super) type Waiter = Then<Option<Arc<Object>>>;

/// Loads by the prefetches they belong to.
#[derive(Default)]
pub(super) struct Fetches {
    /// The load that brings what is there of each key.
    current: HashMap<KeyId, u64>,
    /// Who else waits for a load.
    waiters: HashMap<u64, Vec<Waiter>>,
}

impl Fetches {
    /// A load of `key` begins.
    pub(super) fn begin(&mut self, key: KeyId, handle: u64) {
        self.current.insert(key, handle);
    }

    /// `then` waits for the load of `key` that is under way; it comes back if there is none.
    pub(super) fn join(&mut self, key: KeyId, then: Waiter) -> Option<Waiter> {
        let Some(handle) = self.current.get(&key) else { return Some(then) };
        self.waiters.entry(*handle).or_default().push(then);
        None
    }

    /// Whether a load of `key` is under way.
    pub(super) fn has(&self, key: KeyId) -> bool {
        self.current.contains_key(&key)
    }

    /// What is on its way of `key` was removed: who asks from now on does not wait for it.
    pub(super) fn outdate(&mut self, key: KeyId) {
        if !self.current.is_empty() {
            self.current.remove(&key);
        }
    }

    /// A load is over: who else waited for it.
    fn end(&mut self, key: KeyId, handle: u64) -> Vec<Waiter> {
        if self.current.get(&key) == Some(&handle) {
            self.current.remove(&key);
        }
        self.waiters.remove(&handle).unwrap_or_default()
    }
}

impl State {
    /// A load of one object is over: what came of it, and who else waited. Those use it too.
    pub(super) fn fetched(
        &mut self,
        handle: u64,
        (key, fate): (KeyId, Fate),
    ) -> (Option<Arc<Object>>, Vec<Waiter>) {
        let waiters = self.fetches.end(key, handle);
        let is_there = matches!(fate, Fate::FirstTier | Fate::LowerTier);
        let length = self.resident(key).filter(|_| is_there).map(|object| object.len() as u64);
        for _ in &waiters {
            match length {
                Some(bytes) => {
                    self.engine.use_resident(key);
                    self.tell_use(key, bytes);
                }
                None if !self.engine.is_there(key) => {
                    let name = self.name(key);
                    self.tell_miss(&name);
                }
                None => {}
            }
        }
        (self.give(Some((key, fate))), waiters)
    }
}
