//! What holds for every report.
//!
//! Breaks when something is counted twice or not at all, when a window counts what is outside of it, or when
//! bytes are counted that did not move.

use serde_json::Value;

use super::keys::{LATENCIES, PERCENTILES};
use super::{list, number};

const GIB: f64 = (1u64 << 30) as f64;
/// Histograms keep three digits, and clocks are read one after the other.
const NEARLY: f64 = 1.002;
/// A header, and what fills the last block.
const AROUND_AN_ENTRY: f64 = 8192.0;
/// Files of the store that are no entries.
const STORE_BYTES: f64 = 65_536.0;
/// Fewer bytes are not worth comparing.
const WORTH_COUNTING: f64 = 16.0 * 1024.0 * 1024.0;

pub(super) fn check(report: &Value, what: &str) {
    lookups(report, what);
    tiers(report, what);
    requests(report, what);
    latencies(report, what);
    lists(report, what);
    kernel(report, what);
    health(report, what);
    metrics(report, what);
}

fn lookups(report: &Value, what: &str) {
    let cache = |key: &str| number(report, &format!("/summary/cache_stats/{key}"));
    let (hits, misses, failed) = (cache("cache_hits"), cache("cache_misses"), cache("failed_reads"));
    assert_eq!(hits + misses + failed, cache("cache_lookups"), "{what}");
    let rate = if hits > 0.0 { hits / cache("cache_lookups") } else { 0.0 };
    assert!((cache("cache_hit_rate") - rate).abs() < 1e-9, "{what}");
    let reasons = report["summary"]["touches"].as_object().expect("touches");
    for (key, all) in [
        ("hits", "cache_hits"),
        ("misses", "cache_misses"),
        ("stored", "prefill_writes"),
        ("hit_bytes", "total_read_bytes"),
        ("stored_bytes", "total_write_bytes"),
    ] {
        let sum: f64 = reasons.values().map(|reason| number(reason, &format!("/{key}"))).sum();
        assert_eq!(sum, cache(all), "{what}: {key}");
    }
    let kinds =
        ["system_prompt_hits", "user_cache_hits", "multi_turn_hits", "rag_hits", "common_phrase_hits"];
    assert_eq!(kinds.map(cache).iter().sum::<f64>(), hits, "{what}: hits by kind");
    assert_eq!(report["multi_turn_cache_hits"], report["summary"]["multi_turn_stats"]["cache_hits"]);
}

fn tiers(report: &Value, what: &str) {
    let cache = |key: &str| number(report, &format!("/summary/cache_stats/{key}"));
    let rows = list(report, "/summary/tiers");
    let sum = |pointer: &str| rows.iter().map(|row| number(row, pointer)).sum::<f64>();
    assert_eq!(sum("/hits"), cache("cache_hits"), "{what}");
    assert_eq!(sum("/hit_bytes"), cache("total_read_bytes"), "{what}");
    for part in ["operations", "bytes"] {
        assert_eq!(sum(&format!("/demotions_out/{part}")), sum(&format!("/demotions_in/{part}")), "{what}");
    }
    // The store may have ended what a request at an edge of the window has not heard of.
    let edge = number(report, "/summary/in_flight") + number(report, "/plan/run/users");
    for (lane, count, bytes) in [
        ("reads", "read_operations", "total_read_bytes"),
        ("writes", "write_operations", "total_write_bytes"),
    ] {
        let (store, users) = (sum(&format!("/{lane}/operations")), cache(count));
        assert!((store - users).abs() <= edge, "{what}: {store} {lane}, {users} for users");
        let moved = sum(&format!("/{lane}/bytes"));
        assert!(store != users || moved == cache(bytes), "{what}: {lane} of {moved} bytes");
    }
    for row in rows {
        let role = row["role"].as_str().expect("a role");
        let moved = |[asked, demoted]: [&str; 2]| {
            (number(row, &format!("/{asked}/bytes")) + number(row, &format!("/{demoted}/bytes"))) / GIB
        };
        let (read, written) = (moved(["reads", "demotions_out"]), moved(["writes", "demotions_in"]));
        assert!((cache(&format!("tier_{role}_kv_bytes_read_gb")) - read).abs() < 1e-9, "{what}: {role}");
        assert!(
            (cache(&format!("tier_{role}_kv_bytes_written_gb")) - written).abs() < 1e-9,
            "{what}: {role}"
        );
        let whole = |key: &str| number(report, &format!("/accounting/{role}/{key}")) / GIB;
        assert!(
            whole("read_bytes") >= read - 1e-9 && whole("written_bytes") >= written - 1e-9,
            "{what}: {role}"
        );
        assert_eq!(number(row, "/entries"), cache(&format!("{role}_entries")), "{what}: {role}");
    }
}

fn requests(report: &Value, what: &str) {
    let summary = |key: &str| number(report, &format!("/summary/{key}"));
    let served = number(report, "/requests_completed");
    assert_eq!(served, summary("total_requests"), "{what}");
    let classes = report["summary"]["qos_metrics"].as_object().expect("classes");
    let sum = |key: &str| classes.values().filter_map(|class| class[key].as_f64()).sum::<f64>();
    assert_eq!(sum("total_requests"), served, "{what}: classes");
    assert_eq!(sum("turned_away"), summary("turned_away"), "{what}: classes");
    let unfinished = summary("in_flight") + summary("queued_at_end");
    assert_eq!([summary("unfinished"), sum("unfinished")], [unfinished; 2], "{what}");
    let accounted = served + summary("in_flight") + summary("queued_at_end") + summary("turned_away");
    if number(report, "/plan/run/warmup") == 0.0 {
        assert_eq!(sum("arrived"), accounted, "{what}: every request is somewhere");
    } else {
        assert!(sum("arrived") <= accounted, "{what}: {} arrived, {accounted} are known", sum("arrived"));
    }
    let seconds = list(report, "/throughput_timeline");
    assert_eq!(seconds.iter().map(|row| number(row, "/requests")).sum::<f64>(), served, "{what}");
    assert_eq!(number(report, "/total_tokens_generated"), summary("total_tokens"), "{what}");
    let rate = summary("avg_throughput_tokens_per_sec") * summary("elapsed_time");
    assert!((rate - summary("total_tokens")).abs() < 1e-6 * rate.max(1.0), "{what}: rate × time = tokens");
}

