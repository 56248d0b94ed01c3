//! A tier behind memory: which objects it has, which are on their way to it, and who leaves.

use std::collections::HashMap;

use wavetank_cache::eviction::{self, Eviction, Settings};
use wavetank_model::{KeyId, Nanos, Result};

use crate::busy::{Passing, Sparse};
use crate::grow::grow;
use crate::label::Labels;
use crate::note::{Happened, Notes};
use crate::plan::{AdapterPlan, Tenants};

/// One adapter.
pub(crate) struct Adapter {
    plan: AdapterPlan,
    policy: Option<Box<dyn Eviction>>,
    /// Whether the policy goes by what each tenant has.
    has_quotas: bool,
    /// The length of each object and one more; 0 where it is not there.
    bytes: Vec<u64>,
    /// Loads of objects under way: they stay so long.
    loads: Sparse<u32>,
    ways: Sparse<Ways>,
    used: u64,
    count: u64,
}

/// Copies of an object under way. They end in the order they began.
#[derive(Debug, Default)]
struct Ways {
    all: u32,
    /// The first so many of them are of an object that was removed since.
    outdated: u32,
}

impl Passing for Ways {
    fn is_over(&self) -> bool {
        self.all == 0
    }
}

/// How a copy ended, as far as the engine's books go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// None was under way.
    None,
    /// Its object was removed meanwhile.
    Outdated,
    /// What it brought is what was written last.
    Current,
}

impl Adapter {
    pub(crate) fn new(plan: &AdapterPlan, tenants: &Tenants) -> Result<Self> {
        let settings = Settings { capacity_bytes: plan.capacity_bytes, quotas: tenants.quotas(&plan.quotas) };
        let entry = plan.eviction.as_ref().map(|eviction| eviction::policy(&eviction.policy)).transpose()?;
        Ok(Self {
            plan: plan.clone(),
            policy: entry.map(|entry| (entry.build)(&settings)).transpose()?,
            has_quotas: entry.is_some_and(|entry| entry.has_quotas),
            bytes: Vec::new(),
            loads: Sparse::default(),
            ways: Sparse::default(),
            used: 0,
            count: 0,
        })
    }

    pub(crate) fn grow(&mut self, keys: usize) {
        grow(&mut self.bytes, keys);
    }

    pub(crate) fn has(&self, key: KeyId) -> bool {
        self.bytes[key.0 as usize] > 0
    }

    /// Whether anything is known of `key`.
    pub(crate) fn knows(&self, key: KeyId) -> bool {
        self.has(key) || self.is_pinned(key) || self.ways.of(key).is_some()
    }

