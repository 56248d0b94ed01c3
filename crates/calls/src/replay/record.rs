//! A replay as a recording: the calls as they were made, what became of them, and background work where it
//! happened. Made again without changes ([`Tempo::Told`]) every outcome is the same.

use std::ops::ControlFlow;

use wavetank_model::{Fate, KeyId, Keys, Prefetch, Recorded, Result, StorageCall, WriteMode};

use super::Manner;
use super::listen::{Act, Listener, Made};
use crate::engine::Tempo;
use crate::note::{Happened, Note};

/// Turns what it hears into records, in the order it happened.
pub struct Recorder<Sink> {
    sink: Sink,
    /// Whether prefetches with a handle end later.
    told: bool,
    /// What a device failed of the copies that end next.
    lost: Keys,
}

impl<Sink: FnMut(&Recorded) -> Result<()>> Recorder<Sink> {
    /// One that gives its records to `sink`.
    pub fn new(manner: &Manner, sink: Sink) -> Self {
        Self { sink, told: manner.tempo == Tempo::Told, lost: Keys::default() }
    }

    fn background(&mut self, notes: &[Note]) -> Result<()> {
        for note in notes {
            let mut postponed = None;
            let (call, failed) = match &note.what {
                Happened::Passed(tier, evicted, most) => {
                    let call = StorageCall::EvictionPass { tier: *tier, evicted: *evicted, most: *most };
                    (call, Keys::default())
                }
                Happened::Lost(_, keys) => {
                    self.lost.clone_from(keys);
                    continue;
                }
                Happened::Copied(adapter, keys) => {
                    let call = StorageCall::StoreCompleted { tier: adapter + 1, keys: keys.clone() };
                    (call, std::mem::take(&mut self.lost))
                }
                Happened::Postponed(adapter, keys) => {
                    postponed = Some(keys.iter().map(|_| Fate::NoMemory).collect());
                    (StorageCall::StoreCompleted { tier: adapter + 1, keys: keys.clone() }, Keys::default())
                }
                Happened::Resumed(adapter, keys) => {
                    (StorageCall::StoreBegun { tier: adapter + 1, keys: keys.clone() }, Keys::default())
                }
                Happened::Fetched(handle, keys, failed) => {
                    let call = StorageCall::PrefetchCompleted { handle: *handle, keys: keys.clone() };
                    (call, failed.clone())
                }
                Happened::Found(adapter, keys, layout) => {
                    let (tier, keys, layout) = (adapter + 1, keys.clone(), *layout);
                    (StorageCall::Found { tier, keys, layout }, Keys::default())
                }
                Happened::Removed(keys) => (StorageCall::Removed { keys: keys.clone() }, Keys::default()),
                Happened::Staged(_)
                | Happened::Unstaged(_)
                | Happened::Admitted(_)
                | Happened::Loading(..)
                | Happened::Loaded(..)
                | Happened::Unloaded(..)
                | Happened::Freed(_)
                | Happened::Copying(..)
                | Happened::Deleted(..) => continue,
            };
            let outcome = outcome_of(&call, &failed).or(postponed);
            (self.sink)(&Recorded { outcome, unnamed: note.unnamed, ..Recorded::plain(note.at, call) })?;
        }
        Ok(())
    }

    fn call(&self, act: &Act<'_>) -> StorageCall {
        let owned = |keys: &[KeyId]| Keys::from(keys);
        match *act {
            Act::Prefetch(asked) => {
                let handle = asked.handle.filter(|_| self.told);
                StorageCall::SubmitPrefetch(Box::new(Prefetch { handle, ..asked.clone() }))
            }
            Act::Reserve { keys, layout } => {
                StorageCall::ReserveWrite { keys: owned(keys), layout, mode: WriteMode::New }
            }
            Act::FinishWrite(keys) => StorageCall::FinishWrite { keys: owned(keys) },
            Act::Enter(keys) => StorageCall::ReadEnter { keys: owned(keys) },
            Act::Exit(keys) => StorageCall::ReadExit { keys: owned(keys) },
            Act::Release(keys, locks) | Act::GiveBack(keys, locks) => {
                StorageCall::FinishRead { keys: owned(keys), locks }
            }
        }
    }
}

impl<Sink: FnMut(&Recorded) -> Result<()>> Listener for Recorder<Sink> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        self.background(made.before)?;
        let call = self.call(&made.act);
        let is_silent = matches!(made.act, Act::Exit(_)) && made.fates.is_empty();
        let outcome = (!is_silent).then(|| made.fates.into());
        let Made { at, thread, unnamed, .. } = *made;
        (self.sink)(&Recorded { thread, outcome, unnamed, ..Recorded::plain(at, call) })?;
        self.background(made.because)?;
        Ok(ControlFlow::Continue(()))
    }

    fn ended(&mut self, after: &[Note]) -> Result<()> {
        self.background(after)
    }
}

/// Said only where a device failed.
fn outcome_of(call: &StorageCall, failed: &[KeyId]) -> Option<Box<[Fate]>> {
    let fate = |key: KeyId| if failed.contains(&key) { Fate::Failed } else { Fate::Done };
    (!failed.is_empty()).then(|| call.keys().map(fate).collect())
}

#[cfg(test)]
mod tests;
