//! What is done between two trials, so that each begins alike.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wavetank_model::Nanos;

/// Between two looks at whether someone wants to end it.
const SLICE: Duration = Duration::from_millis(50);
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// Pages, and what the kernel knows about files.
const EVERYTHING: &str = "3";

/// Lets the drive cool down, until someone wants to end it.
pub(in super::super) fn rest(cooldown: Nanos, stop: &AtomicBool) {
    let end = Instant::now() + Duration::from_nanos(cooldown.0);
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(SLICE));
    }
}

/// Writes back and forgets what the kernel keeps of files, all over the machine; or says why that is not
/// permitted.
pub(in super::super) fn drop_page_cache() -> Result<(), String> {
    rustix::fs::sync();
    std::fs::write(DROP_CACHES, EVERYTHING).map_err(|error| format!("{DROP_CACHES}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: sleeping through an interruption.
    #[test]
    fn a_pause_ends_when_someone_wants_to_end_it() {
        let stop = AtomicBool::new(true);
        rest(Nanos::from_seconds(3600.0), &stop);
        stop.store(false, Ordering::Relaxed);
        rest(Nanos::ZERO, &stop);
    }
}
