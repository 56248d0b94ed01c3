//! The tier in memory: which objects are resident or being written, who holds them, how much they take.

use wavetank_cache::eviction::{self, Eviction, Resident, Settings};
use wavetank_model::{Fate, KeyId, Nanos, Result};

use crate::lock::Lock;
use crate::note::{Happened, Notes};
use crate::plan::L1Plan;

/// An object, as far as memory knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Object {
    /// What it takes where it is resident.
    resident: Option<u64>,
    /// What it takes where it is being written.
    staged: Option<u64>,
    /// It leaves with its last reader.
    temporary: bool,
    /// Whether the policy knows it.
    tracked: bool,
    reads: Lock,
    write: Lock,
    /// Copies of it under way to tiers behind.
    copies: u32,
    /// Loads of it under way from there, each with room of its own.
    loads: u32,
    /// That room.
    coming: u64,
}

impl Object {
    fn is_busy(&self, now: Nanos) -> bool {
        self.copies > 0
            || self.loads > 0
            || self.reads.is_held(now)
            || (self.staged.is_some() && self.write.is_held(now))
    }

    /// A load ends: the room it had.
    fn end_load(&mut self) -> u64 {
        let taken = self.coming / u64::from(self.loads);
        self.loads -= 1;
        self.coming -= taken;
        taken
    }
}

/// Memory.
pub(crate) struct L1 {
    plan: L1Plan,
    policy: Box<dyn Eviction>,
    objects: Vec<Object>,
    used: u64,
    tracked: u64,
}

impl L1 {
    pub(crate) fn new(plan: &L1Plan) -> Result<Self> {
        let entry = eviction::policy(&plan.eviction.policy)?;
        let settings = Settings { capacity_bytes: plan.capacity_bytes, ..Settings::default() };
        let policy = (entry.build)(&settings)?;
        Ok(Self { plan: plan.clone(), policy, objects: Vec::new(), used: 0, tracked: 0 })
    }

    /// Makes room for keys up to and without `keys` in its tables.
    pub(crate) fn grow(&mut self, keys: usize) {
        if self.objects.len() < keys {
            self.objects.resize(keys, Object::default());
        }
    }

