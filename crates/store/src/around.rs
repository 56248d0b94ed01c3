//! What every wrapper needs: a hold around a hold, tokens of its own, and completions that wait until they are due.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::{Completion, Held, Port};

/// A wrapper's hold: the inner one, and what the wrapper knows of the entry.
pub(crate) struct Around<T> {
    /// The hold of the backend inside.
    pub(crate) inner: Arc<dyn Held>,
    /// What the wrapper knows.
    pub(crate) known: T,
}

impl<T: Send + Sync + 'static> Held for Around<T> {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Puts a hold around `inner`.
pub(crate) fn around<T: Send + Sync + 'static>(inner: Arc<dyn Held>, known: T) -> Arc<dyn Held> {
    Arc::new(Around { inner, known })
}

/// What a wrapper put around a hold.
pub(crate) fn within<T: Send + Sync + 'static>(held: &Arc<dyn Held>) -> &Around<T> {
    held.as_any().downcast_ref().expect("an entry of this wrapper")
}

/// Pieces on their way, by the token that the backend inside sees: a caller's tokens need not be unique.
pub(crate) struct Slots<T> {
    taken: Vec<Option<T>>,
    vacant: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { taken: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Keeps `item`; gives the token for it.
    pub(crate) fn put(&mut self, item: T) -> u64 {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.taken.push(None);
            self.taken.len() - 1
        });
        self.taken[slot] = Some(item);
        slot as u64
    }

    /// Takes the item back.
    ///
    /// # Panics
    /// When the backend inside completes a piece it was not given, or completes one twice.
    pub(crate) fn take(&mut self, token: u64) -> T {
        let slot = token as usize;
        let item = self.taken.get_mut(slot).and_then(Option::take);
        self.vacant.push(slot);
        item.expect("the backend completes every piece once")
    }
}

/// Completions held back until they are due, the earliest first.
#[derive(Default)]
pub(crate) struct Late {
    waiting: BinaryHeap<Reverse<Due>>,
    count: u64,
}

struct Due {
    at: (Instant, u64),
    completion: Completion,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Late {
    /// Holds `completion` back until `due`, if that is after it finished.
    pub(crate) fn add(&mut self, mut completion: Completion, due: Instant) {
        completion.finished = completion.finished.max(due);
        self.count += 1;
        self.waiting.push(Reverse(Due { at: (completion.finished, self.count), completion }));
    }

    /// Releases what is due.
    pub(crate) fn release(&mut self, done: &mut Vec<Completion>) {
        let now = Instant::now();
        while self.next_due().is_some_and(|due| due <= now) {
            done.extend(self.waiting.pop().map(|Reverse(due)| due.completion));
        }
    }

    /// How many are held back.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Waits for the backend inside or the earliest that is due, whichever comes first, until `deadline`.
    pub(crate) fn wait(
        &self,
        inner: &mut dyn Port,
        deadline: Instant,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let until = self.next_due().map_or(deadline, |due| due.min(deadline));
        if inner.in_flight() > 0 {
            return inner.reap(Some(until), done);
        }
        sleep_until(until);
        Ok(())
    }

    fn next_due(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse(due)| due.at.0)
    }
}

/// What a sleeping thread wakes up late by, at most times.
const OVERSLEPT: Duration = Duration::from_micros(120);

/// Sleeps, then spins the rest: a modelled microsecond is not lost in the kernel's timers.
fn sleep_until(until: Instant) {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(OVERSLEPT) {
            Some(most) => std::thread::sleep(most),
            None => std::hint::spin_loop(),
        }
    }
}
