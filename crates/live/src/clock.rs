//! The wall clock of a run, and waiting by it.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wavetank_model::Nanos;

/// Between two looks at whether to stop.
const SLICE: Duration = Duration::from_millis(100);

/// Time since the start of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// The run starts now.
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    pub(crate) fn now(self) -> Nanos {
        Nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// How long it is until `at`, but no longer than one may go without a look at whether to stop.
    pub(crate) fn pause_until(self, at: Option<Nanos>) -> Duration {
        at.map_or(SLICE, |at| Duration::from_nanos(at.since(self.now()).0).min(SLICE))
    }

    /// Waits until `at`. `None` if `stop` was raised before.
    pub(crate) fn wait_until(self, at: Nanos, stop: &AtomicBool) -> Option<Nanos> {
        loop {
            let now = self.now();
            if now >= at {
                return Some(now);
            }
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            thread::sleep(self.pause_until(Some(at)));
        }
    }
}

/// Has the timers of this thread go off on time: by default Linux puts each off by up to 50 µs.
pub(crate) fn sharpen_timers() {
    // A system that has no such thing has the timers it has.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a wait that ends early, or one that a raised flag does not end.
    #[test]
    fn a_wait_ends_at_its_time_or_when_stopped() {
        let clock = Clock::start();
        let at = clock.now() + Nanos(3_000_000);
        assert!(clock.wait_until(at, &AtomicBool::new(false)).unwrap() >= at);
        assert_eq!(clock.wait_until(Nanos::MAX, &AtomicBool::new(true)), None);
    }
}
