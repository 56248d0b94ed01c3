//! Calls as an engine makes them, small enough to be made again on 50 MiB.

use wavetank_model::{
    Fate, FetchPolicy, KeyFamily, KeyId, KeyTable, Layout, LayoutId, LockMode, Nanos, ObjectKey, Prefetch,
    Recorded, Row, StorageCall, WriteMode,
};

/// Ranks of two engines, as the reference packs them.
const RANKS: [u64; 2] = [0x0200_0200, 0x0201_0201];
const GROUPS: u32 = 3;
const CHUNKS: u32 = 6;
const TENANTS: [&str; 3] = ["", "blue", "rot ö"];
/// Chunks that must be there, by group: all, two, one.
const WINDOWS: [i32; 3] = [-1, 2, 1];

/// Keys of every tenant, rank and group.
struct Cells {
    table: KeyTable,
    layouts: Vec<LayoutId>,
}

impl Cells {
    fn all() -> Self {
        let mut table = KeyTable::default();
        for cache_salt in TENANTS {
            for kv_rank in RANKS {
                for object_group_id in 0..GROUPS {
                    let model_name = "meta-llama/Llama-3.1-8B";
                    let family = KeyFamily { model_name, kv_rank, object_group_id, cache_salt };
                    for chunk in 0..CHUNKS {
                        table.key_id(ObjectKey { chunk_hash: &[chunk as u8 + 1; 32], family });
                    }
                }
            }
        }
        let layout = |sides: &[&[u64]], dtype: &str| Layout {
            shapes: sides.iter().map(|sides| (*sides).into()).collect(),
            dtypes: sides.iter().map(|_| dtype.into()).collect(),
        };
        let layouts = [
            layout(&[&[2, 4, 16, 64]], "torch.bfloat16"),
            layout(&[&[2, 16, 64], &[16, 8]], "torch.float8_e4m3fn"),
            layout(&[&[300]], "torch.uint8"),
        ];
        let layouts = layouts.map(|layout| table.layout_id(layout)).to_vec();
        Self { table, layouts }
    }

    /// The first chunks of one tenant, rank and group.
    fn keys(tenant: u32, rank: u32, group: u32, chunks: u32) -> Box<[KeyId]> {
        let first = ((tenant * 2 + rank) * GROUPS + group) * CHUNKS;
        (first..first + chunks).map(KeyId).collect()
    }

    /// A row for each group and rank.
    fn rows(&self, tenant: u32, groups: u32, windows: &[i32], chunks: u32) -> Box<[Row]> {
        let cells = (0..groups).flat_map(|group| (0..2).map(move |rank| (group, rank)));
        cells
            .map(|(group, rank)| Row {
                keys: Self::keys(tenant, rank, group, chunks),
                group,
                layout: self.layouts[group as usize],
                window: windows[group as usize],
            })
            .collect()
    }
}

fn timed(calls: Vec<StorageCall>) -> Vec<Recorded> {
    (1..).zip(calls).map(|(number, call)| Recorded::plain(Nanos(number * 1_234_567), call)).collect()
}

/// Every kind of call and of background work, for each tenant and for two at once, plain and with everything
/// we know besides.
pub(crate) fn every_kind() -> (Vec<Recorded>, KeyTable) {
    let cells = Cells::all();
    let layout = cells.layouts[0];
    let mut calls = Vec::new();
    for tenant in 0..TENANTS.len() as u32 {
        let keys = |chunks| Cells::keys(tenant, 0, 0, chunks);
        let row = Row { keys: keys(3), group: 0, layout, window: -1 };
        let prefetch = Prefetch {
            request: format!("request-{tenant}-ü").into(),
            handle: Some(u64::from(tenant) + 1),
            ..Prefetch::of([row])
        };
        let mode = [WriteMode::New, WriteMode::Update, WriteMode::All][tenant as usize];
        calls.extend([
            StorageCall::ReserveWrite { keys: keys(4), layout, mode },
            StorageCall::FinishWrite { keys: keys(4) },
            StorageCall::StoreCompleted { tier: 1, keys: keys(4) },
            StorageCall::StoreBegun { tier: 1, keys: keys(2) },
            StorageCall::SubmitPrefetch(Box::new(prefetch)),
            StorageCall::PrefetchCompleted { handle: u64::from(tenant) + 1, keys: keys(2) },
            StorageCall::ReadEnter { keys: keys(3) },
            StorageCall::ReadExit { keys: keys(3) },
            StorageCall::FinishRead { keys: keys(3), locks: 1 },
            StorageCall::EvictionPass { tier: 0, evicted: 70_000, most: None },
            StorageCall::Removed { keys: keys(1) },
            StorageCall::Gap { lost: 5 },
        ]);
    }
    let mixed = [Cells::keys(1, 0, 0, 2), Cells::keys(2, 0, 0, 2)].concat().into_boxed_slice();
    calls.push(StorageCall::FinishWrite { keys: mixed });
    let mut recorded = timed(calls);
    for (number, call) in recorded.iter_mut().enumerate().filter(|(number, _)| number % 2 == 0) {
        let fates = Fate::ALL.iter().cycle().skip(number);
        call.outcome = Some(call.call.keys().zip(fates).map(|(_, fate)| *fate).collect());
        call.duration = Some(Nanos(12_345));
        call.thread = Some(70_000);
    }
    (recorded, cells.table)
}

/// Stores of all groups and ranks, and prefetches of them in every form.
pub(crate) fn grids() -> (Vec<Recorded>, KeyTable) {
    let cells = Cells::all();
    let mut calls = Vec::new();
    for (group, &layout) in (0..).zip(&cells.layouts) {
        for rank in 0..2 {
            let keys = Cells::keys(0, rank, group, 4);
            calls.push(StorageCall::ReserveWrite { keys: keys.clone(), layout, mode: WriteMode::New });
            calls.push(StorageCall::FinishWrite { keys });
        }
    }
    let forms = [FetchPolicy::Prefix, FetchPolicy::Full]
        .into_iter()
        .flat_map(|policy| [LockMode::Lock, LockMode::NoLock].map(|lock| (policy, lock)))
        .flat_map(|(policy, lock)| [1, 2].map(|readers| (policy, lock, readers)))
        .flat_map(|(policy, lock, readers)| [false, true].map(|skip| (policy, lock, readers, skip)));
    for (number, (policy, lock, readers, skip_l2)) in forms.enumerate() {
        // Everything that is found can be kept only without windows.
        let windows = if policy == FetchPolicy::Full { [-1; 3] } else { WINDOWS };
        let groups = 1 + number as u32 % GROUPS;
        let rows = cells.rows(0, groups, &windows, CHUNKS);
        let request = format!("grid-{number}").into();
        let held: Vec<Box<[KeyId]>> = rows.iter().map(|row| row.keys[..4].into()).collect();
        let prefetch = Prefetch { rows, readers, policy, lock, request, skip_l2, handle: None };
        calls.push(StorageCall::SubmitPrefetch(Box::new(prefetch)));
        for keys in held.into_iter().filter(|_| lock == LockMode::Lock) {
            calls.push(StorageCall::ReadEnter { keys: keys.clone() });
            calls.push(StorageCall::ReadExit { keys: keys.clone() });
            calls.push(StorageCall::FinishRead { keys, locks: readers });
        }
    }
    (timed(calls), cells.table)
}
