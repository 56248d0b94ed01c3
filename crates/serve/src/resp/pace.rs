//! How fast a client moves bytes, and whether that is too slow.

use std::time::Instant;

use super::settings::Settings;

/// A client that moves so much is not slow.
const MOVED_BYTES: u64 = 64 << 10;

/// How fast a client moves bytes.
pub(super) struct Pace {
    active: Instant,
    /// Since when a command or a reply is under way, and bytes moved since.
    since: Option<Instant>,
    bytes: u64,
}

impl Pace {
    /// Of a client that has just connected.
    pub(super) fn new(now: Instant) -> Self {
        Self { active: now, since: None, bytes: 0 }
    }

    /// It took or gave `bytes`.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// It had a turn; something is under way after it, or not.
    pub(super) fn turn(&mut self, is_busy: bool, now: Instant) {
        self.active = now;
        if is_busy != self.since.is_some() {
            self.since = is_busy.then_some(now);
            self.bytes = 0;
        }
    }

    /// Whether it is too slow, or too quiet.
    pub(super) fn is_overdue(&mut self, now: Instant, settings: &Settings) -> bool {
        if self.since.is_some() && self.bytes >= MOVED_BYTES {
            self.since = Some(now);
            self.bytes = 0;
        }
        let is_slow = self.since.is_some_and(|since| now - since >= settings.slow_timeout);
        is_slow || settings.idle_timeout.is_some_and(|timeout| now - self.active >= timeout)
    }
}
