//! Keys, layouts and prefetches of a recording, counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wavetank_model::{FetchPolicy, KeyId, KeyTable, LayoutId, LockMode, Prefetch, Recorded, StorageCall};

/// Keys of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeyCounts {
    /// Keys of all calls.
    pub cells: u64,
    /// Different ones.
    pub distinct: u64,
    /// Bytes of the different ones whose layout is known.
    pub distinct_bytes: u64,
    /// Models.
    pub models: Vec<String>,
    /// Ranks, as `rank/world`.
    pub ranks: Vec<String>,
    /// Object groups.
    pub groups: Vec<u32>,
    /// Keys by tenant; without a tenant is the empty name.
    pub tenants: BTreeMap<String, u64>,
}

/// One layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayoutInfo {
    /// One shape per tensor.
    pub shapes: Vec<Vec<u64>>,
    /// One element type per tensor.
    pub dtypes: Vec<String>,
    /// Bytes of an object; absent with `problem`.
    pub bytes: Option<u64>,
    /// Why its size is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Different keys that have it.
    pub keys: u64,
}

/// Shapes of prefetches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PrefetchCounts {
    /// Prefetches.
    pub calls: u64,
    /// How many have so many rows.
    pub rows: BTreeMap<u64, u64>,
    /// Chunks of all of them.
    pub columns: u64,
    /// Most chunks of one.
    pub columns_max: u64,
    /// Locks taken of each object, and how many prefetches do.
    pub readers: BTreeMap<u32, u64>,
    /// Windows of rows that are not whole prefixes, by object group.
    pub windows: BTreeMap<u32, BTreeSet<i32>>,
    /// Those that keep all they find.
    pub full: u64,
    /// Those that lock nothing.
    pub no_lock: u64,
    /// Those that look into the first tier only.
    pub skip_l2: u64,
}

/// What calls hold.
#[derive(Default)]
pub(super) struct Contents {
    cells: u64,
    /// The layout of each key, once known, and who said so.
    layout: Vec<Option<(LayoutId, Said)>>,
    pub(super) prefetch: PrefetchCounts,
}

/// Who said what a key's object holds; a later one knows better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Reader,
    Writer,
}

impl Contents {
    pub(super) fn see(&mut self, recorded: &Recorded) {
        self.cells += recorded.call.keys().count() as u64;
        match &recorded.call {
            StorageCall::ReserveWrite { keys, layout, .. } => self.lay_out(keys, (*layout, Said::Writer)),
            StorageCall::SubmitPrefetch(prefetch) => {
                prefetch.rows.iter().for_each(|row| self.lay_out(&row.keys, (row.layout, Said::Reader)));
                self.prefetch.see(prefetch);
            }
            _ => {}
        }
    }

    /// Who asks for an object may not know its size; who writes it does.
    fn lay_out(&mut self, keys: &[KeyId], (layout, said): (LayoutId, Said)) {
        for key in keys {
            let at = key.0 as usize;
            if at >= self.layout.len() {
                self.layout.resize(at + 1, None);
            }
            if self.layout[at].is_none_or(|(_, before)| before <= said) {
                self.layout[at] = Some((layout, said));
            }
        }
    }

    pub(super) fn keys(&self, table: &KeyTable, layouts: &[LayoutInfo]) -> KeyCounts {
        let (mut models, mut ranks, mut groups) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut tenants = BTreeMap::new();
        for key in (0..table.len() as u32).map(|number| table.key(KeyId(number))) {
            models.insert(key.family.model_name);
            ranks.insert(key.family.kv_rank);
            groups.insert(key.family.object_group_id);
            *tenants.entry(key.family.cache_salt.to_owned()).or_default() += 1;
        }
        let sizes = layouts.iter().map(|layout| layout.bytes.unwrap_or(0).saturating_mul(layout.keys));
        KeyCounts {
            cells: self.cells,
            distinct: table.len() as u64,
            distinct_bytes: sizes.fold(0, u64::saturating_add),
            models: models.into_iter().map(str::to_owned).collect(),
            ranks: ranks.into_iter().map(rank).collect(),
            groups: groups.into_iter().collect(),
            tenants,
        }
    }

    pub(super) fn layouts(&self, table: &KeyTable) -> Vec<LayoutInfo> {
        let mut keys = vec![0; table.layouts().len()];
        self.layout.iter().flatten().for_each(|(layout, _)| keys[layout.0 as usize] += 1);
        let row = |(layout, keys): (&wavetank_model::Layout, u64)| {
            let bytes = layout.bytes();
            LayoutInfo {
                shapes: layout.shapes.iter().map(|shape| shape.to_vec()).collect(),
                dtypes: layout.dtypes.iter().map(|dtype| dtype.to_string()).collect(),
                problem: bytes.as_ref().err().map(|error| first_line(&error.to_string())),
                bytes: bytes.ok(),
                keys,
            }
        };
        table.layouts().iter().zip(keys).map(row).collect()
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// World size and rank are the two upper bytes (spec/storage-trace.md 2.1).
fn rank(kv_rank: u64) -> String {
    format!("{}/{}", kv_rank >> 16 & 0xff, kv_rank >> 24)
}

impl PrefetchCounts {
    fn see(&mut self, prefetch: &Prefetch) {
        let columns = prefetch.columns() as u64;
        self.calls += 1;
        *self.rows.entry(prefetch.rows.len() as u64).or_default() += 1;
        self.columns += columns;
        self.columns_max = self.columns_max.max(columns);
        *self.readers.entry(prefetch.readers).or_default() += 1;
        for row in prefetch.rows.iter().filter(|row| row.window > 0) {
            self.windows.entry(row.group).or_default().insert(row.window);
        }
        self.full += u64::from(prefetch.policy == FetchPolicy::Full);
        self.no_lock += u64::from(prefetch.lock == LockMode::NoLock);
        self.skip_l2 += u64::from(prefetch.skip_l2);
    }
}
