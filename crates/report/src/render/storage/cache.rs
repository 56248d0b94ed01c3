//! `cache_stats`: the reference's keys, `nvme_*` beside each `storage_*` as the product text has them.

use serde_json::{Map, Value, json};
use wavetank_model::TierRole;

use super::object;
use crate::Spread;
use crate::statistics::ratio;
use crate::storage::{Assessment, GIB, MetricName, StorageSummary};

pub(super) fn stats(run: &StorageSummary) -> Map<String, Value> {
    let mut keys = lookups(run);
    keys.extend(volumes(run));
    for role in TierRole::ALL {
        keys.extend(tier(run, role));
    }
    let old = keys.iter().filter_map(|(key, value)| Some((old_name(key)?, value.clone())));
    let old: Map<String, Value> = old.collect();
    keys.extend(old);
    keys.insert("storage_health".to_owned(), health(&run.assessment()));
    keys
}

fn old_name(key: &str) -> Option<String> {
    let storage = key.strip_prefix("storage_").map(|rest| format!("nvme_{rest}"));
    storage.or_else(|| (key == "offloads_storage").then(|| "offloads_nvme".to_owned()))
}

fn lookups(run: &StorageSummary) -> Map<String, Value> {
    let (touches, all) = (&run.touches, run.touches.all());
    object(json!({
        "cache_hit_rate": all.hit_rate(),
        "cache_lookups": all.lookups(),
        "cache_hits": all.hits,
        "cache_misses": all.misses,
        "failed_reads": all.failed_reads,
        "system_prompt_hits": touches.prompt.hits,
        "common_phrase_hits": 0,
        "user_cache_hits": touches.decode.hits.saturating_add(touches.prefill.hits),
        "multi_turn_hits": touches.history.hits,
        "rag_hits": touches.document.hits,
        "prefill_writes": all.stored,
        "decode_reads": all.hits,
        "existed_writes": all.existed,
        "refused_writes": all.refused,
        "failed_writes": all.failed_writes,
    }))
}

/// What callers read and wrote: an entry that is written to several tiers counts once.
fn volumes(run: &StorageSummary) -> Map<String, Value> {
    let (read, written) = (run.read_bytes(), run.written_bytes());
    let all = run.touches.all();
    let (reads, writes) = (all.hits, all.stored);
    let storage = run.traffic(TierRole::Storage);
    object(json!({
        "total_read_bytes": read,
        "total_write_bytes": written,
        "total_read_gb": read as f64 / GIB,
        "total_write_gb": written as f64 / GIB,
        "read_write_ratio": ratio(read as f64, written.max(1) as f64),
        "read_operations": reads,
        "write_operations": writes,
        "read_iops": run.per_second(|run| run.touches.all().hits as f64),
        "write_iops": run.per_second(|run| run.touches.all().stored as f64),
        "storage_tokens_processed": run.storage_tokens(),
        "storage_throughput": run.metric(MetricName::StorageAssessment).value,
        "decode_bytes_read_gb": storage.read_bytes as f64 / GIB,
        "prefill_bytes_written_gb": storage.written_bytes as f64 / GIB,
    }))
}

/// The keys of one tier; a tier that the run does not have is empty. A drive is shown as callers see it, and
/// memory by what it took itself, because most of what its callers see is waiting for the drive.
fn tier(run: &StorageSummary, role: TierRole) -> Map<String, Value> {
    let name = role.name();
    let used = if role == TierRole::Storage { "used" } else { "memory_used" };
    let traffic = run.traffic(role);
    let at_end = run.tier(role).map(|tier| tier.at_end).unwrap_or_default();
    let (read, written) = (traffic.read_bytes as f64 / GIB, traffic.written_bytes as f64 / GIB);
    let bandwidth = run.bandwidth(role);
    let rows = [
        (format!("{name}_entries"), json!(at_end.entries)),
        (format!("{name}_{used}_gb"), json!(at_end.bytes as f64 / GIB)),
        (format!("tier_{name}_kv_bytes_read_gb"), json!(read)),
        (format!("tier_{name}_kv_bytes_written_gb"), json!(written)),
        (format!("tier_{name}_read_bandwidth_gbps"), json!(bandwidth.read_gbps)),
        (format!("tier_{name}_write_bandwidth_gbps"), json!(bandwidth.write_gbps)),
    ];
    let mut keys: Map<String, Value> = rows.into_iter().collect();
    if role != TierRole::Gpu {
        let placed = run
            .tier(role)
            .map_or(0, |tier| tier.writes.operations.saturating_add(tier.demoted_in.operations));
        keys.insert(format!("offloads_{name}"), json!(placed));
    }
    let Some(tier) = run.tier(role) else { return keys };
    for (direction, lane) in [("read", &tier.reads), ("write", &tier.writes)] {
        let lane_name = format!("{name}_{direction}");
        keys.extend(percentiles(&format!("{lane_name}_wait"), &lane.wait));
        if role == TierRole::Storage {
            keys.extend(percentiles(&lane_name, &lane.total));
            keys.extend(percentiles(&format!("{lane_name}_device"), &lane.device));
            keys.extend(percentiles(&format!("{lane_name}_host"), &lane.host));
        } else {
            keys.extend(percentiles(&lane_name, &lane.service));
            keys.extend(percentiles(&format!("{lane_name}_total"), &lane.total));
        }
    }
    keys
}

/// Nothing where there is no sample.
fn percentiles(name: &str, spread: &Spread) -> Vec<(String, Value)> {
    if spread.count() == 0 {
        return Vec::new();
    }
    spread
        .percentiles()
        .iter()
        .map(|(percentile, ms)| (format!("{name}_{percentile}_ms"), json!(ms)))
        .collect()
}

fn health(assessment: &Assessment) -> Value {
    json!({
        "overall_status": assessment.status(),
        "criteria": assessment.criteria,
        "passed_count": assessment.passed_count(),
        "total_count": assessment.total_count(),
    })
}
