//! What is said tier by tier.

use serde_json::{Map, Value, json};

use super::{latency, object};
use crate::storage::{Bandwidth, GIB, LaneSummary, MoveSummary, SizeSummary, StorageSummary, TierSummary};

/// Every tier, in the order of their numbers.
pub(super) fn rows(run: &StorageSummary) -> Vec<Value> {
    run.tiers.iter().map(|tier| json!(row(run, tier))).collect()
}

fn row(run: &StorageSummary, tier: &TierSummary) -> Map<String, Value> {
    let Bandwidth { read_gbps, write_gbps } = run.bandwidth(tier.role);
    object(json!({
        "role": tier.role,
        "hits": tier.hits,
        "hit_bytes": tier.hit_bytes,
        "reads": lane(&tier.reads),
        "writes": lane(&tier.writes),
        "demotions_out": moved(&tier.demoted_out),
        "demotions_in": moved(&tier.demoted_in),
        "promotions_out": moved(&tier.promoted_out),
        "promotions_in": moved(&tier.promoted_in),
        "evictions": tier.evictions,
        "dropped_copies": tier.drops,
        "failures": tier.failures,
        "read_bandwidth_gbps": read_gbps,
        "write_bandwidth_gbps": write_gbps,
        "entries": tier.at_end.entries,
        "bytes": tier.at_end.bytes,
    }))
}

fn lane(lane: &LaneSummary) -> Value {
    json!({
        "operations": lane.operations,
        "bytes": lane.bytes,
        "total_ms": latency(&lane.total),
        "device_ms": latency(&lane.device),
        "host_ms": latency(&lane.host),
        "wait_ms": latency(&lane.wait),
        "service_ms": latency(&lane.service),
    })
}

fn moved(moves: &MoveSummary) -> Value {
    json!({ "operations": moves.operations, "bytes": moves.bytes, "total_ms": latency(&moves.total) })
}

/// Latency at the device by size of the entry: a small entry that is slow does not hide behind a large one.
pub(super) fn by_size(run: &StorageSummary) -> Vec<Value> {
    let lanes =
        run.tiers.iter().flat_map(|tier| [(tier, "read", &tier.reads), (tier, "write", &tier.writes)]);
    let rows = lanes.flat_map(|(tier, operation, lane)| {
        lane.sizes.iter().map(move |size| size_row(tier.role.name(), operation, size))
    });
    rows.collect()
}

fn size_row(tier: &str, operation: &str, size: &SizeSummary) -> Value {
    json!({
        "tier": tier,
        "operation": operation,
        "size": size.class,
        "count": size.device.count(),
        "p50_ms": size.device.p50,
        "p95_ms": size.device.p95,
        "p99_ms": size.device.p99,
        "p95_ms_per_mib": size.device_per_mib.p95,
        "gbps": size.bytes_per_device_second() / GIB,
    })
}

/// Bytes of the whole run, with warm-up and drain, to be compared with what the kernel counted.
pub(super) fn accounting(run: &StorageSummary) -> Map<String, Value> {
    run.tiers.iter().map(|tier| (tier.role.name().to_owned(), json!(tier.whole_run))).collect()
}
