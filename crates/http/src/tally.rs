//! Connections of a door, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a door counts; its owner looks at it whenever it likes.
#[derive(Debug, Default)]
pub struct Tally {
    opened: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
}

impl Tally {
    /// Connections taken.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Those that ended.
    pub fn closed(&self) -> u64 {
        self.closed.load(Ordering::Relaxed)
    }

    /// Connections turned away because there were too many.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Connections there are.
    pub fn connections(&self) -> u64 {
        let closed = self.closed();
        self.opened().saturating_sub(closed)
    }

    pub(crate) fn open(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn close(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}
