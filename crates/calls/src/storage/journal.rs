//! Who writes down what happens.

use std::sync::atomic::{AtomicU32, Ordering};

use wavetank_model::Recorded;

/// Hears of every call and of all background work, in the order in which they changed the state of the
/// storage layer: made again in that order, each call has the same outcome.
pub trait Journal: Send + Sync {
    /// Something happened. Nothing else happens until this returns, so it has to be short.
    fn record(&self, recorded: Recorded);
}

/// A number for each thread of this process that makes calls.
pub(super) fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}