    /// The length of an object; 0 where it is not there.
    pub(crate) fn bytes_of(&self, key: KeyId) -> u64 {
        self.bytes[key.0 as usize].saturating_sub(1)
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// A copy of an object begins its way here.
    pub(crate) fn begin_way(&mut self, key: KeyId) {
        self.ways.row(key).all += 1;
    }

    /// The first way of those of `key` ends.
    pub(crate) fn end_way(&mut self, key: KeyId) -> Way {
        let ended = self.ways.change(key, |ways| {
            ways.all -= 1;
            let was_outdated = ways.outdated > 0;
            ways.outdated -= u32::from(was_outdated);
            if was_outdated { Way::Outdated } else { Way::Current }
        });
        ended.map_or(Way::None, |(way, _)| way)
    }

    /// The last way of those of `key` is not gone.
    pub(crate) fn drop_way(&mut self, key: KeyId) -> Way {
        let dropped = self.ways.change(key, |ways| {
            ways.all -= 1;
            ways.outdated = ways.outdated.min(ways.all);
        });
        dropped.map_or(Way::None, |_| Way::Current)
    }

    /// What is on its way is not wanted any more.
    pub(crate) fn outdate(&mut self, key: KeyId) {
        self.ways.change(key, |ways| ways.outdated = ways.all);
    }

    /// Whether the next copy of `key` that ends is not wanted any more.
    pub(crate) fn is_outdated(&self, key: KeyId) -> bool {
        self.ways.of(key).is_some_and(|ways| ways.outdated > 0)
    }

    /// Takes what fits, in order; the rest is `dropped`. What is there already stays as it is. A tenant that
    /// would get above its quota gives up what is its own.
    pub(crate) fn store(
        &mut self,
        objects: &[(KeyId, u64)],
        dropped: &mut Vec<KeyId>,
        (labels, mut leaves): (&Labels, impl FnMut(KeyId)),
    ) {
        let mut taken = Vec::with_capacity(objects.len());
        // What the policy does not know yet, by tenant; where it goes by that.
        let mut coming: HashMap<u32, u64> = HashMap::new();
        for &(key, bytes) in objects {
            if self.has(key) {
                continue;
            }
            let tenant = labels.tenant(key);
            let before = coming.get(&tenant).copied().unwrap_or(0);
            let fits = self.make_own_room(key, before + bytes, (labels, &mut leaves));
            if !fits || self.plan.capacity_bytes.is_some_and(|capacity| self.used + bytes > capacity) {
                dropped.push(key);
                continue;
            }
            self.enter(key, bytes);
            taken.push((key, bytes));
            if self.has_quotas {
                *coming.entry(tenant).or_default() += bytes;
            }
        }
        if let Some(policy) = &mut self.policy {
            for &(key, bytes) in taken.iter().rev() {
                policy.insert(key.0, &labels.resident(key, bytes));
            }
        }
    }

    /// An object that was there from before; whether there is room for it.
    pub(crate) fn restore(&mut self, key: KeyId, bytes: u64, labels: &Labels) -> bool {
        let mut dropped = Vec::new();
        self.store(&[(key, bytes)], &mut dropped, (labels, |_| {}));
        dropped.is_empty()
    }

    fn enter(&mut self, key: KeyId, bytes: u64) {
        self.bytes[key.0 as usize] = bytes + 1;
        self.used += bytes.max(1);
        self.count += 1;
    }

    /// Whether the tenant of `key` may have so much more here, once it has given up what it must.
    fn make_own_room(
        &mut self,
        key: KeyId,
        more: u64,
        (labels, leaves): (&Labels, &mut impl FnMut(KeyId)),
    ) -> bool {
        let Self { policy: Some(policy), loads, bytes: lengths, used, count, .. } = self else { return true };
        let incoming = labels.resident(key, more);
        while !policy.admits(&incoming) {
            let mut is_free = |slot: u32| loads.of(KeyId(slot)).is_none();
            let Some(slot) = policy.victim(&incoming, &mut is_free) else { return false };
            policy.evict(slot);
            *used -= weight(std::mem::take(&mut lengths[slot as usize]));
            *count -= 1;
            leaves(KeyId(slot));
        }
        true
    }

    /// An object is being loaded.
    pub(crate) fn pin(&mut self, key: KeyId) {
        *self.loads.row(key) += 1;
    }

    /// It is not any more.
    pub(crate) fn unpin(&mut self, key: KeyId) {
        self.loads.change(key, |loads| *loads -= 1);
    }

    /// Whether it is being loaded.
    pub(crate) fn is_pinned(&self, key: KeyId) -> bool {
        self.loads.of(key).is_some()
    }

    /// `keys` were loaded, in this order. A recording may have taken some of them out meanwhile.
    pub(crate) fn loaded(&mut self, keys: &[KeyId]) {
        if let Some(policy) = &mut self.policy {
            let there = keys.iter().rev().filter(|key| self.bytes[key.0 as usize] > 0);
            there.for_each(|&key| policy.touch(key.0));
        }
    }

    /// Takes `key` out; whether it was there.
    pub(crate) fn forget(&mut self, key: KeyId) -> bool {
        let bytes = std::mem::take(&mut self.bytes[key.0 as usize]);
        if bytes > 0 {
            self.used -= weight(bytes);
            self.count -= 1;
            if let Some(policy) = &mut self.policy {
                policy.remove(key.0);
            }
        }
        bytes > 0
    }

    /// How many objects a pass of the eviction loop takes out, if it has reason to look.
    pub(crate) fn asked(&self) -> Option<u64> {
        let plan = self.plan.eviction.as_ref()?;
        let capacity = self.plan.capacity_bytes? as f64;
        if (self.used as f64) < plan.trigger_watermark * capacity || self.count == 0 {
            return None;
        }
        Some(self.share().max(1))
    }

    /// How many objects that is of those that are there.
    pub(crate) fn share(&self) -> u64 {
        let ratio = self.plan.eviction.as_ref().map_or(0.0, |plan| plan.eviction_ratio);
        (self.count as f64 * ratio) as u64
    }

    /// Takes out up to so many objects, in the policy's order: how many.
    pub(crate) fn take_out(&mut self, most: u64, number: u8, (now, notes): (Nanos, &mut Notes)) -> u64 {
        let Self { policy: Some(policy), loads, bytes, used, count, .. } = self else { return 0 };
        let mut left = 0;
        while left < most {
            let mut is_free = |slot: u32| loads.of(KeyId(slot)).is_none();
            let Some(slot) = policy.victim(&Labels::nobody(), &mut is_free) else { break };
            policy.evict(slot);
            *used -= weight(std::mem::take(&mut bytes[slot as usize]));
            *count -= 1;
            left += 1;
            notes.add(now, || Happened::Deleted(number, KeyId(slot)));
        }
        left
    }
}

/// What an object takes here, from what the table says.
fn weight(entry: u64) -> u64 {
    entry.saturating_sub(1).max(1)
}
