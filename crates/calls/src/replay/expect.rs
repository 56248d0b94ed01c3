//! What recorded calls found, as far as a recording says it or lets it be seen.
//!
//! Without recorded outcomes: what a caller releases after a prefetch, before its next one, are the hits of
//! the prefetch; what it finishes writing after a reservation is what it was granted (spec/storage-trace.md
//! 10.1). A prefetch that locks nothing leaves no trace of what it found, nor does one after which calls are
//! missing: because the recorder lost them, or because the file was cut.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wavetank_model::{Fate, KeyId, LockMode, Recorded, StorageCall};

use super::End;

/// Keys that a call found or was granted, ascending; absent where that cannot be known.
pub(crate) type Expected = Option<Box<[KeyId]>>;

/// What outcomes are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// What is recorded, else what is implied.
    #[default]
    Auto,
    /// What is recorded.
    Recorded,
    /// What later calls imply.
    Implied,
    /// Nothing.
    None,
}

impl Expect {
    /// What the recording itself says of a call, where that counts.
    pub(super) fn outcome(self, recorded: &Recorded) -> Option<&[Fate]> {
        recorded.outcome.as_deref().filter(|_| matches!(self, Self::Auto | Self::Recorded))
    }

    /// Whether what it implies counts.
    pub(super) fn implies(self) -> bool {
        matches!(self, Self::Auto | Self::Implied)
    }
}

/// One for each call.
pub(crate) fn expected(calls: &[Recorded], end: End, expect: Expect) -> Vec<Expected> {
    let mut found: Vec<Expected> = calls.iter().map(|call| recorded(call, expect)).collect();
    if expect.implies() {
        imply(calls, end, &mut found);
    }
    found
}

fn imply(calls: &[Recorded], end: End, found: &mut [Expected]) {
    let by_thread = has_threads(calls);
    let mut callers: BTreeMap<Option<u32>, Caller> = BTreeMap::new();
    for (at, recorded) in calls.iter().enumerate() {
        let caller = callers.entry(caller_of(recorded, by_thread)).or_default();
        match &recorded.call {
            StorageCall::SubmitPrefetch(asked) => {
                caller.settle(found);
                if asked.lock == LockMode::Lock {
                    caller.prefetch = Some((at, Vec::with_capacity(asked.rows.len() * asked.columns())));
                }
            }
            StorageCall::ReserveWrite { keys, .. } => {
                caller.settle_write(found);
                caller.write = Some((at, Vec::with_capacity(keys.len())));
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
        callers.into_values().for_each(|mut caller| caller.settle(found));
    }
}

/// Whether a recording says who made each call; where it does not always, there is one caller. Nobody makes
/// background work.
pub(crate) fn has_threads(calls: &[Recorded]) -> ByThread {
    let is_told = |recorded: &Recorded| recorded.thread.is_some() || !is_call(&recorded.call);
    if calls.iter().all(is_told) { ByThread::Yes } else { ByThread::No }
}

fn is_call(call: &StorageCall) -> bool {
    !matches!(
        call,
        StorageCall::EvictionPass { .. }
            | StorageCall::StoreCompleted { .. }
            | StorageCall::StoreBegun { .. }
            | StorageCall::PrefetchCompleted { .. }
            | StorageCall::Found { .. }
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
fn recorded(call: &Recorded, expect: Expect) -> Expected {
    let fates = expect.outcome(call)?;
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
    use wavetank_model::{LayoutId, Nanos, Prefetch, Row};

    use super::*;

    fn calls(what: &[StorageCall]) -> Vec<Recorded> {
        what.iter().map(|call| Recorded::plain(Nanos::ZERO, call.clone())).collect()
    }

    fn prefetch() -> StorageCall {
        let row = Row { keys: [KeyId(0), KeyId(1)].into(), group: 0, layout: LayoutId(0), window: -1 };
        StorageCall::SubmitPrefetch(Box::new(Prefetch::of([row])))
    }

    /// Broken by: taking calls that are missing for calls that were not made.
    #[test]
    fn what_follows_a_prefetch_says_what_it_found_unless_it_is_missing() {
        let release = StorageCall::FinishRead { keys: [KeyId(1)].into(), locks: 1 };
        let one: Expected = Some([KeyId(1)].into());
        let none: Expected = Some([].into());
        let whole = calls(&[prefetch(), release, prefetch()]);
        let expected = |calls: &[Recorded], end| expected(calls, end, Expect::Auto);
        assert_eq!(expected(&whole, End::Whole), [one.clone(), None, none]);
        assert_eq!(expected(&whole, End::Cut), [one, None, None]);
        let lost = calls(&[prefetch(), StorageCall::Gap { lost: 1 }, prefetch()]);
        assert_eq!(expected(&lost, End::Whole), [None, None, Some([].into())]);
    }

    /// Broken by: an implied outcome where only recorded ones count, or the other way round.
    #[test]
    fn what_counts_can_be_chosen() {
        let release = StorageCall::FinishRead { keys: [KeyId(1)].into(), locks: 1 };
        let mut whole = calls(&[prefetch(), release, prefetch()]);
        whole[0].outcome = Some([Fate::FirstTier, Fate::Absent].into());
        let prefetches = |expect| {
            let all = expected(&whole, End::Whole, expect);
            [all[0].clone(), all[2].clone()]
        };
        let (recorded, implied): (Expected, Expected) = (Some([KeyId(0)].into()), Some([KeyId(1)].into()));
        let none: Expected = Some([].into());
        assert_eq!(prefetches(Expect::Auto), [recorded.clone(), none.clone()]);
        assert_eq!(prefetches(Expect::Recorded), [recorded, None]);
        assert_eq!(prefetches(Expect::Implied), [implied, none]);
        assert_eq!(prefetches(Expect::None), [None, None]);
    }

    /// Broken by: background work that counts as a call of nobody.
    #[test]
    fn background_work_has_no_caller() {
        let mut all = calls(&[prefetch(), StorageCall::EvictionPass { tier: 0, evicted: 0, most: None }]);
        assert_eq!(has_threads(&all), ByThread::No);
        all[0].thread = Some(3);
        assert_eq!(has_threads(&all), ByThread::Yes);
    }
}