    /// Bytes of objects, resident or being written.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn is_resident(&self, key: KeyId) -> bool {
        self.objects[place(key)].resident.is_some()
    }

    /// Whether a reader holds it, and why not.
    pub(crate) fn readable(&self, key: KeyId, now: Nanos) -> Fate {
        let object = &self.objects[place(key)];
        match object.resident {
            None => Fate::Absent,
            Some(_) if object.reads.is_held(now) => Fate::Done,
            Some(_) if object.reads.is_free() => Fate::Unlocked,
            Some(_) => Fate::Expired,
        }
    }

    /// What an object of so many bytes takes.
    pub(crate) fn aligned(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.plan.align_bytes.max(1))
    }

    /// Whether so much more fits.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.plan.capacity_bytes.is_none_or(|capacity| self.used + bytes <= capacity)
    }

    /// Begins to write `keys`, objects of `bytes` each. All that need room get it, or none of them. `fates`
    /// gets what became of each.
    pub(crate) fn reserve(&mut self, keys: &[KeyId], bytes: u64, now: Nanos, fates: &mut Vec<Fate>) {
        let (taken, mut room, first) = (self.aligned(bytes), 0, fates.len());
        for &key in keys {
            let object = &mut self.objects[place(key)];
            let fate = if object.resident.is_some() {
                Fate::Resident
            } else if object.staged.is_some() && object.write.is_held(now) {
                Fate::Staged
            } else {
                room += taken.saturating_sub(object.staged.unwrap_or(0));
                object.write.take(1, now, self.plan.write_ttl);
                object.staged.get_or_insert(NOT_YET);
                Fate::Done
            };
            fates.push(fate);
        }
        if self.has_room(room) {
            self.used += room;
            self.grant(keys, taken, &fates[first..]);
        } else {
            self.take_back(keys, &mut fates[first..]);
        }
    }

    /// Objects that got room are known to the policy, the last one first.
    fn grant(&mut self, keys: &[KeyId], taken: u64, fates: &[Fate]) {
        let granted = || keys.iter().zip(fates).rev().filter(|(_, fate)| **fate == Fate::Done);
        for (&key, _) in granted() {
            // An earlier writer that took too long may have had more.
            let had = self.objects[place(key)].staged.replace(taken).unwrap_or(0);
            self.used -= had.saturating_sub(taken);
            self.renew(key, taken);
        }
    }

    /// Nothing that needed room gets it.
    fn take_back(&mut self, keys: &[KeyId], fates: &mut [Fate]) {
        for (&key, fate) in keys.iter().zip(fates).filter(|(_, fate)| **fate == Fate::Done) {
            let object = &mut self.objects[place(key)];
            object.write.give(1);
            object.staged = object.staged.filter(|bytes| *bytes != NOT_YET);
            *fate = Fate::NoMemory;
        }
    }

    /// Ends the write of `key`; whether it is new to the tier.
    pub(crate) fn admit(&mut self, key: KeyId, now: Nanos) -> Fate {
        let object = &mut self.objects[place(key)];
        let Some(bytes) = object.staged else { return Fate::Absent };
        if !object.write.is_held(now) {
            return Fate::Expired;
        }
        object.staged = None;
        object.write = Lock::default();
        if object.resident.is_some() {
            self.used -= bytes;
            return Fate::Resident;
        }
        object.resident = Some(bytes);
        object.temporary = false;
        Fate::Done
    }

    /// Takes `key` for `readers` more.
    pub(crate) fn hold(&mut self, key: KeyId, readers: u32, now: Nanos) {
        self.objects[place(key)].reads.take(readers, now, self.plan.read_ttl);
    }

    /// Gives `key` back `times`. What is temporary leaves with its last reader.
    pub(crate) fn release(&mut self, key: KeyId, times: u32, now: Nanos) -> Fate {
        let fate = self.readable(key, now);
        if fate == Fate::Done {
            let object = &mut self.objects[place(key)];
            object.reads.give(times);
            if object.temporary && object.reads.is_free() {
                self.drop_resident(key);
            }
        }
        fate
    }

    /// `key` will come from behind: its room is taken from now on.
    pub(crate) fn expect(&mut self, key: KeyId, bytes: u64) {
        let taken = self.aligned(bytes);
        self.used += taken;
        let object = &mut self.objects[place(key)];
        object.loads += 1;
        object.coming += taken;
        self.renew(key, taken);
    }

    /// `key` came from behind. It may have come another way meanwhile: then that one stays.
    pub(crate) fn arrive(&mut self, key: KeyId, temporary: bool) {
        let object = &mut self.objects[place(key)];
        let taken = object.end_load();
        if object.resident.is_some() {
            self.used -= taken;
            return;
        }
        object.resident = Some(taken);
        object.temporary = temporary;
        object.reads = Lock::default();
    }

    /// `key` did not come from behind.
    pub(crate) fn expect_no_more(&mut self, key: KeyId) {
        self.used -= self.objects[place(key)].end_load();
        self.drop_unused(key);
    }

    /// A copy of `key` to a tier behind begins.
    pub(crate) fn copying(&mut self, key: KeyId) {
        self.objects[place(key)].copies += 1;
    }

    /// Whether one is under way.
    pub(crate) fn is_copying(&self, key: KeyId) -> bool {
        self.objects[place(key)].copies > 0
    }

    /// It has ended; whether it was the last.
    pub(crate) fn copied(&mut self, key: KeyId) -> bool {
        let copies = &mut self.objects[place(key)].copies;
        let was = std::mem::replace(copies, copies.saturating_sub(1));
        was == 1
    }

    /// Drops `key` unless someone holds it; whether it did.
    pub(crate) fn forget(&mut self, key: KeyId, now: Nanos) -> bool {
        let object = &self.objects[place(key)];
        let leaves = object.resident.is_some() && !object.is_busy(now);
        if leaves {
            self.drop_resident(key);
        }
        leaves
    }

    /// Drops `key` whoever holds it.
    pub(crate) fn tear_out(&mut self, key: KeyId) {
        if self.is_resident(key) {
            self.objects[place(key)].reads = Lock::default();
            self.drop_resident(key);
        }
    }

    /// `key` was used.
    pub(crate) fn touch(&mut self, key: KeyId) {
        if self.objects[place(key)].tracked {
            self.policy.touch(key.0);
        }
    }

    /// A pass of the eviction loop: how many objects left, if it had reason to look.
    pub(crate) fn pass(&mut self, now: Nanos, notes: &mut Notes) -> Option<u64> {
        let plan = &self.plan.eviction;
        let capacity = self.plan.capacity_bytes? as f64;
        if (self.used as f64) < plan.trigger_watermark * capacity || self.tracked == 0 {
            return None;
        }
        let asked = ((self.tracked as f64 * plan.eviction_ratio) as u64).max(1);
        let nobody = Resident { fingerprint: 0, bytes: 0, tenant: 0 };
        let mut left = 0;
        while left < asked {
            let objects = &self.objects;
            let mut is_free = |slot: u32| !objects[slot as usize].is_busy(now);
            let Some(slot) = self.policy.victim(&nobody, &mut is_free) else { break };
            self.policy.evict(slot);
            self.tracked -= 1;
            let object = &mut self.objects[slot as usize];
            object.tracked = false;
            let (resident, staged) = (object.resident.take(), object.staged.take());
            self.used -= resident.unwrap_or(0) + staged.unwrap_or(0);
            let key = KeyId(slot);
            resident.inspect(|_| notes.add(now, || Happened::Freed(key)));
            staged.inspect(|_| notes.add(now, || Happened::Unstaged(key)));
            left += 1;
        }
        Some(left)
    }

    /// Locks of readers that nobody gave back.
    pub(crate) fn held(&self, now: Nanos) -> u64 {
        self.objects.iter().filter(|object| object.resident.is_some() && object.reads.is_held(now)).count()
            as u64
    }

    /// Bytes of all objects, counted anew.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> u64 {
        let taken =
            |object: &Object| object.resident.unwrap_or(0) + object.staged.unwrap_or(0) + object.coming;
        self.objects.iter().map(taken).sum()
    }

    fn drop_resident(&mut self, key: KeyId) {
        let object = &mut self.objects[place(key)];
        self.used -= object.resident.take().unwrap_or(0);
        object.temporary = false;
        self.drop_unused(key);
    }

    /// The policy forgets what is not there, nor being written or loaded.
    fn drop_unused(&mut self, key: KeyId) {
        let object = &mut self.objects[place(key)];
        let is_used = object.resident.is_some() || object.staged.is_some() || object.loads > 0;
        if !is_used && std::mem::take(&mut object.tracked) {
            self.policy.remove(key.0);
            self.tracked -= 1;
        }
    }

    /// Newest for the policy.
    fn renew(&mut self, key: KeyId, bytes: u64) {
        let object = &mut self.objects[place(key)];
        if std::mem::replace(&mut object.tracked, true) {
            self.policy.touch(key.0);
            return;
        }
        self.policy.insert(key.0, &Resident { fingerprint: fingerprint(key), bytes, tenant: 0 });
        self.tracked += 1;
    }
}

/// An object that waits for room.
const NOT_YET: u64 = 0;

/// What a policy remembers of an object that left; 0 is nobody, for whom a pass makes room.
pub(crate) fn fingerprint(key: KeyId) -> u64 {
    u64::from(key.0) + 1
}

fn place(key: KeyId) -> usize {
    key.0 as usize
}
