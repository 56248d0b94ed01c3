//! The tier in memory: which objects are resident or being written, who holds them, how much they take.

use wavetank_cache::eviction::{self, Eviction, Quotas, Settings};
use wavetank_model::{Fate, KeyId, Nanos, Result};

use crate::busy::{Busy, BusyTable};
use crate::label::Labels;
use crate::late::Late;
use crate::lock::Lock;
use crate::note::{Happened, Notes};
use crate::plan::{L1Plan, Tenants};
use crate::record::{Record, Records};

mod copying;
mod quota;

/// Memory.
pub(crate) struct L1 {
    plan: L1Plan,
    policy: Box<dyn Eviction>,
    /// Where the policy goes by them.
    quotas: Quotas,
    objects: Records,
    busy: BusyTable,
    /// What is to be copied later.
    late: Late,
    used: u64,
    /// What of it is taken by objects that are being written and have no name yet.
    unnamed: u64,
    tracked: u64,
    /// Objects that left because their tenant was at its quota, until they are counted.
    given_up: u64,
}

impl L1 {
    pub(crate) fn new(plan: &L1Plan, tenants: &Tenants) -> Result<Self> {
        let entry = eviction::policy(&plan.eviction.policy)?;
        let quotas = tenants.quotas(&plan.quotas);
        let settings = Settings { capacity_bytes: plan.capacity_bytes, quotas: quotas.clone() };
        let policy = (entry.build)(&settings)?;
        Ok(Self {
            plan: plan.clone(),
            policy,
            quotas: if entry.has_quotas { quotas } else { Quotas::default() },
            objects: Records::default(),
            busy: BusyTable::default(),
            late: Late::default(),
            used: 0,
            unnamed: 0,
            tracked: 0,
            given_up: 0,
        })
    }

    /// Makes room for keys up to and without `keys` in its tables.
    pub(crate) fn grow(&mut self, keys: usize) {
        self.objects.grow(keys);
    }

    /// Bytes of objects, resident or being written.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Those of objects that have no name yet.
    pub(crate) fn unnamed(&self) -> u64 {
        self.unnamed
    }

    /// So much is taken by objects that have no name yet.
    pub(crate) fn set_unnamed(&mut self, bytes: u64) {
        self.used = self.used - self.unnamed + bytes;
        self.unnamed = bytes;
    }

    pub(crate) fn is_resident(&self, key: KeyId) -> bool {
        self.objects[key].has(Record::RESIDENT)
    }

    /// Whether anything is known of `key`.
    pub(crate) fn knows(&self, key: KeyId) -> bool {
        let object = self.objects[key];
        object.has(Record::RESIDENT | Record::TRACKED) || self.busy_of(key).is_some()
    }

    /// Whether a reader holds it, and why not.
    pub(crate) fn readable(&self, key: KeyId, now: Nanos) -> Fate {
        if !self.is_resident(key) {
            return Fate::Absent;
        }
        match self.busy_of(key).map(|busy| busy.reads) {
            Some(reads) if reads.is_held(now) => Fate::Done,
            Some(reads) if !reads.is_free() => Fate::Expired,
            _ => Fate::Unlocked,
        }
    }

    /// What an object of so many bytes takes; none takes nothing.
    pub(crate) fn aligned(&self, bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(self.plan.align_bytes.max(1))
    }

