//! Events to whoever listens. A slow listener loses events, which are counted; it never slows the store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use wavetank_model::StoreEvent;

/// The senders of a store.
#[derive(Default)]
pub(crate) struct Bus {
    listeners: Mutex<Vec<Listener>>,
    /// So that a store nobody listens to pays one load.
    heard: AtomicBool,
}

struct Listener {
    sender: SyncSender<StoreEvent>,
    lost: Arc<AtomicU64>,
}

/// What one listener gets.
pub struct Events {
    receiver: Receiver<StoreEvent>,
    lost: Arc<AtomicU64>,
}

/// A lane's own copy of the senders: sending takes no lock.
pub(crate) struct Voice {
    listeners: Vec<Listener>,
}

impl Bus {
    /// A listener that falls behind by `capacity` events loses the next ones. It hears the lanes opened from
    /// now on.
    pub(crate) fn listen(&self, capacity: usize) -> Events {
        let (sender, receiver) = sync_channel(capacity);
        let lost = Arc::new(AtomicU64::new(0));
        let listener = Listener { sender, lost: Arc::clone(&lost) };
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
        self.heard.store(true, Ordering::Release);
        Events { receiver, lost }
    }

    pub(crate) fn voice(&self) -> Voice {
        if !self.heard.load(Ordering::Acquire) {
            return Voice { listeners: Vec::new() };
        }
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = |l: &Listener| Listener { sender: l.sender.clone(), lost: Arc::clone(&l.lost) };
        Voice { listeners: listeners.iter().map(copy).collect() }
    }
}

impl Voice {
    pub(crate) fn say(&self, event: StoreEvent) {
        for listener in &self.listeners {
            if listener.sender.try_send(event).is_err() {
                listener.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Events {
    /// What has come since the last call.
    pub fn take(&self) -> impl Iterator<Item = StoreEvent> + '_ {
        self.receiver.try_iter()
    }

    /// The next event; waits for it, and ends with the last lane and the store.
    pub fn next(&self) -> Option<StoreEvent> {
        self.receiver.recv().ok()
    }

    /// How many were lost because this listener was behind.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::{IoTimes, Nanos, StoreFact};

    use super::*;

    #[test]
    fn a_slow_listener_loses_and_knows_how_many() {
        let bus = Bus::default();
        let (slow, quick) = (bus.listen(2), bus.listen(100));
        let voice = bus.voice();
        for key in 0..5 {
            let (fact, times) = (StoreFact::Missed, IoTimes::default());
            voice.say(StoreEvent { at: Nanos::ZERO, key, bytes: 0, fact, times });
        }
        assert_eq!(slow.take().map(|event| event.key).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((slow.lost(), quick.take().count(), quick.lost()), (3, 5, 0));
    }
}
