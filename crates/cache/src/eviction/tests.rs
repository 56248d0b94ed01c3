//! The contract every policy of the table keeps, and a cache of unit entries to compare one with its
//! textbook.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// What became of one access to a cache of unit entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Hit,
    Entered,
    /// It entered, and this key left for it.
    Evicted(u64),
    /// Nobody would leave.
    Refused,
}

/// Streams over `distinct` keys, the lower ones more often.
pub(super) fn keys(distinct: u64) -> impl Strategy<Value = Vec<u64>> {
    let key = (0..distinct, 0..distinct).prop_map(|(a, b)| a.min(b));
    prop::collection::vec(key, 0..300)
}

/// A cache of `capacity` entries of one byte.
struct UnitCache {
    policy: Box<dyn Eviction>,
    capacity: usize,
    slots: BTreeMap<u64, Slot>,
    free: Vec<Slot>,
}

impl UnitCache {
    fn of(policy: Box<dyn Eviction>, capacity: usize) -> Self {
        Self { policy, capacity, slots: BTreeMap::new(), free: (0..capacity as Slot).collect() }
    }

    fn access(&mut self, key: u64) -> Seen {
        if let Some(&slot) = self.slots.get(&key) {
            self.policy.touch(slot);
            return Seen::Hit;
        }
        let mut seen = Seen::Entered;
        let entry = Resident { fingerprint: key, bytes: 1, tenant: 0 };
        if self.slots.len() == self.capacity {
            let Some(victim) = self.policy.victim(&entry, &mut |_| true) else {
                return Seen::Refused;
            };
            let left = *self.slots.iter().find(|(_, slot)| **slot == victim).expect("resident").0;
            self.policy.evict(victim);
            self.slots.remove(&left);
            self.free.push(victim);
            seen = Seen::Evicted(left);
        }
        let slot = self.free.pop().expect("there is room");
        self.policy.insert(slot, &entry);
        self.slots.insert(key, slot);
        seen
    }
}

/// What becomes of each access of `stream`.
pub(super) fn accesses(policy: Box<dyn Eviction>, capacity: usize, stream: &[u64]) -> Vec<Seen> {
    let mut cache = UnitCache::of(policy, capacity);
    stream.iter().map(|&key| cache.access(key)).collect()
}

/// Which keys are there after `stream`.
pub(super) fn residents_after(policy: Box<dyn Eviction>, capacity: usize, stream: &[u64]) -> BTreeSet<u64> {
    let mut cache = UnitCache::of(policy, capacity);
    for &key in stream {
        cache.access(key);
    }
    cache.slots.into_keys().collect()
}

/// Hits on a hot set of half the capacity, each of whose rounds is followed by a scan of 60 % of it, once it
/// has been used three times.
pub(super) fn hits_beside_a_scan(policy: Box<dyn Eviction>, capacity: u64) -> usize {
    let hot = || 0..capacity / 2;
    let scan = |round: u64| (0..capacity * 6 / 10).map(move |at| 1_000_000 * (round + 1) + at);
    let warm_up = (0..3).flat_map(|_| hot());
    let rounds = (0..50).flat_map(|round| hot().chain(scan(round)));
    let stream: Vec<u64> = warm_up.chain(rounds).collect();
    let seen = accesses(policy, capacity as usize, &stream);
    seen.iter().filter(|&&seen| seen == Seen::Hit).count()
}

/// One step of the contract: what to do, and with whom.
type Step = (u8, u16, u64, u32);

/// The plainest model there is: who is in, and who may not leave.
struct Contract {
    name: &'static str,
    policy: Box<dyn Eviction>,
    residents: BTreeMap<Slot, bool>,
    free: Vec<Slot>,
}

impl Contract {
    fn of(row: &Entry, capacity_bytes: Option<u64>) -> Self {
        let settings = Settings { capacity_bytes, quotas: Quotas::default() };
        let policy = (row.build)(&settings).expect("built");
        Self { name: row.name, policy, residents: BTreeMap::new(), free: (0..64).rev().collect() }
    }

    fn nth(&self, number: u16) -> Option<Slot> {
        let at = usize::from(number).checked_rem(self.residents.len())?;
        self.residents.keys().nth(at).copied()
    }

    fn enter(&mut self, entry: &Resident) {
        if let Some(slot) = self.free.pop() {
            self.policy.insert(slot, entry);
            self.residents.insert(slot, false);
        }
    }

    fn leave(&mut self, slot: Slot) {
        assert!(self.residents.remove(&slot).is_some(), "{} left twice", self.name);
        self.free.push(slot);
    }

