//! The keys of a report: those of the reference (spec/kv-bench.md 16), the old ones of the product text, and
//! ours.

use serde_json::Value;

const TOP: &str = "requests_completed total_tokens_generated total_storage_io_latency \
    total_generation_latency end_to_end_latencies storage_latencies generation_latencies \
    throughput_timeline prefill_latencies decode_latencies multi_turn_cache_hits multi_turn_cache_misses \
    seed summary";
const TOP_OURS: &str = "schema_version plan warnings ended partial filled harness notes lost_events trials \
    wall accounting histograms autoscaling_stats autoscaling_summary block_layer";
const SUMMARY: &str = "total_requests total_tokens elapsed_time avg_throughput_tokens_per_sec \
    total_storage_io_time storage_throughput_tokens_per_sec requests_per_second end_to_end_latency_ms \
    storage_io_latency_ms generation_latency_ms cache_stats qos_metrics prefix_cache_stats \
    autoscaling_stats autoscaling_summary multi_turn_stats";
const SUMMARY_OLD: &str = "total_tokens_per_sec";
const SUMMARY_OURS: &str = "clock in_flight queued_at_end unfinished turned_away queue_wait_ms \
    prefill_latency_ms decode_latency_ms rag touches read_amplification throughput decode_bytes_read \
    primary_metric bottleneck tiers latency_by_size";
const CACHE: &str = "cache_hit_rate cache_hits cache_misses gpu_entries cpu_entries storage_entries \
    gpu_memory_used_gb cpu_memory_used_gb offloads_cpu offloads_storage storage_health prefill_writes \
    decode_reads system_prompt_hits common_phrase_hits user_cache_hits multi_turn_hits total_read_bytes \
    total_write_bytes total_read_gb total_write_gb read_write_ratio read_iops write_iops \
    storage_tokens_processed";
const CACHE_OLD: &str = "nvme_entries offloads_nvme prefill_bytes_written_gb decode_bytes_read_gb \
    nvme_throughput nvme_tokens_processed";
const CACHE_OURS: &str = "cache_lookups failed_reads existed_writes refused_writes failed_writes rag_hits \
    read_operations write_operations storage_throughput";
const PREFIX: &str = "prefix_hits prefix_misses system_prompt_reuse common_phrase_reuse bytes_saved";
const HEALTH: &str = "overall_status criteria passed_count total_count";
const CRITERION: &str = "name target actual unit passed";
const CLASS: &str = "total_requests sla";
pub(super) const PERCENTILES: [&str; 5] = ["p50", "p95", "p99", "p999", "p9999"];
/// Latencies of the summary.
pub(super) const LATENCIES: [&str; 6] = [
    "end_to_end_latency_ms",
    "storage_io_latency_ms",
    "generation_latency_ms",
    "queue_wait_ms",
    "prefill_latency_ms",
    "decode_latency_ms",
];

/// Whether a report has every key.
pub(super) fn check(report: &Value, what: &str) {
    let has = |object: &Value, keys: &str| {
        let missing: Vec<&str> = keys.split_whitespace().filter(|key| object.get(key).is_none()).collect();
        assert!(missing.is_empty(), "{what}: {missing:?} are missing in {object:#}");
    };
    has(report, TOP);
    has(report, TOP_OURS);
    let summary = &report["summary"];
    [SUMMARY, SUMMARY_OLD, SUMMARY_OURS].iter().for_each(|keys| has(summary, keys));
    let cache = &summary["cache_stats"];
    [CACHE, CACHE_OLD, CACHE_OURS].iter().for_each(|keys| has(cache, keys));
    for tier in ["gpu", "cpu", "storage"] {
        for rest in ["kv_bytes_read_gb", "kv_bytes_written_gb", "read_bandwidth_gbps", "write_bandwidth_gbps"]
        {
            has(cache, &format!("tier_{tier}_{rest}"));
        }
    }
    for row in summary["tiers"].as_array().expect("tiers") {
        sampled(row).for_each(|key| has(cache, &key));
    }
    has(&summary["prefix_cache_stats"], PREFIX);
    has(&summary["multi_turn_stats"], "cache_hits cache_misses hit_rate");
    for latency in LATENCIES {
        has(&summary[latency], "mean");
        has(&summary[latency], &PERCENTILES.join(" "));
    }
    has(&cache["storage_health"], HEALTH);
    for criterion in cache["storage_health"]["criteria"].as_array().expect("criteria") {
        has(criterion, CRITERION);
    }
    for class in ["interactive", "responsive", "batch"] {
        let class = &summary["qos_metrics"][class];
        has(class, "arrived turned_away unfinished");
        if class["no_data"] != true {
            has(class, CLASS);
            has(class, if class["total_requests"] == 0 { "" } else { "latency_ms" });
        }
    }
}

/// Keys that are there where there is something to tell.
fn sampled(tier: &Value) -> impl Iterator<Item = String> {
    let role = tier["role"].as_str().expect("a role");
    let mut names = Vec::new();
    for (lane, word) in [("reads", "read"), ("writes", "write")] {
        if tier[lane]["operations"].as_u64() == Some(0) {
            continue;
        }
        names.push(format!("{role}_{word}"));
        if role == "storage" {
            for measure in ["", "_device", "_host"] {
                names.push(format!("storage_{word}{measure}"));
                names.push(format!("nvme_{word}{measure}"));
            }
        }
    }
    names.into_iter().flat_map(|name| PERCENTILES.map(|percentile| format!("{name}_{percentile}_ms")))
}
