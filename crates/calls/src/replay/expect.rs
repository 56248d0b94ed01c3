//! What recorded calls found, as far as a recording says it or lets it be seen.
//!
//! Without recorded outcomes: what a caller releases after a prefetch, before its next one, are the hits of
//! the prefetch; what it finishes writing after a reservation is what it was granted (spec/storage-trace.md
//! 10.1). A prefetch that locks nothing leaves no trace of what it found, nor does one after which calls are
//! missing: because the recorder lost them, or because the file was cut.

use std::collections::HashMap;

use wavetank_model::{Fate, KeyId, LockMode, Recorded, StorageCall};

use super::End;

/// Keys that a call found or was granted, ascending; absent where that cannot be known.
pub(crate) type Expected = Option<Box<[KeyId]>>;

/// One for each call.
pub(crate) fn expected(calls: &[Recorded], end: End) -> Vec<Expected> {
    let mut found: Vec<Expected> = calls.iter().map(recorded).collect();
    let by_thread = has_threads(calls);
    let mut callers: HashMap<Option<u32>, Caller> = HashMap::new();
    for (at, recorded) in calls.iter().enumerate() {
        let caller = callers.entry(caller_of(recorded, by_thread)).or_default();
        match &recorded.call {
            StorageCall::SubmitPrefetch(asked) => {
                caller.settle(&mut found);
                if asked.lock == LockMode::Lock {
                    caller.prefetch = Some((at, Vec::new()));
                }
            }
            StorageCall::ReserveWrite { .. } => {
                caller.settle_write(&mut found);
                caller.write = Some((at, Vec::new()));
            }
            StorageCall::FinishRead { keys, .. } => {
                caller.prefetch.iter_mut().for_each(|(_, released)| released.extend_from_slice(keys));
            }
            StorageCall::FinishWrite { keys } => {
                caller.write.iter_mut().for_each(|(_, granted)| granted.extend_from_slice(keys));
            }
            StorageCall::Gap { .. } => callers.clear(),
            _ => {}
        }
    }
    if end == End::Whole {
        callers.into_values().for_each(|mut caller| caller.settle(&mut found));
    }
    found
}

/// Whether a recording says who made each call; where it does not always, there is one caller. Background
/// work is nobody's.
pub(crate) fn has_threads(calls: &[Recorded]) -> ByThread {
    let has_caller = |recorded: &Recorded| recorded.thread.is_some() || is_background(&recorded.call);
    if calls.iter().all(has_caller) { ByThread::Yes } else { ByThread::No }
}

fn is_background(call: &StorageCall) -> bool {
    matches!(
        call,
        StorageCall::EvictionPass { .. }
            | StorageCall::StoreCompleted { .. }
            | StorageCall::PrefetchCompleted { .. }
            | StorageCall::Removed { .. }
            | StorageCall::Gap { .. }
    )
}

/// Whether callers are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByThread {
    Yes,
    No,
}

/// Who made a call.
pub(crate) fn caller_of(recorded: &Recorded, by_thread: ByThread) -> Option<u32> {
    recorded.thread.filter(|_| by_thread == ByThread::Yes)
}

/// What the recording itself says.
fn recorded(call: &Recorded) -> Expected {
    let fates = call.outcome.as_ref()?;
    let is_found = |fate: &Fate| matches!(fate, Fate::Done | Fate::FirstTier | Fate::LowerTier);
    let keys = call.call.keys().zip(fates.iter()).filter(|(_, fate)| is_found(fate));
    Some(sorted(keys.map(|(key, _)| key).collect()))
}

/// What one caller is at.
#[derive(Default)]
struct Caller {
    prefetch: Option<(usize, Vec<KeyId>)>,
    write: Option<(usize, Vec<KeyId>)>,
}

impl Caller {
    fn settle(&mut self, found: &mut [Expected]) {
        if let Some((at, keys)) = self.prefetch.take() {
            found[at].get_or_insert_with(|| sorted(keys));
        }
        self.settle_write(found);
    }

    fn settle_write(&mut self, found: &mut [Expected]) {
        if let Some((at, keys)) = self.write.take() {
            found[at].get_or_insert_with(|| sorted(keys));
        }
    }
}

fn sorted(mut keys: Vec<KeyId>) -> Box<[KeyId]> {
    keys.sort_unstable();
    keys.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use wavetank_model::{FetchPolicy, LayoutId, Nanos, Prefetch, Row};

    use super::*;

    fn calls(what: &[StorageCall]) -> Vec<Recorded> {
        what.iter().map(|call| Recorded::plain(Nanos::ZERO, call.clone())).collect()
    }

    fn prefetch() -> StorageCall {
        let row = Row { keys: [KeyId(0), KeyId(1)].into(), group: 0, layout: LayoutId(0), window: -1 };
        StorageCall::SubmitPrefetch(Box::new(Prefetch {
            rows: [row].into(),
            readers: 1,
            policy: FetchPolicy::Prefix,
            lock: LockMode::Lock,
            request: "".into(),
            skip_l2: false,
            handle: None,
        }))
    }

    /// Broken by: taking calls that are missing for calls that were not made.
    #[test]
    fn what_follows_a_prefetch_says_what_it_found_unless_it_is_missing() {
        let release = StorageCall::FinishRead { keys: [KeyId(1)].into(), locks: 1 };
        let one: Expected = Some([KeyId(1)].into());
        let none: Expected = Some([].into());
        let whole = calls(&[prefetch(), release, prefetch()]);
        assert_eq!(expected(&whole, End::Whole), [one.clone(), None, none]);
        assert_eq!(expected(&whole, End::Cut), [one, None, None]);
        let lost = calls(&[prefetch(), StorageCall::Gap { lost: 1 }, prefetch()]);
        assert_eq!(expected(&lost, End::Whole), [None, None, Some([].into())]);
    }
}