    /// A victim is resident and may leave; there is one if any may.
    fn choose(&mut self, incoming: &Resident) -> Option<Slot> {
        let residents = &self.residents;
        let mut evictable = |slot: Slot| !*residents.get(&slot).expect("asked about residents only");
        let chosen = self.policy.victim(incoming, &mut evictable);
        assert!(chosen.is_none_or(&mut evictable), "{} chose a busy slot", self.name);
        let any = self.residents.values().any(|busy| !busy);
        assert_eq!(chosen.is_some(), any && self.name != "noop", "{}", self.name);
        chosen
    }

    fn step(&mut self, (act, number, bytes, tenant): Step) {
        let entry = Resident { fingerprint: u64::from(number), bytes, tenant };
        match (act, self.nth(number)) {
            (0, Some(slot)) => self.policy.touch(slot),
            (1, Some(slot)) => {
                self.policy.remove(slot);
                self.leave(slot);
            }
            (2, Some(slot)) => {
                self.residents.entry(slot).and_modify(|busy| *busy = !*busy);
            }
            // Chosen, then spared.
            (3, Some(_)) => {
                self.choose(&entry);
            }
            (4 | 5, Some(_)) => {
                if let Some(slot) = self.choose(&entry) {
                    self.policy.evict(slot);
                    self.leave(slot);
                }
            }
            _ => self.enter(&entry),
        }
    }

    /// Everybody leaves, one by one; then the slots serve again.
    fn drain(&mut self) {
        let entry = Resident { fingerprint: 1, bytes: 1, tenant: 0 };
        self.residents.values_mut().for_each(|busy| *busy = false);
        while let Some(slot) = self.choose(&entry) {
            self.policy.evict(slot);
            self.leave(slot);
        }
        assert!(self.residents.is_empty() || self.name == "noop", "{}", self.name);
    }
}

proptest! {
    /// Broken by a victim that is not asked about, by a list that loses its tail in `remove` or while it
    /// steps over busy slots, by a round too few of a hand, and by bytes that are not given back
    /// (underflow).
    #[test]
    fn every_policy_keeps_the_contract(
        capacity in prop::option::of(0u64..400),
        script in prop::collection::vec((0u8..10, 0u16..200, 0u64..20, 0u32..3), 0..400),
    ) {
        for row in ALL {
            let mut contract = Contract::of(row, capacity);
            script.iter().for_each(|&step| contract.step(step));
            contract.drain();
            script.iter().rev().for_each(|&step| contract.step(step));
            contract.drain();
        }
    }

    /// The same stream, the same answers: broken by any order taken from a hash table.
    #[test]
    fn every_policy_is_deterministic(capacity in 1usize..12, stream in keys(30)) {
        for row in ALL {
            let settings = Settings { capacity_bytes: Some(capacity as u64), ..Settings::default() };
            let run = || accesses((row.build)(&settings).expect("built"), capacity, &stream);
            prop_assert_eq!(run(), run(), "{}", row.name);
        }
    }
}

#[test]
fn the_table_is_alphabetical_and_knows_other_spellings() {
    assert!(ALL.is_sorted_by_key(|row| row.name));
    let spelled = ["LRU", "LFU", "FIFO", "ARC", "S3FIFO", "SIEVE", "IsolatedLRU", "noop", "s3-fifo"];
    let ours = ["lru", "lfu", "fifo", "arc", "s3fifo", "sieve", "isolated_lru", "noop", "s3fifo"];
    assert_eq!(spelled.map(|name| policy(name).expect("known").name), ours);
    assert!(policy("mru").is_err());
}

/// Broken by: a look that passes again what the one before it passed: 1,000 × 400 steps.
#[test]
fn looking_for_victims_passes_what_has_to_stay_once() {
    for entry in ALL.iter().filter(|entry| entry.name != "noop") {
        let settings = Settings { capacity_bytes: Some(2000), ..Settings::default() };
        let (mut policy, mut looks) = ((entry.build)(&settings).unwrap(), 0u32);
        let resident = |slot: Slot| Resident { fingerprint: u64::from(slot) + 1, bytes: 1, tenant: 0 };
        (0..1500).for_each(|slot| policy.insert(slot, &resident(slot)));
        for incoming in 2000..2400 {
            let mut is_free = |slot: Slot| {
                looks += 1;
                slot >= 1000
            };
            let victim = policy.victim(&resident(incoming), &mut is_free).expect("500 may leave");
            assert!(victim >= 1000, "{}", entry.name);
            policy.evict(victim);
        }
        assert!(looks < 5000, "{}: {looks}", entry.name);
    }
}
