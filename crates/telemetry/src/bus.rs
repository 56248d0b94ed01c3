//! Where events go: a bounded queue between who works and who makes spans of it.
//!
//! Publishing takes one short lock and never wakes anybody: who reads comes back every few milliseconds and
//! takes all that waits at once. Of commands, which may be a million a second, only a share is published.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wavetank_model::{CacheEvent, CacheFact};

use crate::ids::mix;

/// A handle to publish events with. Who publishes never waits: what finds the queue full is counted as lost.
#[derive(Clone, Default)]
pub struct Bus(Option<Arc<Queue>>);

impl Bus {
    /// Nobody listens: events are not even made.
    pub fn off() -> Self {
        Self(None)
    }

    pub(crate) fn to(queue: &Arc<Queue>) -> Self {
        Self(Some(Arc::clone(queue)))
    }

    /// Publishes what `make` gives, if somebody listens.
    #[inline]
    pub fn publish(&self, make: impl FnOnce() -> CacheEvent) {
        let Some(queue) = &self.0 else { return };
        let event = make();
        if !matches!(event.fact, CacheFact::CommandEnded { .. }) || queue.takes_command() {
            queue.push(event);
        }
    }

    /// Publishes the end of a command, if this one is among those that are sampled. Cheaper than
    /// [`Self::publish`] for those that are not: their event is not made.
    #[inline]
    pub fn command(&self, make: impl FnOnce() -> CacheEvent) {
        if let Some(queue) = &self.0
            && queue.takes_command()
        {
            queue.push(make());
        }
    }

    /// Whether somebody listens.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

/// Events that wait. The newest are lost when it is full.
pub(crate) struct Queue {
    /// Has all its room from the start, so that nobody copies it under the lock.
    waiting: Mutex<Vec<CacheEvent>>,
    capacity: usize,
    lost: AtomicU64,
    published: AtomicU64,
    /// Commands whose draw is below it are taken.
    commands_below: u64,
}

impl Queue {
    /// Takes `capacity` events at a time, and a share of commands.
    pub(crate) fn new(capacity: usize, commands: f64) -> Self {
        let commands_below = if commands >= 1.0 { u64::MAX } else { (commands * 2f64.powi(64)) as u64 };
        let waiting = Mutex::new(Vec::with_capacity(capacity));
        Self { waiting, capacity, lost: AtomicU64::new(0), published: AtomicU64::new(0), commands_below }
    }

    fn push(&self, event: CacheEvent) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < self.capacity {
            waiting.push(event);
            return;
        }
        drop(waiting);
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes what waits into `batch`, which is empty and whose room is used next.
    pub(crate) fn take(&self, batch: &mut Vec<CacheEvent>) {
        debug_assert!(batch.is_empty());
        batch.reserve(self.capacity);
        std::mem::swap(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner), batch);
        self.published.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }

    /// How many wait.
    pub(crate) fn depth(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many found it full.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// How many were taken out.
    pub(crate) fn taken(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    #[inline]
    fn takes_command(&self) -> bool {
        self.commands_below == u64::MAX || draw() < self.commands_below
    }
}

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0u8));
}

/// A number of this thread's own sequence. Which commands are sampled needs no seed.
#[inline]
fn draw() -> u64 {
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        mix(next)
    })
}

#[cfg(test)]
mod tests {
    use wavetank_model::Nanos;

    use super::*;

    fn ended(at: u64) -> CacheEvent {
        CacheEvent { at: Nanos(at), session: "s".into(), fact: CacheFact::RequestEnded }
    }

    fn command() -> CacheEvent {
        let fact = CacheFact::CommandEnded {
            command: "GET",
            started: Nanos::ZERO,
            keys: 1,
            hits: 1,
            bytes: 1,
            failed: false,
        };
        CacheEvent { at: Nanos::ZERO, session: "c".into(), fact }
    }

    /// Broken by: dropping the oldest, growing, or not counting.
    #[test]
    fn a_full_queue_loses_the_newest_and_counts_them() {
        let queue = Arc::new(Queue::new(3, 1.0));
        let bus = Bus::to(&queue);
        (0..5).for_each(|at| bus.publish(|| ended(at)));
        let mut batch = Vec::new();
        queue.take(&mut batch);
        assert_eq!(batch.iter().map(|event| event.at.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((queue.lost(), queue.taken(), queue.depth()), (2, 3, 0));
        bus.publish(|| ended(9));
        assert_eq!(queue.depth(), 1);
    }

    #[test]
    fn nothing_is_made_when_nobody_listens() {
        Bus::off().publish(|| panic!("made"));
        Bus::default().command(|| panic!("made"));
        assert!(!Bus::off().is_on());
    }

    /// Broken by: sampling anything but commands, or by a share that is not kept.
    #[test]
    fn a_share_of_commands_is_published() {
        for (share, expected) in [(0.0, 0..1), (0.1, 800..1200), (1.0, 10_000..10_001)] {
            let queue = Arc::new(Queue::new(100_000, share));
            let bus = Bus::to(&queue);
            (0..4_000).for_each(|_| bus.publish(command));
            (0..6_000).for_each(|_| bus.command(command));
            assert!(expected.contains(&queue.depth()), "{share}: {}", queue.depth());
            let before = queue.depth();
            bus.publish(|| ended(0));
            assert_eq!(queue.depth(), before + 1, "other facts are all published");
        }
    }

    /// Broken by: a lock that is not taken. Every event of every thread arrives once, in its thread's order.
    #[test]
    fn threads_publish_beside_a_reader() {
        let queue = Arc::new(Queue::new(1 << 20, 1.0));
        let mut taken = Vec::new();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|thread| {
                    let bus = Bus::to(&queue);
                    scope.spawn(move || (0..20_000).for_each(|n| bus.publish(|| ended(thread << 32 | n))))
                })
                .collect();
            while !workers.iter().all(|worker| worker.is_finished()) {
                let mut batch = Vec::new();
                queue.take(&mut batch);
                taken.append(&mut batch);
            }
        });
        let mut batch = Vec::new();
        queue.take(&mut batch);
        taken.append(&mut batch);
        for thread in 0..4 {
            let own = taken.iter().filter(|event| event.at.0 >> 32 == thread).map(|event| event.at.0);
            assert!(own.eq((0..20_000).map(|n| thread << 32 | n)));
        }
    }
}
