//! What tenants may have of memory: one at its quota gives up what is its own.
//!
//! What is being copied to a tier behind cannot leave until it is there. A tenant may be above its quota by
//! so much, else the quota would refuse writes of whoever writes faster than a device does. Its next write
//! brings it back.

use wavetank_model::{Fate, KeyId, Nanos};

use super::{L1, is_idle, leave};
use crate::busy::BusyTable;
use crate::engine::Engine;
use crate::label::Labels;
use crate::note::Notes;
use crate::record::{Record, Records};

impl L1 {
    /// Tenants that would be above their quota give up what is theirs; whether that is enough.
    pub(super) fn make_own_room(
        &mut self,
        (keys, fates): (&[KeyId], &[Fate]),
        taken: u64,
        now: Nanos,
        (labels, notes): (&Labels, &mut Notes),
    ) -> bool {
        let granted = keys.iter().zip(fates).filter(|(_, fate)| **fate == Fate::Done);
        let mut so_far: Vec<(u32, u64)> = Vec::new();
        for (&key, _) in granted {
            // A call may bring several objects of a tenant, which the policy does not know yet.
            let tenant = labels.tenant(key);
            let before: u64 = so_far.iter().filter(|row| row.0 == tenant).map(|row| row.1).sum();
            if !self.give_up((key, before + taken), now, (labels, notes)) {
                return false;
            }
            if keys.len() > 1 {
                so_far.push((tenant, taken));
            }
        }
        true
    }

    /// The tenant of `key` gives up what it must to have so much more; whether it may have it then.
    fn give_up(
        &mut self,
        (key, more): (KeyId, u64),
        now: Nanos,
        (labels, notes): (&Labels, &mut Notes),
    ) -> bool {
        let Self { policy, objects, busy, late, used, tracked, given_up, .. } = self;
        let incoming = labels.resident(key, more);
        loop {
            let excess = policy.excess(&incoming);
            if excess == 0 {
                return true;
            }
            let mut copying = 0;
            let mut is_free = |slot: u32| {
                copying += copied_only(objects, busy, slot, now);
                is_idle(objects, busy, slot, now)
            };
            // Where there is no victim, all that the tenant has was looked at.
            let Some(slot) = policy.victim(&incoming, &mut is_free) else { return excess <= copying };
            policy.evict(slot);
            *tracked -= 1;
            *given_up += 1;
            *used -= leave((objects, busy, late), slot, (now, notes));
        }
    }

    /// Whether an object of so many bytes could be written under `key` once what is there is gone. Nothing
    /// changes.
    fn could_replace(&mut self, (key, bytes): (KeyId, u64), now: Nanos, labels: &Labels) -> bool {
        let (taken, there) = (self.aligned(bytes), self.objects[key].resident().unwrap_or(0));
        let after = self.used - there + taken;
        if self.plan.capacity_bytes.is_some_and(|capacity| after > capacity) {
            return false;
        }
        // The policy knows what is on its way here as well, and goes on to.
        let is_coming = self.busy_of(key).is_some_and(|busy| busy.loads > 0);
        let Self { policy, objects, busy, .. } = self;
        let incoming = labels.resident(key, taken);
        let excess = policy.excess(&incoming).saturating_sub(if is_coming { 0 } else { there });
        let mut freed = 0;
        let mut is_enough = |slot: u32| {
            if slot != key.0 {
                let is_idle = is_idle(objects, busy, slot, now);
                let idle = objects[KeyId(slot)].resident().filter(|_| is_idle).unwrap_or(0);
                freed += idle + copied_only(objects, busy, slot, now);
            }
            freed >= excess
        };
        excess == 0 || policy.victim(&incoming, &mut is_enough).is_some()
    }

    /// Whether an object of so many bytes is more than a tenant may have.
    fn is_above_quota(&self, tenant: u32, bytes: u64) -> bool {
        self.quotas.of(tenant).is_some_and(|quota| self.aligned(bytes) > quota)
    }
}

impl Engine {
    /// Whether an object of so many bytes is more than its tenant may have.
    pub(crate) fn is_above_quota(&self, key: KeyId, bytes: u64) -> bool {
        self.l1.is_above_quota(self.labels.tenant(key), bytes)
    }

    /// Whether an object of so many bytes could be written under `key`, which has one, once that is gone.
    pub(crate) fn could_replace(&mut self, key: KeyId, bytes: u64) -> bool {
        self.l1.could_replace((key, bytes), self.now, &self.labels)
    }

    /// What tenants gave up has left memory like what a pass took out; what left before it was copied is not
    /// copied any more.
    pub(crate) fn count_left(&mut self) {
        self.counts.l1.evicted += std::mem::take(&mut self.l1.given_up);
        for (counts, missed) in self.counts.adapters.iter_mut().zip(self.l1.late.take_missed()) {
            counts.skipped += missed;
        }
    }
}

/// What an object takes that is there and has to stay for its copies alone.
fn copied_only(objects: &Records, busy: &BusyTable, slot: u32, now: Nanos) -> u64 {
    let object = objects[KeyId(slot)];
    let is_copied = || busy.of(KeyId(slot)).is_some_and(|busy| busy.keeps_for_copies_only(now));
    object.resident().filter(|_| object.has(Record::BUSY) && is_copied()).unwrap_or(0)
}
