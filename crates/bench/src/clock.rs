//! The clock of a run: the wall, or a virtual one that moves only when there is nothing left to do at its
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wavetank_model::Nanos;

use crate::plan::Time;

/// Time since the start of the run.
pub(crate) struct Clock {
    started: Instant,
    virtual_now: Option<Hands>,
}

/// What a virtual clock shows; zero before it starts.
#[derive(Clone, Default)]
pub(crate) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Clock {
    /// Starts; a virtual one with these hands.
    pub(crate) fn start(time: Time, hands: Hands) -> Self {
        Self { started: Instant::now(), virtual_now: (time == Time::Virtual).then_some(hands) }
    }

    pub(crate) fn now(&self) -> Nanos {
        match &self.virtual_now {
            Some(hands) => hands.now(),
            None => Nanos(self.started.elapsed().as_nanos() as u64),
        }
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.virtual_now.is_some()
    }

    /// The wall clock's name for a time of this run.
    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.started
            .checked_add(Duration::from_nanos(at.0))
            .unwrap_or(self.started + Duration::from_secs(86_400))
    }

    /// Waits until `at`; a virtual clock is set to it.
    pub(crate) fn wait_until(&self, at: Nanos) {
        match &self.virtual_now {
            Some(Hands(now)) => {
                now.fetch_max(at.0, Ordering::Relaxed);
            }
            None => std::thread::sleep(Duration::from_nanos(at.since(self.now()).0)),
        }
    }

    /// Real time since the start.
    pub(crate) fn wall(&self) -> Duration {
        self.started.elapsed()
    }
}
