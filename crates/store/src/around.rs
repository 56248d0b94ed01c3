//! What every wrapper needs: a hold around a hold, and tokens of its own.

use std::any::Any;
use std::sync::Arc;

use crate::backend::Held;

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
