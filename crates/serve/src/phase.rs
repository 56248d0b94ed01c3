//! Where a server is in its life.

use std::sync::atomic::{AtomicU8, Ordering};

use serde::Serialize;

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Doors are not open yet.
    Starting,
    /// Clients are served.
    Serving,
    /// Those under way are served, and no others.
    Draining,
}

/// The phase of a running server.
#[derive(Debug, Default)]
pub(crate) struct CurrentPhase(AtomicU8);

impl CurrentPhase {
    pub(crate) fn enter(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Starting,
            1 => Phase::Serving,
            _ => Phase::Draining,
        }
    }
}
