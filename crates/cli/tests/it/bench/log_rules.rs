//! The rules of the reference for what one user does to the cache (spec/kv-bench.md 7, 9 and 12), checked row
//! by row: a second, naive implementation that knows nothing but the log.
//!
//! Breaks when an entry is read that was not written, a victim is not the least recently used one, room is
//! made where there is some, a tier is passed over that would do, or history is left out.

use std::collections::BTreeMap;

use wavetank_model::Nanos;
use wavetank_trace::calls::{Operation, Phase, TierCall};

use super::TOKEN_BYTES;

/// Where an entry is, how long it is, and when it came there or was last asked for: each tier has its own
/// order, where the reference keeps one for all of them.
#[derive(Clone, Copy)]
struct Held {
    tier: usize,
    bytes: u64,
    touched: usize,
}

/// The entry of the request that is being served. I/O takes no time: what is read later is read by the next
/// one.
struct Own {
    key: String,
    at: Nanos,
    reads: u64,
}

/// What the log says is in the cache.
pub(super) struct Checker {
    limits: [u64; 3],
    held: BTreeMap<String, Held>,
    /// The entry that is being moved down, and where it has to come next.
    moving: Option<(String, u64, usize)>,
    /// Bytes that the next write for a request needs room for are known once it comes: victims until then.
    victims: Vec<(usize, u64)>,
    /// Turns read since the last entry was written, oldest first.
    history: Vec<String>,
    own: Option<Own>,
    row: usize,
    /// Reads of each request's own entry.
    pub(super) own_reads: Vec<u64>,
    pub(super) demotions: u64,
    pub(super) deletes: u64,
}

impl Checker {
    pub(super) fn new(limits: [u64; 3]) -> Self {
        Self {
            limits,
            held: BTreeMap::new(),
            moving: None,
            victims: Vec::new(),
            history: Vec::new(),
            own: None,
            row: 0,
            own_reads: Vec::new(),
            demotions: 0,
            deletes: 0,
        }
    }

    /// Checks one row.
    pub(super) fn check(&mut self, call: &TierCall) {
        self.row += 1;
        let (key, tier, row) = (call.key.to_string(), usize::from(call.tier), self.row);
        assert!(call.bytes > 0 && call.bytes.is_multiple_of(TOKEN_BYTES), "row {row}: {call:?}");
        assert!(self.limits[tier] > 0, "row {row}: there is no such tier: {call:?}");
        if let Some((moved, bytes, to)) = self.moving.take() {
            let written = (call.operation, call.phase, &key, call.bytes, tier);
            assert_eq!(written, (Operation::Write, Phase::Evict, &moved, bytes, to), "row {row}");
            let held = self.held.get_mut(&key).expect("it was read");
            return *held = Held { tier, touched: row, ..*held };
        }
        match (call.operation, call.phase) {
            (Operation::Read, Phase::Evict) => self.moves_down(key, tier, call.bytes),
            (Operation::Delete, Phase::Evict) => self.deleted(&key, tier, call.bytes),
            (Operation::Write, Phase::Prefill) => self.written(key, call),
            (Operation::Read, Phase::Decode | Phase::Both | Phase::Prefill) => self.read(key, call),
            _ => panic!("row {row}: {call:?}"),
        }
    }

    fn used(&self, tier: usize) -> u64 {
        self.held.values().filter(|held| held.tier == tier).map(|held| held.bytes).sum()
    }

    /// The one that came or was asked for longest ago goes first.
    fn is_victim(&mut self, key: &str, tier: usize, bytes: u64) {
        let oldest =
            self.held.iter().filter(|(_, held)| held.tier == tier).min_by_key(|(_, held)| held.touched);
        let (oldest, held) = oldest.expect("a tier with something in it");
        assert_eq!((oldest.as_str(), held.bytes), (key, bytes), "row {}: who leaves tier {tier}", self.row);
        self.victims.push((tier, self.used(tier)));
    }

