//! Where events go: a bounded queue between who works and who writes spans.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use wavetank_model::CacheEvent;

/// A handle to publish events with. Who publishes never waits: what finds the queue full is counted as lost.
#[derive(Clone, Default)]
pub struct Bus(Option<Arc<Mutex<VecDeque<CacheEvent>>>>);

impl Bus {
    /// Nobody listens: events are not even made.
    pub fn off() -> Self {
        Self(None)
    }

    /// Publishes what `make` gives, if somebody listens.
    pub fn publish(&self, make: impl FnOnce() -> CacheEvent) {
        if let Some(queue) = &self.0 {
            queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(make());
        }
    }
}