    /// Whether so much more fits.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.plan.capacity_bytes.is_none_or(|capacity| self.used + bytes <= capacity)
    }

    /// How much more fits.
    pub(crate) fn free(&self) -> u64 {
        self.plan.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used))
    }

    /// What objects take that could leave: with which nothing is going on. What readers held for too long
    /// does not count until a pass has let it go.
    pub(crate) fn idle(&self) -> u64 {
        self.objects.idle()
    }

    /// Begins to write `keys`, objects of `bytes` each. All that need room get it, or none of them. `fates`
    /// gets what became of each.
    pub(crate) fn reserve(
        &mut self,
        (keys, bytes): (&[KeyId], u64),
        now: Nanos,
        labels: &Labels,
        (fates, notes): (&mut Vec<Fate>, &mut Notes),
    ) {
        let (taken, mut room, first) = (self.aligned(bytes), 0, fates.len());
        for &key in keys {
            let fate = if self.is_resident(key) {
                Fate::Resident
            } else {
                self.objects.change(key, |object| object.mark(Record::BUSY));
                let busy = self.busy.row(key);
                if busy.staged.is_some() && busy.write.is_held(now) {
                    Fate::Staged
                } else {
                    room += taken.saturating_sub(busy.staged.unwrap_or(0));
                    busy.write.take(1, now, self.plan.write_ttl);
                    busy.staged.get_or_insert(NOT_YET);
                    Fate::Done
                }
            };
            fates.push(fate);
        }
        let within_quota = self.make_own_room((keys, &fates[first..]), taken, now, (labels, notes));
        if within_quota && self.has_room(room) {
            self.used += room;
            self.grant((keys, bytes), &fates[first..], labels);
        } else {
            self.take_back(keys, &mut fates[first..]);
        }
    }

    /// Objects that got room are known to the policy, the last one first.
    fn grant(&mut self, (keys, bytes): (&[KeyId], u64), fates: &[Fate], labels: &Labels) {
        let taken = self.aligned(bytes);
        let granted = keys.iter().zip(fates).rev().filter(|(_, fate)| **fate == Fate::Done);
        for (&key, _) in granted {
            let busy = self.busy.row(key);
            busy.bytes = bytes;
            // An earlier writer that took too long may have had more.
            let had = busy.staged.replace(taken).unwrap_or(0);
            self.used -= had.saturating_sub(taken);
            self.renew(key, taken, labels);
        }
    }

    /// Nothing that needed room gets it.
    fn take_back(&mut self, keys: &[KeyId], fates: &mut [Fate]) {
        for (&key, fate) in keys.iter().zip(fates).filter(|(_, fate)| **fate == Fate::Done) {
            self.change(key, |busy| {
                busy.write.give(1);
                busy.staged = busy.staged.filter(|bytes| *bytes != NOT_YET);
            });
            *fate = Fate::NoMemory;
        }
    }

    /// Ends the write of `key`; whether it is new to the tier.
    pub(crate) fn admit(&mut self, key: KeyId, now: Nanos) -> Fate {
        let Some((staged, write)) = self.busy_of(key).map(|busy| (busy.staged, busy.write)) else {
            return Fate::Absent;
        };
        let Some(bytes) = staged else { return Fate::Absent };
        if !write.is_held(now) {
            return Fate::Expired;
        }
        let ended = |busy: &mut Busy| (busy.staged, busy.write) = (None, Lock::default());
        if self.is_resident(key) {
            self.change(key, ended);
            self.used -= bytes;
            return Fate::Resident;
        }
        self.objects.change(key, |object| object.enter(bytes));
        self.change(key, ended);
        Fate::Done
    }

    /// The length of an object that is being written, or copied.
    pub(crate) fn bytes_of(&self, key: KeyId) -> u64 {
        self.busy_of(key).map_or(0, |busy| busy.bytes)
    }

    /// Takes `key` for `readers` more.
    pub(crate) fn hold(&mut self, key: KeyId, readers: u32, now: Nanos) {
        let ttl = self.plan.read_ttl;
        self.busy(key).reads.take(readers, now, ttl);
    }

    /// Gives `key` back `times`. What is temporary leaves with its last reader.
    pub(crate) fn release(&mut self, key: KeyId, times: u32, now: Nanos) -> Fate {
        let fate = self.readable(key, now);
        if fate == Fate::Done {
            let given = self.change(key, |busy| {
                busy.reads.give(times);
                busy.reads.is_free()
            });
            if given == Some(true) && self.objects[key].has(Record::TEMPORARY) {
                self.drop_resident(key);
            }
        }
        fate
    }

    /// Whether holding `key` and giving it back would leave no trace but its use.
    pub(crate) fn is_plain(&self, key: KeyId) -> bool {
        let marks = Record::RESIDENT | Record::TEMPORARY | Record::BUSY;
        self.objects[key].0 & marks == Record::RESIDENT
    }

    /// `key` will come from behind: its room is taken from now on. A tenant that gets above its quota by it
    /// gives up what it can.
    pub(crate) fn expect(
        &mut self,
        key: KeyId,
        bytes: u64,
        now: Nanos,
        (labels, notes): (&Labels, &mut Notes),
    ) {
        let taken = self.aligned(bytes);
        if !self.objects[key].has(Record::TRACKED) {
            self.make_own_room((&[key], &[Fate::Done]), taken, now, (labels, notes));
        }
        self.used += taken;
        let busy = self.busy(key);
        busy.loads += 1;
        busy.coming += taken;
        self.renew(key, taken, labels);
    }

    /// A prefetch that holds `key` waits for something else.
    pub(crate) fn begin_wait(&mut self, key: KeyId) {
        self.busy(key).waits += 1;
    }

    /// It does not any more; whether `key` was removed since there had been so many removals.
    pub(crate) fn end_wait(&mut self, key: KeyId, begun: u64) -> bool {
        let was_removed = self.is_outdated(key, begun);
        self.change(key, |busy| busy.waits -= 1);
        was_removed
    }

    /// Whether a load of `key` that began when there had been so many removals brings what is gone.
    pub(crate) fn is_outdated(&self, key: KeyId, begun: u64) -> bool {
        self.busy_of(key).is_some_and(|busy| busy.removed > begun)
    }

    /// `key` came from behind. It may have come another way meanwhile: then that one stays.
    pub(crate) fn arrive(&mut self, key: KeyId, temporary: bool) {
        let is_there = self.is_resident(key);
        let taken = self.change(key, |busy| {
            if !is_there {
                busy.reads = Lock::default();
            }
            busy.end_load()
        });
        let taken = taken.expect("what comes was expected");
        if is_there {
            self.used -= taken;
            return;
        }
        self.objects.change(key, |object| {
            object.enter(taken);
            if temporary {
                object.mark(Record::TEMPORARY);
            }
        });
    }

    /// `key` did not come from behind.
    pub(crate) fn expect_no_more(&mut self, key: KeyId) {
        self.used -= self.change(key, Busy::end_load).expect("what does not come was expected");
        self.drop_unused(key);
    }

    /// Drops `key` unless someone holds it; whether it did.
    pub(crate) fn forget(&mut self, key: KeyId, now: Nanos) -> bool {
        let leaves = self.is_resident(key) && is_idle(&self.objects, &self.busy, key.0, now);
        if leaves {
            self.drop_resident(key);
        }
        leaves
    }

    /// Drops `key` whoever holds it; whether it was there. Loads of it that are under way bring nothing.
    pub(crate) fn tear_out(&mut self, key: KeyId, removals: u64) -> bool {
        self.change(key, |busy| busy.removed = removals);
        let was_there = self.is_resident(key);
        if was_there {
            self.drop_resident(key);
        }
        was_there
    }

    /// `key` was used.
    pub(crate) fn touch(&mut self, key: KeyId) {
        if self.objects[key].has(Record::TRACKED) {
            self.policy.touch(key.0);
        }
    }

    /// How many objects a pass of the eviction loop takes out, if it has reason to look.
    pub(crate) fn asked(&self) -> Option<u64> {
        let plan = &self.plan.eviction;
        let capacity = self.plan.capacity_bytes? as f64;
        if (self.used as f64) < plan.trigger_watermark * capacity || self.tracked == 0 {
            return None;
        }
        Some(self.share().max(1))
    }

    /// How many objects that is of those that are there.
    pub(crate) fn share(&self) -> u64 {
        (self.tracked as f64 * self.plan.eviction.eviction_ratio) as u64
    }

    /// Takes out up to so many objects, in the policy's order, while `goes_on` with what is used: how many.
    pub(crate) fn take_out(
        &mut self,
        most: u64,
        goes_on: impl Fn(u64) -> bool,
        (now, notes): (Nanos, &mut Notes),
    ) -> u64 {
        let Self { policy, objects, busy, late, used, tracked, .. } = self;
        let nobody = Labels::nobody();
        let mut left = 0;
        while left < most && goes_on(*used) {
            let mut is_free = |slot: u32| is_idle(objects, busy, slot, now);
            let Some(slot) = policy.victim(&nobody, &mut is_free) else { break };
            policy.evict(slot);
            *tracked -= 1;
            *used -= leave((objects, busy, late), slot, (now, notes));
            left += 1;
        }
        left
    }

    /// Locks of readers that nobody gave back.
    pub(crate) fn held(&self, now: Nanos) -> u64 {
        let is_held = |(key, busy): &&(KeyId, Busy)| self.is_resident(*key) && busy.reads.is_held(now);
        self.busy.rows().filter(is_held).count() as u64
    }

    /// Objects that are there, being written or expected.
    pub(crate) fn count(&self) -> u64 {
        self.tracked
    }

    /// Bytes of all objects, counted anew.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> u64 {
        let resident: u64 = self.objects.iter().filter_map(|object| object.resident()).sum();
        let is_idle = |object: &&Record| !object.has(Record::BUSY);
        let idle = self.objects.iter().filter(is_idle).filter_map(|object| object.resident());
        assert_eq!(self.objects.idle(), idle.sum::<u64>());
        let busy = self.busy.rows().map(|(_, busy)| busy.staged.unwrap_or(0) + busy.coming);
        resident + busy.sum::<u64>() + self.unnamed
    }

    fn busy_of(&self, key: KeyId) -> Option<&Busy> {
        if self.objects[key].has(Record::BUSY) { self.busy.of(key) } else { None }
    }

    fn busy(&mut self, key: KeyId) -> &mut Busy {
        self.objects.change(key, |object| object.mark(Record::BUSY));
        self.busy.row(key)
    }

    fn change<R>(&mut self, key: KeyId, change: impl FnOnce(&mut Busy) -> R) -> Option<R> {
        if !self.objects[key].has(Record::BUSY) {
            return None;
        }
        let (result, is_over) = self.busy.change(key, change)?;
        if is_over {
            self.objects.change(key, |object| object.unmark(Record::BUSY));
        }
        Some(result)
    }

    /// Its locks go with it.
    fn drop_resident(&mut self, key: KeyId) {
        if self.is_late(key) {
            self.late.forget(key);
        }
        self.used -= self.objects.change(key, Record::leave);
        self.change(key, |busy| busy.reads = Lock::default());
        self.drop_unused(key);
    }

    /// The policy forgets what is not there, nor being written or loaded.
    fn drop_unused(&mut self, key: KeyId) {
        let is_coming = self.busy_of(key).is_some_and(|busy| busy.staged.is_some() || busy.loads > 0);
        let object = self.objects[key];
        if !is_coming && !object.has(Record::RESIDENT) && object.has(Record::TRACKED) {
            self.objects.change(key, |object| object.unmark(Record::TRACKED));
            self.policy.remove(key.0);
            self.tracked -= 1;
        }
    }

    /// Newest for the policy.
    fn renew(&mut self, key: KeyId, bytes: u64, labels: &Labels) {
        if self.objects[key].has(Record::TRACKED) {
            self.policy.touch(key.0);
            return;
        }
        self.objects.change(key, |object| object.mark(Record::TRACKED));
        self.policy.insert(key.0, &labels.resident(key, bytes));
        self.tracked += 1;
    }
}