    fn moves_down(&mut self, key: String, tier: usize, bytes: u64) {
        self.is_victim(&key, tier, bytes);
        assert!(tier < 2, "row {}: nothing is below storage", self.row);
        self.demotions += 1;
        self.moving = Some((key, bytes, tier + 1));
    }

    fn deleted(&mut self, key: &str, tier: usize, bytes: u64) {
        self.is_victim(key, tier, bytes);
        assert_eq!(tier, 2, "row {}: what is above storage moves down", self.row);
        self.deletes += 1;
        self.held.remove(key);
    }

    fn read(&mut self, key: String, call: &TierCall) {
        let row = self.row;
        let held = self.held.get_mut(&key).unwrap_or_else(|| panic!("row {row}: {key} was never written"));
        assert_eq!((held.tier, held.bytes), (usize::from(call.tier), call.bytes), "row {row}: {key}");
        held.touched = row;
        if key.starts_with("kv_system_") {
            assert_ne!(call.phase, Phase::Decode, "row {row}: a prompt is read for all of a request");
            return self.begins();
        }
        assert_eq!(call.phase, Phase::Decode, "row {row}");
        match &mut self.own {
            Some(own) if own.key == key && own.at == call.at => own.reads += 1,
            _ => {
                self.begins();
                self.history.push(key);
            }
        }
    }

    /// A request is over when the next one begins.
    pub(super) fn begins(&mut self) {
        self.own_reads.extend(self.own.take().map(|own| own.reads));
    }

    fn written(&mut self, key: String, call: &TierCall) {
        let (row, tier, bytes) = (self.row, usize::from(call.tier), call.bytes);
        assert!(!self.held.contains_key(&key), "row {row}: {key} is written while it is there");
        for (above, limit) in self.limits.iter().enumerate().take(tier).filter(|(_, limit)| **limit > 0) {
            let (used, limit) = (self.used(above) as f64, *limit as f64);
            let (need, target) = (bytes as f64, 0.8 * limit);
            let is_large = need > 0.95 * limit || (used < 0.2 * limit && need > 0.5 * target);
            assert!(is_large, "row {row}: {key} would fit tier {above}: {used} + {need} of {limit}");
        }
        self.had_to_go(tier, bytes);
        self.held.insert(key.clone(), Held { tier, bytes, touched: row });
        assert!(self.used(tier) <= self.limits[tier], "row {row}: tier {tier} holds {}", self.used(tier));
        if !key.starts_with("kv_system_") {
            self.begins();
            self.has_its_history(&key);
            self.own = Some(Own { key, at: call.at, reads: 0 });
        }
    }

    /// Nothing left the tier while there was room: it was full before each victim.
    fn had_to_go(&mut self, tier: usize, bytes: u64) {
        let share = if tier == 2 { 1.0 } else { 0.8 };
        for (from, used) in std::mem::take(&mut self.victims) {
            let is_full = (used + bytes) as f64 > share * self.limits[tier] as f64;
            assert!(from != tier || is_full, "row {}: {used} + {bytes} fit tier {tier}", self.row);
        }
    }

    /// Every earlier turn that is still there was read, oldest first.
    fn has_its_history(&mut self, key: &str) {
        let (talk, turn) = key.rsplit_once("_turn_").expect("a turn");
        let earlier = (1..turn.parse::<u32>().expect("a number")).map(|turn| format!("{talk}_turn_{turn}"));
        let read = std::mem::take(&mut self.history);
        let known: Vec<String> = earlier.clone().filter(|key| read.contains(key)).collect();
        assert_eq!(read, known, "row {}: the history of {key}", self.row);
        for missed in earlier.filter(|key| !read.contains(key)) {
            let kept = self.held.get(&missed).is_some_and(|held| held.touched < self.row);
            assert!(!kept, "row {}: {missed} is there and was not read for {key}", self.row);
        }
    }
}
