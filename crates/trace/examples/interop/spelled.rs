//! Records as the reference's decoder should see them, spelled out: names, arguments and times in full.

use serde_json::{Value, json};
use wavetank_model::{FetchPolicy, KeyId, KeyTable, LayoutId, LockMode, Prefetch, Recorded, StorageCall};

const STORAGE: &str = "lmcache.v1.distributed.storage_manager.StorageManager";

/// One record. Times are the bits of their numbers: JSON does not keep the last one.
pub(crate) fn record(recorded: &Recorded, keys: &KeyTable, began_s: f64) -> Value {
    let (name, args) = call(&recorded.call, keys);
    let mono = recorded.clock.map_or(recorded.at.as_seconds(), |clock| clock.mono_s);
    let wall = recorded.clock.map_or(began_s + mono, |clock| clock.wall_s);
    let bits = |seconds: f64| format!("{:016x}", seconds.to_bits());
    json!({"qualname": name, "t_mono": bits(mono), "t_wall": bits(wall), "args": args})
}

fn call(call: &StorageCall, table: &KeyTable) -> (String, Value) {
    let theirs = |name: &str| format!("{STORAGE}.{name}");
    let ours = |name: &str| format!("wavetank.{name}");
    match call {
        StorageCall::ReserveWrite { keys, layout, .. } => {
            let args = json!({"keys": spelled(keys, table), "layout_desc": laid_out(*layout, table)});
            (theirs("reserve_write"), args)
        }
        StorageCall::FinishWrite { keys } => (theirs("finish_write"), json!({"keys": spelled(keys, table)})),
        StorageCall::SubmitPrefetch(asked) => (theirs("submit_prefetch_task"), prefetch(asked, table)),
        StorageCall::ReadEnter { keys } => {
            (theirs("read_prefetched_results.__enter__"), json!({"keys": spelled(keys, table)}))
        }
        StorageCall::ReadExit { keys } => {
            (theirs("read_prefetched_results.__exit__"), json!({"keys": spelled(keys, table)}))
        }
        StorageCall::FinishRead { keys, locks } => {
            (theirs("finish_read_prefetched"), json!({"keys": spelled(keys, table), "read_locks": locks}))
        }
        StorageCall::EvictionPass { tier, evicted, .. } => {
            (ours("eviction_pass"), json!({"tier": tier, "evicted": evicted}))
        }
        StorageCall::Found { tier, keys, .. } => {
            (ours("found"), json!({"tier": tier, "keys": spelled(keys, table)}))
        }
        StorageCall::StoreCompleted { tier, keys } => {
            (ours("store_completed"), json!({"tier": tier, "keys": spelled(keys, table)}))
        }
        StorageCall::StoreBegun { tier, keys } => {
            (ours("store_begun"), json!({"tier": tier, "keys": spelled(keys, table)}))
        }
        StorageCall::PrefetchCompleted { handle, keys } => {
            (ours("prefetch_completed"), json!({"handle": handle, "keys": spelled(keys, table)}))
        }
        StorageCall::Removed { keys } => (ours("removed"), json!({"keys": spelled(keys, table)})),
        StorageCall::Gap { lost } => (ours("gap"), json!({"lost": lost})),
    }
}

fn prefetch(asked: &Prefetch, table: &KeyTable) -> Value {
    let rows: Vec<Value> = asked
        .rows
        .iter()
        .map(|row| {
            json!({
                "keys": spelled(&row.keys, table),
                "object_group_id": row.group,
                "layout_desc": laid_out(row.layout, table),
                "sliding_window_size": row.window,
            })
        })
        .collect();
    let policy = match asked.policy {
        FetchPolicy::Prefix => "prefix",
        FetchPolicy::Full => "full",
    };
    let lock = match asked.lock {
        LockMode::Lock => "LOCK",
        LockMode::NoLock => "NO_LOCK",
    };
    json!({
        "spec": {
            "key_groups": rows,
            "num_kv_readers": asked.readers,
            "fetching_policy": policy,
            "lock_mode": lock,
        },
        "external_request_id": asked.request,
        "skip_l2": asked.skip_l2,
    })
}

/// Hash, model, rank and group; the reference's files have no place for a tenant.
fn spelled(keys: &[KeyId], table: &KeyTable) -> Vec<Value> {
    let key = |key: &KeyId| {
        let key = table.key(*key);
        let hash: String = key.chunk_hash.iter().map(|byte| format!("{byte:02x}")).collect();
        json!([hash, key.family.model_name, key.family.kv_rank, key.family.object_group_id])
    };
    keys.iter().map(key).collect()
}

fn laid_out(layout: LayoutId, table: &KeyTable) -> Value {
    let layout = table.layout(layout);
    json!({"shapes": layout.shapes, "dtypes": layout.dtypes})
}
