//! Objects that are there for a time only.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wavetank_model::KeyId;

use crate::busy::{Passing, Sparse};

/// Until when objects are there, for those that do not stay for ever: in milliseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    by_key: Sparse<Deadline>,
    by_time: BTreeSet<(u64, KeyId)>,
}

#[derive(Debug, Default)]
struct Deadline(Option<u64>);

impl Passing for Deadline {
    fn is_over(&self) -> bool {
        self.0.is_none()
    }
}

impl Deadlines {
    /// `key` is there until then, or for ever.
    pub(super) fn set(&mut self, key: KeyId, until_ms: Option<u64>) {
        self.remove(key);
        if let Some(until_ms) = until_ms {
            self.by_key.row(key).0 = Some(until_ms);
            self.by_time.insert((until_ms, key));
        }
    }

    pub(super) fn remove(&mut self, key: KeyId) {
        if self.by_time.is_empty() {
            return;
        }
        if let Some((Some(until_ms), _)) = self.by_key.change(key, |deadline| deadline.0.take()) {
            self.by_time.remove(&(until_ms, key));
        }
    }

    pub(super) fn of(&self, key: KeyId) -> Option<u64> {
        if self.by_time.is_empty() { None } else { self.by_key.of(key)?.0 }
    }

    /// Objects that have one.
    pub(super) fn len(&self) -> usize {
        self.by_time.len()
    }

    /// Whether the time of `key` is over.
    pub(super) fn is_over(&self, key: KeyId) -> bool {
        self.of(key).is_some_and(|until_ms| until_ms <= now_ms())
    }

    /// Times up to this one.
    #[cfg(test)]
    pub(super) fn due_by(&self, last_ms: u64) -> Vec<u64> {
        self.by_time
            .iter()
            .map(|(until_ms, _)| *until_ms)
            .take_while(|until_ms| *until_ms <= last_ms)
            .collect()
    }

    /// Objects whose time is over, up to so many, the earliest first.
    pub(super) fn due(&self, most: usize) -> Vec<KeyId> {
        let is_due = |row: &&(u64, KeyId)| row.0 <= now_ms();
        self.by_time.iter().take_while(is_due).take(most).map(|(_, key)| *key).collect()
    }
}

fn now_ms() -> u64 {
    since_1970_ms(SystemTime::now())
}

/// Milliseconds since 1970.
pub(super) fn since_1970_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
