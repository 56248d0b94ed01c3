//! The whole report: the reference's keys where it has them, ours beside them.

use serde_json::{Map, Value, json};

use super::{cache, histograms, latency, object, tiers};
use crate::statistics::ratio;
use crate::storage::{
    Bottleneck, ClassSummary, GIB, Metric, MetricName, ReasonCounts, Second, Standing, StorageSummary,
};

/// The report of a run without what only the caller knows: plan, warnings, autoscaling, validation, trials.
pub fn json(run: &StorageSummary) -> Map<String, Value> {
    let requests = &run.requests;
    let mut report = object(json!({
        "requests_completed": requests.completed(),
        "total_tokens_generated": requests.generated_tokens,
        "total_storage_io_latency": requests.total_storage.as_seconds(),
        "total_generation_latency": requests.total_generation.as_seconds(),
        "throughput_timeline": timeline(run),
        "multi_turn_cache_hits": run.touches.history.hits,
        "multi_turn_cache_misses": run.touches.history.misses,
        "seed": run.setting.seed,
        "summary": summary(run),
        "accounting": tiers::accounting(run),
        "histograms": histograms::write(run),
    }));
    report.extend(lists(run));
    report
}

/// Latencies one by one, in seconds.
fn lists(run: &StorageSummary) -> Map<String, Value> {
    let Some(lists) = &run.requests.lists else {
        let whose = if run.parts.is_empty() { "" } else { " and the runs' own reports" };
        let note = format!("omitted: {} values, see histograms{whose}", run.requests.completed());
        return object(json!({ "latency_lists": note }));
    };
    let seconds = |values: &[u64]| values.iter().map(|&ns| json!(ns as f64 / 1e9)).collect();
    lists.iter().map(|(key, values)| ((*key).to_owned(), Value::Array(seconds(values)))).collect()
}

/// Second by second, or in wider steps after a day; the last one is as long as what is left of the window.
fn timeline(run: &StorageSummary) -> Vec<Value> {
    let elapsed = run.window.elapsed.as_seconds();
    let step = run.timeline_step.as_seconds();
    let row = |(number, second): (usize, &Second)| {
        let begin = number as f64 * step;
        let end = (begin + step).min(elapsed);
        let rate = |amount: f64| ratio(amount, end - begin);
        json!({
            "timestamp": end,
            "throughput_tokens_per_sec": rate(second.tokens as f64),
            "requests": second.requests,
            "end_to_end_p95_ms": second.end_to_end_p95.as_ms(),
            "storage_read_gbps": rate(second.storage_read_bytes as f64 / GIB),
            "storage_write_gbps": rate(second.storage_written_bytes as f64 / GIB),
        })
    };
    run.timeline.iter().enumerate().map(row).collect()
}

fn summary(run: &StorageSummary) -> Map<String, Value> {
    let mut keys = totals(run);
    keys.extend(latencies(run));
    keys.extend(object(json!({
        "cache_stats": cache::stats(run),
        "qos_metrics": qos(run),
        "prefix_cache_stats": prefix(&run.touches.prompt),
        "multi_turn_stats": hit_rate(&run.touches.history),
        "rag": hit_rate(&run.touches.document),
        "touches": touches(run),
        "read_amplification": read_amplification(run),
        "throughput": throughput(run),
        "decode_bytes_read": judged(&run.metric(MetricName::DecodeBytesRead)),
        "primary_metric": primary_metric(&run.primary_metric()),
        "bottleneck": bottleneck(&run.bottleneck()),
        "tiers": tiers::rows(run),
        "latency_by_size": tiers::by_size(run),
    })));
    keys
}

fn totals(run: &StorageSummary) -> Map<String, Value> {
    let requests = &run.requests;
    let wall_clock = run.metric(MetricName::WallClock).value;
    object(json!({
        "total_requests": requests.completed(),
        "total_tokens": requests.generated_tokens,
        "elapsed_time": run.window.elapsed.as_seconds(),
        "clock": run.setting.clock.name(),
        "avg_throughput_tokens_per_sec": wall_clock,
        "total_tokens_per_sec": wall_clock,
        "total_storage_io_time": requests.total_storage.as_seconds(),
        "storage_throughput_tokens_per_sec": run.metric(MetricName::StorageIo).value,
        "requests_per_second": run.per_second(|run| run.requests.completed() as f64),
        "in_flight": run.window.in_flight,
        "queued_at_end": run.window.queued_at_end,
        "turned_away": requests.turned_away(),
        "unfinished": requests.unfinished(),
    }))
}

