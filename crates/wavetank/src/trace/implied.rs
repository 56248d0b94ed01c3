//! Outcomes that a recording does not hold but implies (spec/storage-trace.md 10.1): a caller releases what
//! its prefetch found, and finishes writing what it was granted.

use serde::Serialize;
use wavetank_model::{KeyId, LockMode, Recorded, StorageCall};

/// No prefetch.
const NONE: u32 = u32::MAX;

/// Outcomes counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Implied {
    /// Cells that prefetches asked for and locked where they found them.
    pub asked: u64,
    /// Of these, released afterwards: they were found.
    pub found: u64,
    /// Cells of prefetches that lock nothing: what they found is not known.
    pub unlocked: u64,
    /// Keys of releases.
    pub released: u64,
    /// Keys released that no prefetch had asked for.
    pub released_unasked: u64,
    /// Keys read.
    pub read: u64,
    /// Keys released that were not read.
    pub released_unread: u64,
    /// Releases of which no key was read.
    pub releases_unread: u64,
    /// Keys of reservations.
    pub reserved: u64,
    /// Of these, written afterwards: they were granted.
    pub stored: u64,
    /// Keys whose write was finished without a reservation.
    pub stored_unreserved: u64,
    #[serde(skip)]
    keys: Vec<Trail>,
    #[serde(skip)]
    prefetches: u32,
}

/// What was done to a key last, as numbers of prefetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trail {
    asked: u32,
    read: u32,
    released: u32,
    /// A reservation that is not finished.
    reserved: bool,
}

impl Implied {
    /// Asked for and not found.
    pub fn missed(&self) -> u64 {
        self.asked - self.found
    }

    /// Reserved and not written: refused.
    pub fn refused(&self) -> u64 {
        self.reserved - self.stored
    }

    /// Takes the next call.
    pub fn see(&mut self, recorded: &Recorded) {
        match &recorded.call {
            StorageCall::SubmitPrefetch(prefetch) if prefetch.lock == LockMode::NoLock => {
                self.unlocked += recorded.call.keys().count() as u64;
            }
            StorageCall::SubmitPrefetch(_) => {
                let number = self.prefetches;
                self.prefetches += 1;
                for key in recorded.call.keys() {
                    self.asked += 1;
                    self.trail(key).asked = number;
                }
            }
            StorageCall::ReadEnter { keys } => {
                self.read += keys.len() as u64;
                for key in keys {
                    let trail = self.trail(*key);
                    trail.read = trail.asked;
                }
            }
            StorageCall::FinishRead { keys, .. } => self.release(keys),
            StorageCall::ReserveWrite { keys, .. } => {
                self.reserved += keys.len() as u64;
                keys.iter().for_each(|key| self.trail(*key).reserved = true);
            }
            StorageCall::FinishWrite { keys } => keys.iter().for_each(|key| self.finish(*key)),
            StorageCall::ReadExit { .. }
            | StorageCall::EvictionPass { .. }
            | StorageCall::StoreCompleted { .. }
            | StorageCall::StoreBegun { .. }
            | StorageCall::PrefetchCompleted { .. }
            | StorageCall::Found { .. }
            | StorageCall::Removed { .. }
            | StorageCall::Gap { .. } => {}
        }
    }

    fn release(&mut self, keys: &[KeyId]) {
        let mut unread = 0;
        for key in keys {
            let trail = self.trail(*key);
            let (is_asked, is_read) = (trail.asked != NONE, trail.asked != NONE && trail.read == trail.asked);
            // With several readers a key is released several times; it was found once.
            let is_found = is_asked && trail.released != trail.asked;
            trail.released = trail.asked;
            self.found += u64::from(is_found);
            self.released_unasked += u64::from(!is_asked);
            unread += u64::from(!is_read);
        }
        self.released += keys.len() as u64;
        self.released_unread += unread;
        self.releases_unread += u64::from(unread == keys.len() as u64);
    }

    fn finish(&mut self, key: KeyId) {
        let granted = std::mem::take(&mut self.trail(key).reserved);
        self.stored += u64::from(granted);
        self.stored_unreserved += u64::from(!granted);
    }

    fn trail(&mut self, key: KeyId) -> &mut Trail {
        let at = key.0 as usize;
        if at >= self.keys.len() {
            self.keys.resize(at + 1, Trail { asked: NONE, read: NONE, released: NONE, reserved: false });
        }
        &mut self.keys[at]
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::{FetchPolicy, LayoutId, Nanos, Prefetch, Row, WriteMode};

    use super::*;

    fn keys(numbers: &[u32]) -> Box<[KeyId]> {
        numbers.iter().copied().map(KeyId).collect()
    }

    fn prefetch(numbers: &[u32], lock: LockMode) -> StorageCall {
        let row = Row { keys: keys(numbers), group: 0, layout: LayoutId(0), window: -1 };
        let (rows, policy, request) = (Box::new([row]), FetchPolicy::Prefix, "r".into());
        StorageCall::SubmitPrefetch(Box::new(Prefetch {
            rows,
            readers: 2,
            policy,
            lock,
            request,
            skip_l2: false,
            handle: None,
        }))
    }

    /// Broken by: a key found twice because two readers released it, or a release counted for an older
    /// prefetch.
    #[test]
    fn what_follows_tells_what_was_found() {
        let release = |numbers: &[u32]| StorageCall::FinishRead { keys: keys(numbers), locks: 1 };
        let calls = [
            prefetch(&[0, 1, 2], LockMode::Lock),
            StorageCall::ReadEnter { keys: keys(&[0, 1]) },
            StorageCall::ReadExit { keys: keys(&[0, 1]) },
            release(&[0, 1]),
            release(&[0, 1]),
            StorageCall::ReserveWrite { keys: keys(&[2, 3]), layout: LayoutId(0), mode: WriteMode::New },
            StorageCall::FinishWrite { keys: keys(&[2]) },
            prefetch(&[0, 2], LockMode::Lock),
            release(&[0, 2]),
            prefetch(&[5, 6], LockMode::NoLock),
            release(&[7]),
            StorageCall::FinishWrite { keys: keys(&[9]) },
        ];
        let mut implied = Implied::default();
        calls.into_iter().for_each(|call| implied.see(&Recorded::plain(Nanos::ZERO, call)));
        assert_eq!((implied.asked, implied.found, implied.missed(), implied.unlocked), (5, 4, 1, 2));
        assert_eq!((implied.released, implied.read), (7, 2));
        assert_eq!((implied.released_unread, implied.releases_unread, implied.released_unasked), (3, 2, 1));
        assert_eq!((implied.reserved, implied.stored, implied.refused()), (2, 1, 1));
        assert_eq!(implied.stored_unreserved, 1);
    }
}
