//! Background work as a recording tells it: when loops looked, when copies and prefetches ended.

use std::collections::HashMap;

use wavetank_model::{Fate, KeyId, Keys, LayoutId, Nanos, Prefetch, Recorded, StorageCall};

use super::{Manner, Player, Recording};
use crate::engine::{Engine, Tempo};
use crate::note::Happened;
use crate::prefetch::Fetching;

/// Prefetches whose end the recording tells.
pub(super) struct Told {
    /// Whether it is followed.
    follows: bool,
    /// Whether it knows alone what there was room for: memory has no size.
    knows_room: bool,
    /// When those with a handle end; one that does not is never over.
    ends: HashMap<u64, Nanos>,
    under_way: HashMap<u64, (Prefetch, Fetching)>,
}

impl Told {
    pub(super) fn new(recording: &Recording<'_>, manner: &Manner) -> Self {
        let follows = manner.tempo == Tempo::Told;
        let ends = recording.calls.iter().filter(|_| follows).filter_map(|recorded| match recorded.call {
            StorageCall::PrefetchCompleted { handle, .. } => Some((handle, recorded.at)),
            _ => None,
        });
        let knows_room = follows && manner.plan.l1.capacity_bytes.is_none();
        Self { follows, knows_room, ends: ends.collect(), under_way: HashMap::new() }
    }

    /// What of memory was taken by objects without a name, as far as that is followed.
    pub(super) fn unnamed(&self, recorded: &Recorded, engine: &mut Engine) {
        if self.follows {
            engine.set_unnamed(recorded.unnamed);
        }
    }

    /// Begins to write; what there was no room for is refused where nothing else can tell.
    pub(super) fn reserve(
        &self,
        (keys, bytes): (&[KeyId], u64),
        outcome: Option<&[Fate]>,
        engine: &mut Engine,
        fates: &mut Vec<Fate>,
    ) {
        let outcome = outcome.filter(|fates| self.knows_room && fates.contains(&Fate::NoMemory));
        let Some(outcome) = outcome else { return engine.reserve_write(keys, bytes, fates) };
        for (at, key) in keys.iter().enumerate() {
            match outcome.get(at) {
                Some(Fate::NoMemory) => fates.push(Fate::NoMemory),
                _ => engine.reserve_write(std::slice::from_ref(key), bytes, fates),
            }
        }
    }

    /// Prefetches; what ends later is kept until it does. How long it takes.
    pub(super) fn prefetch(&mut self, asked: &Prefetch, engine: &mut Engine, fates: &mut Vec<Fate>) -> Nanos {
        let Some(handle) = asked.handle.filter(|_| self.follows) else {
            engine.prefetch(asked, fates);
            let loads = fates.contains(&Fate::LowerTier);
            return if loads { engine.load_time(asked) } else { Nanos::ZERO };
        };
        let fetching = engine.begin_prefetch(asked, fates);
        self.under_way.insert(handle, (asked.clone(), fetching));
        self.ends.get(&handle).map_or(Nanos::ZERO, |end| end.since(engine.now))
    }
}

impl Player<'_> {
    /// Background work of the recording.
    pub(super) fn follow(&mut self, recorded: &Recorded) {
        if !self.told.follows {
            return;
        }
        let failed = || failed_of(recorded);
        match &recorded.call {
            StorageCall::EvictionPass { tier, evicted, most } if usize::from(*tier) <= self.adapters() => {
                let left = self.engine.pass_up_to(usize::from(*tier), *most).unwrap_or(0);
                self.tally.passes_that_differ += u64::from(left != u64::from(*evicted));
            }
            StorageCall::StoreCompleted { tier, keys } => {
                let adapter = usize::from(*tier).checked_sub(1).filter(|at| *at < self.adapters());
                let is_postponed = recorded.outcome.iter().flatten().any(|fate| *fate == Fate::NoMemory);
                match adapter {
                    Some(adapter) if is_postponed => self.engine.postpone_copy(adapter, keys, 0),
                    Some(adapter) => self.engine.end_copy(adapter, keys, &failed()),
                    None => {}
                }
            }
            StorageCall::StoreBegun { tier, keys } => {
                let adapter = usize::from(*tier).checked_sub(1).filter(|at| *at < self.adapters());
                adapter.into_iter().for_each(|adapter| self.engine.resume_copy(adapter, keys));
            }
            StorageCall::PrefetchCompleted { handle, keys } => self.end_prefetch((*handle, keys), failed()),
            StorageCall::Found { tier, keys, layout } => self.find(*tier, keys, *layout),
            StorageCall::Removed { keys } => {
                keys.iter().for_each(|key| {
                    self.engine.force_out(*key);
                });
                self.engine.notes.add(self.engine.now, || Happened::Removed(keys.clone()));
            }
            _ => {}
        }
    }

    fn find(&mut self, tier: u8, keys: &Keys, layout: LayoutId) {
        let Some(adapter) = usize::from(tier).checked_sub(1).filter(|at| *at < self.adapters()) else {
            return;
        };
        let bytes = self.layout_bytes[layout.0 as usize];
        for key in keys {
            self.engine.restore(adapter, *key, bytes);
        }
        self.engine.notes.add(self.engine.now, || Happened::Found(adapter as u8, keys.clone(), layout));
    }

    fn adapters(&self) -> usize {
        self.engine.background().adapters.len()
    }

    fn end_prefetch(&mut self, (handle, keys): (u64, &Keys), failed: Keys) {
        let Some((asked, fetching)) = self.told.under_way.remove(&handle) else { return };
        self.fates.clear();
        self.engine.end_prefetch(&asked, fetching, &failed, &mut self.fates);
        self.engine.notes.add(self.engine.now, || Happened::Fetched(handle, keys.clone(), failed));
    }
}

/// Keys that a device failed.
fn failed_of(recorded: &Recorded) -> Keys {
    let fates = recorded.outcome.iter().flatten();
    let keys = recorded.call.keys().zip(fates).filter(|(_, fate)| **fate == Fate::Failed);
    keys.map(|(key, _): (KeyId, _)| key).collect()
}
