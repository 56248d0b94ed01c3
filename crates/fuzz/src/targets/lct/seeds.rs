//! Recordings with a call of every kind.

use wavetank_model::{
    Fate, FetchPolicy, KeyFamily, KeyId, KeyTable, Layout, LockMode, Nanos, ObjectKey, Prefetch, Recorded,
    Row, StorageCall, WriteMode,
};
use wavetank_trace::Output;
use wavetank_trace::calls::lct::{Header, Writer};

use super::mutate::{PREFIX, frames};

/// A recording with a call of every kind, and the same with tenants inside keys.
pub(super) fn all() -> Vec<Vec<u8>> {
    let ours = every_kind();
    let inside = tenants_inside(&ours);
    vec![ours, inside]
}

/// The same with a tenant in every key, which our writer does not do.
fn tenants_inside(bytes: &[u8]) -> Vec<u8> {
    const KEY: &[u8] = b"\x84\xaachunk_hash";
    const WITH_TENANT: &[u8] = b"\x85\xaacache_salt\xa5green\xaachunk_hash";
    let mut changed = Vec::new();
    for frame in frames(bytes) {
        let mut rest = &bytes[frame][PREFIX..];
        let mut content = Vec::new();
        while let Some(at) = rest.windows(KEY.len()).position(|part| part == KEY) {
            content.extend_from_slice(&rest[..at]);
            content.extend_from_slice(WITH_TENANT);
            rest = &rest[at + KEY.len()..];
        }
        content.extend_from_slice(rest);
        changed.extend_from_slice(&(content.len() as u32).to_be_bytes());
        changed.extend_from_slice(&content);
    }
    changed
}

fn every_kind() -> Vec<u8> {
    let mut table = KeyTable::default();
    for (hash, cache_salt) in [(1, ""), (2, "blue"), (3, "blue"), (4, "red")] {
        let family = KeyFamily { model_name: "m", kv_rank: 0x0100_0100, object_group_id: 0, cache_salt };
        table.key_id(ObjectKey { chunk_hash: &[hash; 32], family });
    }
    let layout = table.layout_id(Layout {
        shapes: Box::new([Box::new([2, 16])]),
        dtypes: Box::new(["torch.bfloat16".into()]),
    });
    let keys = || -> Box<[KeyId]> { (0..4).map(KeyId).collect() };
    let row = |group| Row { keys: keys(), group, layout, window: group as i32 - 1 };
    let prefetch = Prefetch {
        rows: Box::new([row(0), row(1), row(2)]),
        readers: 2,
        policy: FetchPolicy::Full,
        lock: LockMode::NoLock,
        request: "request".into(),
        skip_l2: true,
        handle: Some(7),
    };
    let calls = [
        StorageCall::ReserveWrite { keys: keys(), layout, mode: WriteMode::Update },
        StorageCall::FinishWrite { keys: keys() },
        StorageCall::SubmitPrefetch(Box::new(prefetch)),
        StorageCall::ReadEnter { keys: keys() },
        StorageCall::ReadExit { keys: keys() },
        StorageCall::FinishRead { keys: keys(), locks: 2 },
        StorageCall::EvictionPass { tier: 1, evicted: 300, most: None },
        StorageCall::StoreCompleted { tier: 2, keys: keys() },
        StorageCall::StoreBegun { tier: 2, keys: keys() },
        StorageCall::PrefetchCompleted { handle: 7, keys: keys() },
        StorageCall::Removed { keys: keys() },
        StorageCall::Gap { lost: 3 },
    ];
    let mut header = Header::storage(1e9, "{}".to_owned());
    header.level_meta.insert("recorder".to_owned(), "wavetank".into());
    header.part = 2;
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(Output::to(&mut bytes), &header).expect("memory takes every byte");
    for (number, call) in (0..).zip(calls) {
        let outcome = call.keys().map(|_| Fate::Done).collect();
        let recorded = Recorded {
            duration: Some(Nanos(number)),
            thread: Some(1),
            outcome: Some(outcome),
            ..Recorded::plain(Nanos(number * 1_000_000), call)
        };
        writer.record(&recorded, &table).expect("memory takes every byte");
    }
    writer.finish().expect("memory takes every byte");
    bytes
}
