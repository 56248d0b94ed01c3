//! What time it is in a store: by the wall, or by hands that whoever models devices moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The clock of a store; copies show the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Absent on the wall.
    hands: Option<Hands>,
}

/// A clock that stands still unless it is moved.
#[derive(Clone, Debug)]
struct Hands {
    start: Instant,
    nanos: Arc<AtomicU64>,
}

impl Clock {
    /// One that stands still until it is moved.
    pub fn modelled() -> Self {
        Self { hands: Some(Hands { start: Instant::now(), nanos: Arc::default() }) }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        match &self.hands {
            None => Instant::now(),
            Some(hands) => hands.start + Duration::from_nanos(hands.nanos.load(Ordering::Relaxed)),
        }
    }

    /// How long ago `then` was.
    pub fn since(&self, then: Instant) -> Duration {
        self.now().saturating_duration_since(then)
    }

    /// Waits until `at`; hands are moved there, and never back.
    pub fn wait_until(&self, at: Instant) {
        match &self.hands {
            None => std::thread::sleep(at.saturating_duration_since(Instant::now())),
            Some(hands) => {
                let nanos = at.saturating_duration_since(hands.start).as_nanos() as u64;
                hands.nanos.fetch_max(nanos, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: hands that go back, move by themselves, or are not shared by copies.
    #[test]
    fn hands_stand_still_and_never_go_back() {
        let clock = Clock::modelled();
        let (start, copy) = (clock.now(), clock.clone());
        copy.wait_until(start + Duration::from_secs(100));
        copy.wait_until(start + Duration::from_secs(50));
        assert_eq!(clock.since(start), Duration::from_secs(100));
        assert_eq!(clock.since(start + Duration::from_secs(200)), Duration::ZERO);
    }
}