fn latencies(run: &StorageSummary) -> Map<String, Value> {
    let requests = &run.requests;
    object(json!({
        "end_to_end_latency_ms": latency(&requests.end_to_end),
        "storage_io_latency_ms": latency(&requests.storage),
        "generation_latency_ms": latency(&requests.generation),
        "queue_wait_ms": latency(&requests.waited),
        "prefill_latency_ms": latency(&requests.prefill),
        "decode_latency_ms": latency(&requests.decode),
    }))
}

fn qos(run: &StorageSummary) -> Map<String, Value> {
    let classes = run.requests.classes.iter();
    classes.map(|class| (class.class.name().to_owned(), json!(class_keys(class)))).collect()
}

fn class_keys(class: &ClassSummary) -> Map<String, Value> {
    let mut keys = object(json!({
        "arrived": class.arrived,
        "turned_away": class.turned_away,
        "unfinished": class.unfinished,
    }));
    if !class.has_requests() {
        keys.insert("no_data".to_owned(), json!(true));
        return keys;
    }
    keys.extend(object(json!({ "total_requests": class.served(), "sla": promise(class) })));
    if class.served() > 0 {
        let mut latency_ms = latency(&class.end_to_end);
        latency_ms.insert("max".to_owned(), json!(class.end_to_end.max));
        keys.insert("latency_ms".to_owned(), json!(latency_ms));
    }
    keys
}

/// What the class was promised and what it got; without a request served there are no latencies to show.
fn promise(class: &ClassSummary) -> Map<String, Value> {
    let mut sla = object(json!({
        "target_p95_ms": class.target.p95_ms,
        "violations": class.violations,
        "compliance": class.compliance(),
        "met": class.met(),
    }));
    if class.served() > 0 {
        sla.insert("actual_p95_ms".to_owned(), json!(class.end_to_end.p95));
        sla.extend(class.tail().map(|tail| {
            let target = json!({ "target_ms": tail.target_ms, "actual_ms": tail.actual_ms, "met": tail.met });
            (tail.name.to_owned(), target)
        }));
    }
    sla
}

/// A shared prompt is looked up once by each request that has one, so a miss is a prompt not yet written, and
/// every lookup is a use of a prompt that others share.
fn prefix(prompt: &ReasonCounts) -> Value {
    json!({
        "prefix_hits": prompt.hits,
        "prefix_misses": prompt.misses,
        "system_prompt_reuse": prompt.lookups(),
        "common_phrase_reuse": 0,
        "bytes_saved": prompt.hit_bytes,
    })
}

fn hit_rate(counts: &ReasonCounts) -> Value {
    json!({ "cache_hits": counts.hits, "cache_misses": counts.misses, "hit_rate": counts.hit_rate() })
}

fn touches(run: &StorageSummary) -> Map<String, Value> {
    run.touches.reasons().into_iter().map(|(name, counts)| (name.to_owned(), json!(counts))).collect()
}

fn read_amplification(run: &StorageSummary) -> Value {
    let (read, (entries, context)) = (run.read_bytes(), run.own_entries());
    let full_reads = ratio(run.touches.decode.hits as f64, entries as f64);
    json!({
        "bytes_read": read,
        "context_bytes": context,
        "ratio": ratio(read as f64, context as f64),
        "full_reads_per_request": full_reads,
    })
}

fn throughput(run: &StorageSummary) -> Map<String, Value> {
    let rates = [MetricName::WallClock, MetricName::StorageIo, MetricName::StorageAssessment];
    rates.into_iter().map(|name| (name.key().to_owned(), json!(judged(&run.metric(name))))).collect()
}

fn judged(metric: &Metric) -> Map<String, Value> {
    let mut keys = object(json!({
        "value": metric.value,
        "unit": metric.unit,
        "meaning": metric.name.meaning(),
        "primary": metric.is_primary(),
        "misleading": false,
    }));
    if let Standing::Misleading(why) = metric.standing {
        keys.extend(object(json!({ "misleading": true, "why": why })));
    }
    keys
}

fn primary_metric(metric: &Metric) -> Value {
    json!({
        "name": metric.name.key(),
        "value": metric.value,
        "unit": metric.unit,
        "is_primary": metric.is_primary(),
    })
}

fn bottleneck(found: &Bottleneck) -> Value {
    let shares: Map<String, Value> =
        found.shares.iter().map(|(part, share)| (part.key().to_owned(), json!(share))).collect();
    json!({
        "part": found.part.map_or("none", |part| part.key()),
        "share": found.share,
        "sentence": found.sentence,
        "shares": shares,
    })
}
