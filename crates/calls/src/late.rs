//! Copies to tiers behind that are made later, because too much was on its way when they were due.

use std::collections::BTreeMap;

use wavetank_model::KeyId;

use crate::busy::{Passing, Sparse};

/// An object in memory that is to be copied to a tier behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The object.
    pub key: KeyId,
    /// Its length.
    pub bytes: u64,
    /// What whoever put its copy off wants to know again.
    pub stamp: u64,
}

/// What waits for each tier behind, the oldest first. Nothing waits that is not in memory.
#[derive(Debug, Default)]
pub(crate) struct Late {
    queues: Vec<Queue>,
    /// Objects that began to wait so far.
    count: u64,
}

#[derive(Debug, Default)]
struct Queue {
    by_age: BTreeMap<u64, Waiting>,
    ages: Sparse<Age>,
    /// Objects that left memory before their turn, until they are counted.
    missed: u64,
}

#[derive(Debug, Default)]
struct Age(Option<u64>);

impl Passing for Age {
    fn is_over(&self) -> bool {
        self.0.is_none()
    }
}

impl Queue {
    fn take(&mut self, key: KeyId) -> Option<Waiting> {
        let (age, _) = self.ages.change(key, |age| age.0.take())?;
        self.by_age.remove(&age?)
    }
}

impl Late {
    /// An object waits for a tier behind.
    pub(crate) fn add(&mut self, adapter: usize, waiting: Waiting) {
        if self.queues.len() <= adapter {
            self.queues.resize_with(adapter + 1, Queue::default);
        }
        self.count += 1;
        let queue = &mut self.queues[adapter];
        queue.take(waiting.key);
        queue.ages.row(waiting.key).0 = Some(self.count);
        queue.by_age.insert(self.count, waiting);
    }

    /// It does not wait for that tier any more.
    pub(crate) fn take(&mut self, adapter: usize, key: KeyId) -> Option<Waiting> {
        self.queues.get_mut(adapter)?.take(key)
    }

    /// It was removed, and is not wanted anywhere.
    pub(crate) fn forget(&mut self, key: KeyId) {
        for queue in &mut self.queues {
            queue.take(key);
        }
    }

    /// It has left memory before its turn.
    pub(crate) fn miss(&mut self, key: KeyId) {
        for queue in &mut self.queues {
            queue.missed += u64::from(queue.take(key).is_some());
        }
    }

    /// Whether it waits for any tier.
    pub(crate) fn has(&self, key: KeyId) -> bool {
        self.queues.iter().any(|queue| queue.ages.of(key).is_some())
    }

    /// What waits for a tier, the oldest first.
    pub(crate) fn of(&self, adapter: usize) -> impl Iterator<Item = &Waiting> {
        self.queues.get(adapter).into_iter().flat_map(|queue| queue.by_age.values())
    }

    /// How many objects wait for a tier.
    pub(crate) fn len(&self, adapter: usize) -> usize {
        self.queues.get(adapter).map_or(0, |queue| queue.by_age.len())
    }

    /// Those that left memory before their turn since the last time, by tier.
    pub(crate) fn take_missed(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.queues.iter_mut().map(|queue| std::mem::take(&mut queue.missed))
    }
}
