//! `/status`: what the server is doing, as JSON, and the last ten minutes of it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value, json};
use wavetank_calls::{Background, Behind, Medium, Status};
use wavetank_telemetry::prometheus::Row;

use super::config::without_login;
use super::desk::Desk;

/// Samples that are kept, and how far apart they are.
const KEPT: usize = 600;
pub(super) const INTERVAL_S: u64 = 1;

/// How a part of the server does.
pub(crate) struct Told {
    /// In `/status`.
    pub(crate) json: Value,
    /// In `/metrics`.
    pub(crate) rows: Vec<Row>,
}

/// Says it.
pub(crate) type Teller = Box<dyn Fn() -> Told + Send + Sync>;

/// Parts of the server besides storage, which say themselves how they do.
#[derive(Default)]
pub(crate) struct Parts(Mutex<Vec<(&'static str, Teller)>>);

impl Parts {
    /// Asks `teller` from now on.
    pub(crate) fn add(&self, name: &'static str, teller: Teller) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name, teller));
    }

    /// What each says.
    pub(super) fn tell(&self) -> Vec<(&'static str, Told)> {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().map(|(name, teller)| (*name, teller())).collect()
    }

    /// No part is asked any more.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What was counted at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Sample {
    /// Seconds since the start.
    at_s: u64,
    lookups: u64,
    hits: u64,
    bytes_in: u64,
    bytes_out: u64,
    evicted: u64,
    l1_bytes: u64,
}

/// The last ten minutes.
#[derive(Default)]
pub(super) struct History(Mutex<VecDeque<Sample>>);

impl History {
    /// Keeps `sample`, and not those that are too old.
    fn push(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == KEPT {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// The last `count`.
    fn last(&self, count: usize) -> Vec<Sample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().skip(samples.len().saturating_sub(count)).copied().collect()
    }
}

/// Counts once more, and looks whether tiers do what they should.
pub(super) fn sample(desk: &Desk) {
    let status = desk.cache.storage.status();
    desk.health.look(&status);
    let counters = &desk.cache.counters;
    desk.history.push(Sample {
        at_s: desk.started.elapsed().as_secs(),
        lookups: counters.lookups.total(),
        hits: counters.l1_hits.total() + counters.l2_hits.total(),
        bytes_in: counters.bytes_in.total(),
        bytes_out: counters.bytes_out.total(),
        evicted: evicted(&status.background),
        l1_bytes: status.tiers.first().map_or(0, |l1| l1.bytes),
    });
}

/// Objects that left a tier to make room.
pub(crate) fn evicted(background: &Background) -> u64 {
    background.l1.evicted + background.behind().evictions.evicted
}

/// What is told, with the last `history` samples.
pub(super) fn status(desk: &Desk, history: usize) -> Value {
    let counters = &desk.cache.counters;
    let (lookups, l1, l2) = (counters.lookups.total(), counters.l1_hits.total(), counters.l2_hits.total());
    let (sessions, expired) = desk.sessions.counts();
    let storage = desk.cache.storage.status();
    let counted = counters.rows().into_iter().chain(desk.rows());
    let counts: Map<String, Value> =
        counted.map(|(name, _, total)| (name.to_owned(), total.into())).collect();
    let mut told = json!({
        "server": {
            "name": "wavetank",
            "version": env!("CARGO_PKG_VERSION"),
            "phase": desk.phase.now(),
            "uptime_s": desk.started.elapsed().as_secs_f64(),
            "problem": desk.health.problem(),
        },
        "tiers": tiers(desk, &storage),
        "entries": storage.objects,
        "names_bytes": storage.names_bytes,
        "lookups": {
            "objects": lookups,
            "l1_hits": l1,
            "l2_hits": l2,
            "misses": counters.misses.total(),
            "l2_failures": counters.l2_failures.total(),
            "hit_rate": ratio(l1 + l2, lookups),
        },
        "in_flight": {
            "staged_bytes": storage.staged_bytes,
            "named_bytes": desk.sessions.named_bytes(),
            "l2_stores": storage.stores_in_flight,
            "l2_storing_bytes": storage.storing_bytes,
            "l2_loads": storage.loads_in_flight,
            "l2_loading_bytes": storage.loading_bytes,
            "l2_refused_loads": storage.refused_loads,
        },
        "tenants": tenants(&storage),
        "counters": counts,
        "requests": { "open": sessions, "expired": expired },
        "http": { "connections": desk.tally.connections() },
        "history": { "interval_s": INTERVAL_S, "samples": desk.history.last(history) },
    });
    let Value::Object(fields) = &mut told else { return told };
    fields.extend(desk.parts.tell().into_iter().map(|(name, told)| (name.to_owned(), told.json)));
    told
}

/// Bytes in memory by cache salt; objects of nobody have an empty one.
fn tenants(storage: &Status) -> Map<String, Value> {
    storage.tenants.iter().map(|(salt, bytes)| (salt.clone(), (*bytes).into())).collect()
}

fn tiers(desk: &Desk, storage: &Status) -> Vec<Value> {
    let plan = &desk.plan.storage;
    let l1 = (String::from("l1"), "memory", String::new(), Some(&plan.l1.eviction.policy));
    let behind = plan.adapters.iter().enumerate().map(|(number, adapter)| {
        let (medium, location) = match &adapter.medium {
            Medium::Mock => ("mock", String::new()),
            Medium::Backend { name, location, .. } => (name.as_str(), without_login(location)),
        };
        let policy = adapter.eviction.as_ref().map(|eviction| &eviction.policy);
        (format!("l2.{number}"), medium, location, policy)
    });
    let moved = [Behind { evictions: storage.background.l1, ..Behind::default() }];
    let moved = moved.iter().chain(&storage.background.adapters);
    let waiting = [0].into_iter().chain(storage.late.iter().copied());
    let tiers = [l1].into_iter().chain(behind).zip(&storage.tiers).zip(moved).zip(waiting);
    let told = tiers.map(|((((name, medium, location, policy), tier), moved), waiting)| {
        json!({
            "name": name,
            "medium": medium,
            "location": location,
            "policy": policy,
            "entries": tier.entries,
            "used_bytes": tier.bytes,
            "capacity_bytes": tier.capacity_bytes,
            "evicted": moved.evictions.evicted,
            "eviction_passes": moved.evictions.passes,
            "copied": moved.copied,
            "loaded": moved.loaded,
            "dropped": moved.dropped,
            "postponed": moved.postponed,
            "skipped": moved.skipped,
            "waiting": waiting,
            "failed": moved.failed,
            "recovery": {
                "recovered": tier.recovered, "torn": tier.torn, "foreign": tier.foreign, "spare": tier.spare,
            },
            "notes": tier.notes,
        })
    });
    told.collect()
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a history that grows, or that gives its first samples for its last.
    #[test]
    fn only_the_last_ten_minutes_are_kept() {
        let history = History::default();
        for at_s in 0..1000 {
            history.push(Sample { at_s, ..Sample::default() });
        }
        let last = history.last(10_000);
        assert_eq!((last.len(), last[0].at_s, last[KEPT - 1].at_s), (600, 400, 999));
        assert_eq!(history.last(2)[0].at_s, 998);
    }
}
