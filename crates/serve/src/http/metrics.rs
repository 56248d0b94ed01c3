//! `/metrics`: what is counted and measured, as Prometheus reads it.

use wavetank_calls::{QuotaPlan, Status};
use wavetank_telemetry::prometheus::{Names, Row, render};

use super::desk::Desk;
use crate::args::MetricNames;
use crate::phase::Phase;

/// All metrics as text.
pub(super) fn metrics(desk: &Desk) -> String {
    let names = match desk.plan.metric_names {
        MetricNames::Wavetank => Names::Ours,
        MetricNames::Reference => Names::WithReference,
    };
    render(&rows(desk), names)
}

fn rows(desk: &Desk) -> Vec<Row> {
    let status = desk.cache.storage.status();
    let counted = desk.cache.counters.rows().into_iter().chain(desk.rows());
    let mut rows: Vec<Row> =
        counted.map(|(name, help, count)| Row::counter(name, help.trim(), count)).collect();
    let (sessions, expired) = desk.sessions.counts();
    let ready = desk.phase.now() == Phase::Serving && desk.health.problem().is_none();
    rows.extend([
        Row::gauge("uptime", "Since the server started", desk.started.elapsed().as_secs_f64())
            .unit("seconds"),
        Row::gauge("ready", "Whether the server is ready", f64::from(u8::from(ready))),
        Row::gauge("requests_open", "Requests that have not ended", sessions as f64),
        Row::counter("requests_expired", "Requests that ended because they were silent", expired),
    ]);
    memory(&status, &mut rows);
    rows.extend(tenants(&status, &desk.plan.storage.l1.quotas));
    behind(&status, &mut rows);
    rows.extend(desk.parts.tell().into_iter().flat_map(|(_, told)| told.rows));
    rows
}

fn memory(status: &Status, rows: &mut Vec<Row>) {
    let Some(l1) = status.tiers.first() else { return };
    let bytes = |name: &'static str, help: &'static str, bytes: u64| {
        Row::gauge(name, help, bytes as f64).unit("bytes")
    };
    let passes = status.background.l1;
    rows.extend([
        Row::gauge("entries", "Objects there are, wherever they are", status.objects as f64),
        Row::gauge("l1_entries", "Objects in memory", l1.entries as f64),
        bytes("l1_used", "What objects in memory take", l1.bytes),
        bytes("l1_names", "What names take of memory, besides objects", status.names_bytes),
        bytes("l1_staging", "What objects take that are being written", status.staged_bytes),
        Row::counter("l1_evictions", "Objects that left memory to make room", passes.evicted),
        Row::counter("eviction_rounds", "Looks that found memory full enough", passes.passes),
    ]);
    if let Some(capacity) = l1.capacity_bytes.filter(|capacity| *capacity > 0) {
        rows.push(bytes("l1_capacity", "What memory may hold", capacity));
        let used = l1.bytes + status.names_bytes;
        rows.push(Row::gauge("l1_usage_ratio", "Of it, in use", used as f64 / capacity as f64));
    }
}

/// A row for each tenant with a quota and one for all others: clients choose salts, and a row for each would
/// be as many as they like.
fn tenants(status: &Status, quotas: &QuotaPlan) -> Vec<Row> {
    let row = |salt: &str, used: u64| {
        let row = Row::gauge("tenant_used", "What a tenant's objects take in memory", used as f64);
        row.unit("bytes").label("cache_salt", salt)
    };
    let is_known = |salt: &str| quotas.by_salt.contains_key(salt);
    let (known, others): (Vec<_>, Vec<_>) = status.tenants.iter().partition(|(salt, _)| is_known(salt));
    let mut rows: Vec<Row> = known.into_iter().map(|(salt, used)| row(salt, *used)).collect();
    rows.push(row("(others)", others.into_iter().map(|(_, used)| *used).sum()));
    rows
}

fn behind(status: &Status, rows: &mut Vec<Row>) {
    let background = &status.background;
    rows.extend([
        Row::gauge("l2_tiers", "Tiers behind memory", background.adapters.len() as f64),
        Row::gauge("l2_stores_in_flight", "Objects on their way behind", status.stores_in_flight as f64),
        Row::gauge("l2_loads_in_flight", "Prefetches that load", status.loads_in_flight as f64),
        Row::gauge("l2_loading", "What they load", status.loading_bytes as f64).unit("bytes"),
        Row::counter(
            "l2_refused_loads",
            "Objects not brought because too much was under way",
            status.refused_loads,
        ),
    ]);
    let tiers = status.tiers.iter().skip(1).zip(&background.adapters).zip(&status.late).enumerate();
    for (number, ((tier, counts), &late)) in tiers {
        let of = |row: Row| row.label("l2_name", format!("l2.{number}"));
        let counter = |name: &'static str, help: &'static str, count| of(Row::counter(name, help, count));
        let gauge =
            |name: &'static str, help: &'static str, value: u64| of(Row::gauge(name, help, value as f64));
        rows.extend([
            gauge("l2_entries", "Objects in a tier behind memory", tier.entries),
            gauge("l2_used", "What they take", tier.bytes).unit("bytes"),
            gauge("l2_recovered", "Objects found in it at the start", tier.recovered),
            counter("l2_evictions", "Objects that left it to make room", counts.evictions.evicted),
            counter("l2_stores_completed", "Objects copied to it", counts.copied),
            counter("l2_loads", "Objects loaded from it", counts.loaded),
            counter("l2_dropped", "Objects that found no room in it", counts.dropped),
            counter("l2_postponed", "Copies put off because too much was on its way", counts.postponed),
            counter("l2_skipped", "Objects that left memory before they were copied", counts.skipped),
            gauge("l2_waiting", "Objects in memory that are still to be copied", late),
            counter("l2_device_failures", "Objects it failed to write or read", counts.failed),
        ]);
        if let Some(capacity) = tier.capacity_bytes {
            rows.push(gauge("l2_capacity", "What it may hold", capacity).unit("bytes"));
        }
    }
}
