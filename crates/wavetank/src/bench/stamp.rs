//! When a window opened, as other hosts know the time.

use std::time::{SystemTime, UNIX_EPOCH};

use wavetank_model::{BenchEvent, BenchFact, Nanos, Sink};
use wavetank_report::storage::AtEnd;
use wavetank_report::{Storage, StorageSummary};

/// A collector that notes the time of day when the window opens. Nothing else in a run knows it.
pub(super) struct Stamped {
    storage: Storage,
    opened: Option<SystemTime>,
}

impl Stamped {
    pub(super) fn new(storage: Storage) -> Self {
        Self { storage, opened: None }
    }

    pub(super) fn summary(&self, at_end: AtEnd) -> StorageSummary {
        let mut summary = self.storage.summary(at_end);
        let since = self.opened.and_then(|opened| opened.duration_since(UNIX_EPOCH).ok());
        summary.window.began = since.map_or(Nanos::ZERO, |since| Nanos(since.as_nanos() as u64));
        summary
    }
}

impl Sink<BenchEvent> for Stamped {
    fn record(&mut self, event: &BenchEvent) {
        if matches!(event.fact, BenchFact::Opened) {
            self.opened.get_or_insert_with(SystemTime::now);
        }
        self.storage.record(event);
    }
}