/// An object that waits for room.
const NOT_YET: u64 = 0;

fn is_idle(objects: &Records, busy: &BusyTable, slot: u32, now: Nanos) -> bool {
    let is_busy = objects[KeyId(slot)].has(Record::BUSY);
    !is_busy || busy.of(KeyId(slot)).is_none_or(|busy| !busy.keeps(now))
}

/// A victim leaves, with what was being written of it; what it took.
fn leave(
    (objects, busy, late): (&mut Records, &mut BusyTable, &mut Late),
    slot: u32,
    (now, notes): (Nanos, &mut Notes),
) -> u64 {
    let key = KeyId(slot);
    if objects[key].has(Record::LATE) {
        late.miss(key);
    }
    let gone = busy.change(key, |busy| {
        (busy.reads, busy.write) = (Lock::default(), Lock::default());
        busy.staged.take()
    });
    let resident = objects.change(key, |object| {
        let resident = object.resident();
        object.leave();
        object.unmark(Record::TRACKED);
        if gone.is_some_and(|(_, is_over)| is_over) {
            object.unmark(Record::BUSY);
        }
        resident
    });
    let staged = gone.and_then(|(staged, _)| staged);
    resident.inspect(|_| notes.add(now, || Happened::Freed(key)));
    staged.inspect(|_| notes.add(now, || Happened::Unstaged(key)));
    resident.unwrap_or(0) + staged.unwrap_or(0)
}