fn latencies(report: &Value, what: &str) {
    let summary = &report["summary"];
    for name in LATENCIES {
        let of = |key: &str| number(&summary[name], &format!("/{key}"));
        let ladder = PERCENTILES.map(of);
        assert!(of("mean") >= 0.0 && ladder[0] >= 0.0 && ladder.is_sorted(), "{what}: {name} {ladder:?}");
    }
    for key in ["mean"].into_iter().chain(PERCENTILES) {
        let of = |name: &str| number(&summary[name], &format!("/{key}"));
        let total = of("end_to_end_latency_ms") * NEARLY + 0.01;
        for part in ["queue_wait_ms", "storage_io_latency_ms", "generation_latency_ms"] {
            assert!(of(part) <= total, "{what}: {key} of {part} is {} of {total}", of(part));
        }
    }
}

fn lists(report: &Value, what: &str) {
    let of = |name: &str| list(report, &format!("/{name}_latencies"));
    let (total, storage, generation) = (of("end_to_end"), of("storage"), of("generation"));
    let served = report["requests_completed"].as_u64().expect("a count") as usize;
    assert_eq!([total.len(), storage.len(), generation.len()], [served; 3], "{what}");
    let seconds = |value: &Value| value.as_f64().expect("seconds");
    for ((total, storage), generation) in total.iter().zip(storage).zip(generation) {
        let (total, parts) = (seconds(total), seconds(storage) + seconds(generation));
        assert!(total * NEARLY + 1e-3 >= parts, "{what}: {total} s in all, {parts} s in parts");
    }
    let sum: f64 = storage.iter().map(seconds).sum();
    assert!((sum - number(report, "/total_storage_io_latency")).abs() < 1e-6 * sum.max(1.0), "{what}");
}

/// The kernel counts a request again that a full queue sent back: seen once in a while on a busy machine, to
/// the byte of one entry. So many of a megabyte may be.
const SENT_BACK: f64 = 4.0 * (1u64 << 20) as f64;

/// Bytes counted are bytes moved, within 1 % or the headers: the kernel counts for this process alone. A file
/// system that cannot do without its cache makes a note.
fn kernel(report: &Value, what: &str) {
    let is_told = !report["accounting"]["kernel"].is_null();
    if !is_told || !list(report, "/notes").is_empty() {
        return;
    }
    for (way, entries) in [("read", "reads"), ("write", "writes")] {
        let of = |key: &str| number(report, &format!("/accounting/kernel/{key}{way}_bytes"));
        let (kernel, counted) = (of(""), of("counted_"));
        let headers = number(report, &format!("/accounting/storage/{entries}")) * AROUND_AN_ENTRY;
        let is_worth_it = kernel > 0.0 && counted > WORTH_COUNTING;
        let allowed = STORE_BYTES + headers.max(0.01 * kernel);
        let is_counted = counted - kernel <= allowed && kernel - counted <= allowed + SENT_BACK;
        assert!(!is_worth_it || is_counted, "{what}: {way} {counted} of {kernel}");
    }
}

fn health(report: &Value, what: &str) {
    let health = &report["summary"]["cache_stats"]["storage_health"];
    let criteria = list(health, "/criteria");
    let passed = |criterion: &&Value| criterion["passed"] == true;
    let judged = criteria.iter().filter(|criterion| criterion["passed"].is_boolean()).count();
    assert_eq!(health["total_count"], judged, "{what}");
    assert_eq!(health["passed_count"], criteria.iter().filter(passed).count(), "{what}");
    let expected = match (&health["passed_count"], &health["total_count"]) {
        (_, total) if *total == 0 => "NOT APPLICABLE",
        (passed, total) if passed == total => "PASS",
        _ => "FAIL",
    };
    assert_eq!(health["overall_status"], expected, "{what}");
}

/// The number to look at depends on how much main memory there is, and on whether the seed or the drive
/// decides how much is read.
fn metrics(report: &Value, what: &str) {
    let without_memory = number(report, "/plan/cpu_mem_gb") == 0.0;
    let cycles = &report["plan"]["run"]["feed"]["recording"]["cycles"];
    let counted = !report["plan"]["run"]["max_requests"].is_null() || !cycles.is_null();
    let on_the_wall = report["summary"]["clock"] == "wall";
    let rates = &report["summary"]["throughput"];
    assert_eq!(rates["storage_io"]["misleading"], without_memory, "{what}");
    assert_eq!(rates["wall_clock"]["primary"], on_the_wall, "{what}");
    let is_volume = on_the_wall && without_memory && !counted;
    assert_eq!(report["summary"]["decode_bytes_read"]["primary"], is_volume, "{what}");
    let shares = report["summary"]["bottleneck"]["shares"].as_object().expect("shares");
    let sum: f64 = shares.values().filter_map(Value::as_f64).sum();
    assert!(report["requests_completed"] == 0 || (sum - 1.0).abs() < 0.05, "{what}: {shares:?}");
}
