//! A tier behind memory: which objects it has, and who leaves.

use wavetank_cache::eviction::{self, Eviction, Resident, Settings};
use wavetank_model::{KeyId, Nanos, Result};

use crate::l1::fingerprint;
use crate::note::{Happened, Notes};
use crate::plan::AdapterPlan;

/// One adapter.
pub(crate) struct Adapter {
    plan: AdapterPlan,
    policy: Option<Box<dyn Eviction>>,
    /// What each object takes; 0 where it is not there.
    bytes: Vec<u64>,
    /// Loads of each object under way: it stays so long.
    loads: Vec<u32>,
    used: u64,
    count: u64,
}

impl Adapter {
    pub(crate) fn new(plan: &AdapterPlan) -> Result<Self> {
        let settings = Settings { capacity_bytes: plan.capacity_bytes, ..Settings::default() };
        let build = |name: &str| (eviction::policy(name)?.build)(&settings);
        let policy = plan.eviction.as_ref().map(|eviction| build(&eviction.policy)).transpose()?;
        Ok(Self { plan: plan.clone(), policy, bytes: Vec::new(), loads: Vec::new(), used: 0, count: 0 })
    }

    pub(crate) fn grow(&mut self, keys: usize) {
        if self.bytes.len() < keys {
            self.bytes.resize(keys, 0);
            self.loads.resize(keys, 0);
        }
    }

    pub(crate) fn has(&self, key: KeyId) -> bool {
        self.bytes[key.0 as usize] > 0
    }

    /// What an object takes here.
    pub(crate) fn bytes_of(&self, key: KeyId) -> u64 {
        self.bytes[key.0 as usize]
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Takes what fits, in order; the rest is `dropped`. What is there already stays as it is.
    pub(crate) fn store(&mut self, objects: &[(KeyId, u64)], dropped: &mut Vec<KeyId>) {
        let mut taken = Vec::with_capacity(objects.len());
        for &(key, bytes) in objects {
            if self.has(key) {
                continue;
            }
            if self.plan.capacity_bytes.is_some_and(|capacity| self.used + bytes > capacity) {
                dropped.push(key);
                continue;
            }
            self.bytes[key.0 as usize] = bytes.max(1);
            self.used += bytes.max(1);
            self.count += 1;
            taken.push((key, bytes));
        }
        if let Some(policy) = &mut self.policy {
            for &(key, bytes) in taken.iter().rev() {
                policy.insert(key.0, &Resident { fingerprint: fingerprint(key), bytes, tenant: 0 });
            }
        }
    }

    /// An object is being loaded.
    pub(crate) fn pin(&mut self, key: KeyId) {
        self.loads[key.0 as usize] += 1;
    }

    /// It is not any more.
    pub(crate) fn unpin(&mut self, key: KeyId) {
        self.loads[key.0 as usize] -= 1;
    }

    /// Whether it is being loaded.
    pub(crate) fn is_pinned(&self, key: KeyId) -> bool {
        self.loads[key.0 as usize] > 0
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
            self.used -= bytes;
            self.count -= 1;
            if let Some(policy) = &mut self.policy {
                policy.remove(key.0);
            }
        }
        bytes > 0
    }

    /// A pass of the eviction loop: how many objects left, if it had reason to look.
    pub(crate) fn pass(&mut self, (now, number): (Nanos, u8), notes: &mut Notes) -> Option<u64> {
        let (plan, policy) = (self.plan.eviction.as_ref()?, self.policy.as_mut()?);
        let capacity = self.plan.capacity_bytes? as f64;
        if (self.used as f64) < plan.trigger_watermark * capacity || self.count == 0 {
            return None;
        }
        let asked = ((self.count as f64 * plan.eviction_ratio) as u64).max(1);
        let nobody = Resident { fingerprint: 0, bytes: 0, tenant: 0 };
        let loads = &self.loads;
        let mut left = 0;
        while left < asked {
            let Some(slot) = policy.victim(&nobody, &mut |slot| loads[slot as usize] == 0) else { break };
            policy.evict(slot);
            self.used -= std::mem::take(&mut self.bytes[slot as usize]);
            self.count -= 1;
            left += 1;
            notes.add(now, || Happened::Deleted(number, KeyId(slot)));
        }
        Some(left)
    }
}
