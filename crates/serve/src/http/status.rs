//! `/status`: what the server is doing, as JSON, and the last ten minutes of it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value, json};
use wavetank_calls::{Background, Medium};

use super::desk::Desk;

/// Samples that are kept, and how far apart they are.
const KEPT: usize = 600;
pub(super) const INTERVAL_S: u64 = 1;

/// Says how a part of the server does.
pub(crate) type Told = Box<dyn Fn() -> Value + Send + Sync>;

/// Parts of the server besides storage, which say themselves how they do.
#[derive(Default)]
pub(crate) struct Parts(Mutex<Vec<(&'static str, Told)>>);

impl Parts {
    /// Asks `told` from now on.
    pub(crate) fn add(&self, name: &'static str, told: Told) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name, told));
    }

    pub(super) fn tell(&self) -> Map<String, Value> {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().map(|(name, told)| ((*name).to_owned(), told())).collect()
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

/// Counts once more.
pub(super) fn sample(desk: &Desk) {
    desk.history.push(now(desk));
}

fn now(desk: &Desk) -> Sample {
    let counters = &desk.cache.counters;
    let background = desk.cache.storage.background();
    Sample {
        at_s: desk.started.elapsed().as_secs(),
        lookups: counters.lookups.total(),
        hits: counters.l1_hits.total() + counters.l2_hits.total(),
        bytes_in: counters.bytes_in.total(),
        bytes_out: counters.bytes_out.total(),
        evicted: evicted(&background),
        l1_bytes: desk.cache.storage.used().0,
    }
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
    let mut told = json!({
        "server": {
            "name": "wavetank",
            "version": env!("CARGO_PKG_VERSION"),
            "phase": desk.phase.now(),
            "uptime_s": desk.started.elapsed().as_secs_f64(),
            "problem": problem(desk),
        },
        "tiers": tiers(desk),
        "entries": desk.cache.storage.len(),
        "lookups": {
            "objects": lookups,
            "l1_hits": l1,
            "l2_hits": l2,
            "misses": counters.misses.total(),
            "l2_failures": counters.l2_failures.total(),
            "hit_rate": ratio(l1 + l2, lookups),
        },
        "counters": counters.rows().into_iter().map(|(name, _, total)| (name.to_owned(), total.into()))
            .collect::<Map<String, Value>>(),
        "requests": { "open": sessions, "expired": expired },
        "http": http(desk),
        "history": { "interval_s": INTERVAL_S, "samples": desk.history.last(history) },
    });
    let Value::Object(fields) = &mut told else { return told };
    fields.extend(desk.parts.tell());
    told
}

fn http(desk: &Desk) -> Value {
    let counts = &desk.counts;
    json!({
        "connections": counts.opened.total() - counts.closed.total(),
        "connections_opened": counts.opened.total(),
        "connections_refused": counts.refused.total(),
        "requests": counts.requests.total(),
        "errors": counts.errors.total(),
    })
}

fn tiers(desk: &Desk) -> Vec<Value> {
    let plan = &desk.plan.storage;
    let (memory, behind) = desk.cache.storage.used();
    let background = desk.cache.storage.background();
    let l1 = json!({
        "name": "l1",
        "medium": "memory",
        "location": "",
        "policy": plan.l1.eviction.policy,
        "used_bytes": memory,
        "capacity_bytes": plan.l1.capacity_bytes,
        "evicted": background.l1.evicted,
        "eviction_passes": background.l1.passes,
    });
    let adapters = plan.adapters.iter().enumerate().map(|(number, adapter)| {
        let (medium, location) = match &adapter.medium {
            Medium::Mock => ("mock", String::new()),
            Medium::Backend { name, location, .. } => (name.as_str(), super::config::without_login(location)),
        };
        let counts = background.adapters.get(number).copied().unwrap_or_default();
        json!({
            "name": format!("l2.{number}"),
            "medium": medium,
            "location": location,
            "policy": adapter.eviction.as_ref().map(|eviction| &eviction.policy),
            "used_bytes": behind.get(number).copied().unwrap_or_default(),
            "capacity_bytes": adapter.capacity_bytes,
            "evicted": counts.evictions.evicted,
            "eviction_passes": counts.evictions.passes,
            "copied": counts.copied,
            "loaded": counts.loaded,
            "dropped": counts.dropped,
            "failed": counts.failed,
        })
    });
    [l1].into_iter().chain(adapters).collect()
}

/// What keeps the server from being ready, besides its phase; nothing if nothing does.
pub(super) fn problem(_desk: &Desk) -> Option<String> {
    None
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
