//! Who leaves a tier first: one file per policy, one row each in [`ALL`].
//!
//! A policy orders dense slots; it knows neither keys nor bytes on a device. Every call is O(1) but for the
//! busy slots that [`Eviction::victim`] has to step over.

mod arc;
mod fifo;
mod isolated_lru;
mod lfu;
mod lru;
mod noop;
mod s3fifo;
mod sieve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wavetank_model::{Result, described, find};

/// A dense slot number. It names one entry from `insert` to `evict` or `remove`, then is used again.
pub type Slot = u32;

/// What a policy knows of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The key's hash: how an entry that left is known again (ghosts).
    pub fingerprint: u64,
    /// Its weight.
    pub bytes: u64,
    /// Whose it is.
    pub tenant: u32,
}

impl Resident {
    /// Its bytes where a list is bounded by them: an entry of none still takes a place.
    fn weight(&self) -> u64 {
        self.bytes.max(1)
    }
}

/// An order in which entries leave.
///
/// The caller inserts a slot once, touches it when it is used, and takes it out with `evict` (the policy's
/// own choice) or `remove` (deleted, moved up, replaced). The policy never calls back.
pub trait Eviction: Send {
    /// `slot` entered.
    fn insert(&mut self, slot: Slot, entry: &Resident);

    /// `slot` was used.
    fn touch(&mut self, slot: Slot);

    /// The slot to leave next for `incoming`, among those that `evictable` accepts; it stays until `evict`.
    /// Looking may advance a hand or clear marks, as the policy's paper says.
    fn victim(&mut self, incoming: &Resident, evictable: &mut dyn FnMut(Slot) -> bool) -> Option<Slot>;

    /// `slot` left as a victim: the policy may remember it.
    fn evict(&mut self, slot: Slot);

    /// `slot` left for another reason and is forgotten.
    fn remove(&mut self, slot: Slot);

    /// Whether `incoming` may take free room; a tenant above its quota has to give up something of its own.
    fn admits(&self, incoming: &Resident) -> bool {
        self.excess(incoming) == 0
    }

    /// By how much the tenant of `incoming` would be above its quota with it.
    fn excess(&self, incoming: &Resident) -> u64 {
        let _ = incoming;
        0
    }
}

impl<P: Eviction + ?Sized> Eviction for Box<P> {
    fn insert(&mut self, slot: Slot, entry: &Resident) {
        (**self).insert(slot, entry);
    }
    fn touch(&mut self, slot: Slot) {
        (**self).touch(slot);
    }
    fn victim(&mut self, incoming: &Resident, evictable: &mut dyn FnMut(Slot) -> bool) -> Option<Slot> {
        (**self).victim(incoming, evictable)
    }
    fn evict(&mut self, slot: Slot) {
        (**self).evict(slot);
    }
    fn remove(&mut self, slot: Slot) {
        (**self).remove(slot);
    }
    fn admits(&self, incoming: &Resident) -> bool {
        (**self).admits(incoming)
    }
    fn excess(&self, incoming: &Resident) -> u64 {
        (**self).excess(incoming)
    }
}

/// What a policy is built from.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What the tier holds; without it a policy that needs one takes the most it has seen resident.
    pub capacity_bytes: Option<u64>,
    /// What each tenant may hold; only `isolated_lru` asks.
    pub quotas: Quotas,
}

/// How many bytes each tenant may hold in a tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// For tenants that are not named; without it they are unlimited.
    pub default_bytes: Option<u64>,
    /// For those that are.
    pub by_tenant: BTreeMap<u32, u64>,
}

impl Quotas {
    /// What `tenant` may hold, if there is a limit.
    pub fn of(&self, tenant: u32) -> Option<u64> {
        self.by_tenant.get(&tenant).copied().or(self.default_bytes)
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// It asks what each tenant may hold.
    pub has_quotas: bool,
    /// It knows entries again that left.
    pub remembers: bool,
    /// A part of the capacity on the same part of the entries serves the same share of them: what happens
    /// does not hang on single entries.
    pub scales: bool,
    /// Makes an empty one.
    pub build: fn(&Settings) -> Result<Box<dyn Eviction>>,
}

described!(Entry);

/// Every eviction policy, alphabetical. `wavetank list` prints this table.
pub const ALL: &[Entry] = &[
    arc::ENTRY,
    fifo::ENTRY,
    isolated_lru::ENTRY,
    lfu::ENTRY,
    lru::ENTRY,
    noop::ENTRY,
    s3fifo::ENTRY,
    sieve::ENTRY,
];

/// Least recently used: the one policy whose hit ratio at every capacity one pass finds ([`crate::mrc`]).
pub const LRU: &Entry = &lru::ENTRY;

/// The policy called `name`, in our spelling or in LMCache's (`LRU`, `IsolatedLRU`, `S3FIFO` …).
pub fn policy(name: &str) -> Result<&'static Entry> {
    let letters = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let known = ALL.iter().find(|row| letters(row.name) == letters(name));
    known.map_or_else(|| find("eviction policy", ALL, name), Ok)
}

/// The bytes a policy divides among its lists.
#[derive(Debug)]
struct Capacity {
    known: Option<u64>,
    resident: u64,
    most_resident: u64,
}

impl Capacity {
    fn of(settings: &Settings) -> Self {
        Self { known: settings.capacity_bytes, resident: 0, most_resident: 0 }
    }

    fn bytes(&self) -> u64 {
        self.known.unwrap_or(self.most_resident)
    }

    fn enter(&mut self, bytes: u64) {
        self.resident += bytes;
        self.most_resident = self.most_resident.max(self.resident);
    }

    fn leave(&mut self, bytes: u64) {
        self.resident -= bytes;
    }
}
