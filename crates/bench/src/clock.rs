//! The clock of a run: that of its store, or a virtual one that moves only when there is nothing left to do
//! at its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wavetank_model::Nanos;

/// Time since the start of the run.
pub(crate) struct Clock {
    /// By the wall.
    began: Instant,
    face: Face,
}

/// What shows the time of a run.
#[derive(Clone)]
pub(crate) enum Face {
    /// The clock of its store: the wall, or what modelled devices move. I/O takes time there.
    Store(wavetank_store::Clock, Instant),
    /// I/O takes no time here.
    Virtual(Hands),
}

/// What a virtual clock shows; zero before it starts.
#[derive(Clone, Default)]
pub(crate) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Face {
    /// The store's time, from now on.
    pub(crate) fn of_store(clock: &wavetank_store::Clock) -> Self {
        Self::Store(clock.clone(), clock.now())
    }

    pub(crate) fn now(&self) -> Nanos {
        match self {
            Self::Store(clock, started) => Nanos(clock.since(*started).as_nanos() as u64),
            Self::Virtual(hands) => hands.now(),
        }
    }
}

impl Clock {
    pub(crate) fn start(face: Face) -> Self {
        Self { began: Instant::now(), face }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.face.now()
    }

    /// Whether I/O takes no time.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.face, Face::Virtual(_))
    }

    /// The store's name for a time of this run.
    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        let started = match &self.face {
            Face::Store(_, started) => *started,
            Face::Virtual(_) => self.began,
        };
        started.checked_add(Duration::from_nanos(at.0)).unwrap_or(started + Duration::from_secs(86_400))
    }

    /// Waits until `at`; a clock that is not the wall's is set to it.
    pub(crate) fn wait_until(&self, at: Nanos) {
        match &self.face {
            Face::Store(clock, _) => clock.wait_until(self.instant(at)),
            Face::Virtual(Hands(now)) => {
                now.fetch_max(at.0, Ordering::Relaxed);
            }
        }
    }

    /// Real time since the start.
    pub(crate) fn wall(&self) -> Duration {
        self.began.elapsed()
    }
}
