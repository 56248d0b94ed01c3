//! Who writes down what happens.

use std::sync::atomic::{AtomicU32, Ordering};

use wavetank_model::{KeyId, Recorded};

use super::names::Names;

/// Hears of every call and of all background work, in the order in which they changed the state of the
/// storage layer: made again in that order, each call has the same outcome.
pub trait Journal: Send + Sync {
    /// Something happened. Nothing else happens until this returns, so it has to be short. Where callers
    /// give names, numbers of keys mean what `called` says, now and not later, and the number of a layout is
    /// the length of its objects.
    fn record(&self, recorded: Recorded, called: Called<'_>);
}

/// What numbers of keys mean at a moment.
#[derive(Clone, Copy)]
pub struct Called<'a>(pub(super) &'a Names);

impl<'a> Called<'a> {
    /// The name that has this number; absent where callers give numbers.
    pub fn name(&self, key: KeyId) -> Option<&'a [u8]> {
        self.0.of(key)
    }
}

/// A number for each thread of this process that makes calls.
pub(super) fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}
