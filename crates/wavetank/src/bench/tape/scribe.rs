//! From what the store did to the calls an engine would have made for it.
//!
//! A put asks for room and, when it is written, makes its entry visible. A get is a prefetch of one entry
//! that leaves it locked, a read of it, and the release of the lock. What leaves the store is told; what
//! moves between its tiers is not, because no caller sees it.

use std::collections::HashMap;

use wavetank_bench::{Call, CallDeed};
use wavetank_model::{
    FamilyId, Fate, KeyFamily, KeyId, KeyTable, Layout, LayoutId, Nanos, Prefetch, Recorded, Row,
    StorageCall, WriteMode,
};
use wavetank_store::Existing;
use wavetank_trace::recorder::{Page, Scribe};

use super::Noted;
use crate::bench::ModelPlan;

/// Writes down calls on the store of a benchmark.
pub(super) struct StoreScribe {
    model: String,
    kv_rank: u64,
    family: FamilyId,
    /// By size.
    layouts: HashMap<u64, LayoutId>,
    /// The size of each key of this page as it was last seen: a miss does not say it.
    sizes: Vec<u64>,
}

impl StoreScribe {
    pub(super) fn of(model: &ModelPlan) -> Self {
        let (layouts, sizes) = (HashMap::new(), Vec::new());
        Self { model: model.name.clone(), kv_rank: first_rank(model), family: FamilyId(0), layouts, sizes }
    }

    fn key(&mut self, call: &Call, page: &mut Page<'_>) -> KeyId {
        let key = page.keys.key_of(self.family, &call.key);
        let at = key.0 as usize;
        if at >= self.sizes.len() {
            self.sizes.resize(at + 1, 0);
        }
        if call.bytes > 0 {
            self.sizes[at] = call.bytes;
        }
        key
    }

    /// The layout of a key's entry: bytes, as many as it has.
    fn layout(&mut self, key: KeyId, page: &mut Page<'_>) -> LayoutId {
        let bytes = self.sizes[key.0 as usize];
        *self.layouts.entry(bytes).or_insert_with(|| {
            let (shapes, dtypes) = ([[bytes].into()].into(), ["torch.uint8".into()].into());
            page.keys.layout_id(Layout { shapes, dtypes })
        })
    }

    fn reserve(&mut self, key: KeyId, existing: Existing, page: &mut Page<'_>) -> StorageCall {
        let mode = match existing {
            Existing::Keep => WriteMode::New,
            Existing::Replace => WriteMode::All,
        };
        StorageCall::ReserveWrite { keys: [key].into(), layout: self.layout(key, page), mode }
    }

    fn look_up(&mut self, key: KeyId, page: &mut Page<'_>) -> StorageCall {
        let row = Row { keys: [key].into(), group: 0, layout: self.layout(key, page), window: -1 };
        StorageCall::SubmitPrefetch(Box::new(Prefetch::of([row])))
    }
}

impl Scribe<Noted> for StoreScribe {
    fn begin(&mut self, keys: &mut KeyTable) {
        let Self { model, kv_rank, .. } = self;
        let family = KeyFamily { model_name: model, kv_rank: *kv_rank, object_group_id: 0, cache_salt: "" };
        self.family = keys.family_id(family);
        self.layouts.clear();
        self.sizes.clear();
    }

    fn write(&mut self, note: Noted, page: &mut Page<'_>) {
        let Noted { at, call } = note;
        let key = self.key(&call, page);
        let record = |call: StorageCall, fate, duration, page: &mut Page<'_>| {
            let (thread, outcome) = (Some(note.call.caller), Some([fate].into()));
            page.record(&Recorded { duration, thread, outcome, ..Recorded::plain(at, call) });
        };
        let (fate, took) = (call.fate, Some(call.took).filter(|took| *took > Nanos::ZERO));
        match call.deed {
            CallDeed::Reserve(existing) => record(self.reserve(key, existing, page), fate, None, page),
            CallDeed::Publish => record(StorageCall::FinishWrite { keys: [key].into() }, fate, took, page),
            CallDeed::LookUp => {
                record(self.look_up(key, page), fate, None, page);
                if fate != Fate::Absent {
                    record(StorageCall::ReadEnter { keys: [key].into() }, Fate::Done, None, page);
                }
            }
            CallDeed::Read => {
                // A read that failed held its lock; one that found nothing any more has none to give back.
                let released = if fate == Fate::Absent { Fate::Absent } else { Fate::Done };
                record(StorageCall::ReadExit { keys: [key].into() }, fate, took, page);
                record(StorageCall::FinishRead { keys: [key].into(), locks: 1 }, released, None, page);
            }
            CallDeed::Leave => record(StorageCall::Removed { keys: [key].into() }, fate, None, page),
        }
    }
}

/// World size, rank, local world size and local rank, a byte each: entries are those of the first GPU.
fn first_rank(model: &ModelPlan) -> u64 {
    let world = u64::from(model.tensor_parallel.clamp(1, 255));
    world << 24 | world << 8
}
