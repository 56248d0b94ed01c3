//! The store: tiers of backends, an index of entries, the ledger of who is where. Threads work through lanes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use wavetank_cache::{Eviction, Resident, Rules, TierId, TierRow};
use wavetank_model::{Error, Result};

use crate::backend::{Backend, Birth, Contents, Found, Held, Recovery};
use crate::buffer::Region;
use crate::bus::{Bus, Events};
use crate::call::{Ear, Listener, Voice};
use crate::clock::Clock;
use crate::index::{Index, Stored};
use crate::job::Outcome;
use crate::key::Key;
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::pipes::Pipes;
use crate::transfer::Load;

/// One tier of a store to open.
pub struct Tier {
    /// What holds its bytes.
    pub backend: Arc<dyn Backend>,
    /// How many bytes of entries it may hold; no limit when absent.
    pub capacity_bytes: Option<u64>,
    /// Who leaves first.
    pub eviction: Box<dyn Eviction>,
}

/// A multi-tier store, shared by threads.
pub struct Store {
    pub(crate) backends: Vec<Arc<dyn Backend>>,
    pub(crate) index: Index,
    pub(crate) ledger: Ledger,
    pub(crate) bus: Bus,
    pub(crate) clock: Clock,
    pub(crate) opened: Instant,
    /// What the tiers do with bytes: those that move them need them.
    contents: Contents,
    recovery: Recovery,
    puts: AtomicU64,
    lanes: AtomicU32,
    ear: Ear,
}

/// What a tier holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of entries, with the room taken for those on their way.
    pub bytes: u64,
    /// How many copies.
    pub entries: u64,
}

impl Store {
    /// Opens a store of `tiers`, fastest first, with the entries that are there from before.
    pub fn open(tiers: Vec<Tier>, rules: Rules) -> Result<Arc<Self>> {
        Self::open_by(Clock::default(), tiers, rules)
    }

    /// The same with times by `clock`, which its backends follow.
    pub fn open_by(clock: Clock, tiers: Vec<Tier>, rules: Rules) -> Result<Arc<Self>> {
        let capacities: Vec<_> = tiers.iter().map(|tier| tier.capacity_bytes).collect();
        let mut backends = Vec::new();
        let mut rows = Vec::new();
        for tier in tiers {
            backends.push(tier.backend);
            rows.push(TierRow { capacity_bytes: tier.capacity_bytes, policy: tier.eviction });
        }
        if backends.is_empty() {
            return Err(Error::usage("a store needs at least one tier"));
        }
        let mut store = Self {
            contents: backends.iter().map(|backend| backend.contents()).min().unwrap_or(Contents::Moved),
            backends,
            index: Index::new(),
            ledger: Ledger::new(rows, rules),
            bus: Bus::default(),
            opened: clock.now(),
            clock,
            recovery: Recovery::default(),
            puts: AtomicU64::new(1),
            lanes: AtomicU32::new(0),
            ear: Ear::default(),
        };
        store.recovery = store.recover(&capacities)?;
        Ok(Arc::new(store))
    }

    /// A lane for one thread, with at most `depth` pieces at devices at a time.
    pub fn lane(self: &Arc<Self>, depth: usize) -> io::Result<Lane> {
        let depth = depth.max(1);
        let region = Region::new(Pipes::buffers(depth))?;
        let ports = self.backends.iter().map(|backend| Arc::clone(backend).port(&region, depth));
        let ports = ports.collect::<io::Result<Vec<_>>>()?;
        Ok(Lane::new(Arc::clone(self), Pipes::new(ports, region, depth, self.clock.clone())))
    }

    /// What its times are by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What moves for an entry: its bytes, or none where entries are only booked.
    pub(crate) fn load(&self, entry: &Arc<Stored>) -> Load {
        let bytes = if self.contents == Contents::Booked { 0 } else { entry.bytes };
        Load { entry: Arc::clone(entry), bytes, is_hollow: self.contents != Contents::Moved }
    }

    /// Writes are numbered, also over restarts: of two entries of one key the higher is the later.
    pub(crate) fn next_put(&self) -> u64 {
        self.puts.fetch_add(1, Ordering::Relaxed)
    }

    /// A write had this number: the next has a higher one.
    pub(crate) fn skip_puts(&self, put: u64) {
        self.puts.fetch_max(put + 1, Ordering::Relaxed);
    }

    pub(crate) fn next_lane(&self) -> u32 {
        self.lanes.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells `listener` of every call from here on. There is one at most.
    pub fn attach(&self, listener: Arc<dyn Listener>) {
        self.ear.attach(listener);
    }

    pub(crate) fn voice(&self, lane: u32, place: usize) -> Voice<'_> {
        Voice::new(&self.ear, &self.clock, lane, place)
    }

    /// Events of the lanes opened after this call; one who falls behind by `capacity` loses the next.
    pub fn listen(&self, capacity: usize) -> Events {
        self.bus.listen(capacity)
    }

    /// Whether `key` can be read.
    pub fn contains(&self, key: &Key) -> bool {
        self.index.contains(key)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every key there is, in no order.
    pub fn keys(&self) -> Vec<Key> {
        self.index.all().iter().map(|entry| entry.key.clone()).collect()
    }

    /// Every entry there is, in no order: its key, its length, and where it comes from.
    pub fn entries(&self) -> Vec<(Key, u64, Birth)> {
        self.index.all().iter().map(|entry| (entry.key.clone(), entry.bytes, entry.birth)).collect()
    }

    /// What each tier holds.
    pub fn usage(&self) -> Vec<Usage> {
        self.ledger.usage().into_iter().map(|(bytes, entries)| Usage { bytes, entries }).collect()
    }

    /// What was found at the start besides entries.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Removes every entry, one at a time; the first that cannot be ends it.
    pub fn clear(self: &Arc<Self>) -> io::Result<()> {
        let keys = self.keys();
        if keys.is_empty() {
            return Ok(());
        }
        let mut lane = self.lane(1)?;
        for key in keys {
            lane.remove(key);
            while let Some(done) = lane.wait() {
                if let Outcome::Failed(error) = done.outcome {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Gives back what devices keep for later entries. Deleting files slows the file system down for minutes:
    /// not while anything is measured.
    pub fn trim(&self) -> io::Result<()> {
        self.backends.iter().try_for_each(|backend| backend.trim())
    }

    /// What does not work here as it should, in words. Complete once lanes are open.
    pub fn notes(&self) -> Vec<String> {
        self.backends.iter().flat_map(|backend| backend.notes()).collect()
    }

    /// Takes the entries of earlier processes into the index, in the order they were written.
    fn recover(&self, capacities: &[Option<u64>]) -> Result<Recovery> {
        let mut total = Recovery::default();
        let mut unfit = Vec::new();
        for (tier, (backend, capacity)) in self.backends.iter().zip(capacities).enumerate() {
            let tier = tier as TierId;
            let mut found = Vec::new();
            let counts = Arc::clone(backend).recover(&mut |entry| found.push(entry));
            let counts = counts.map_err(|e| Error::usage(format!("cannot read what is stored: {e}")))?;
            let (older, newer) = split_to_fit(found, capacity.unwrap_or(u64::MAX));
            unfit.extend(older.into_iter().map(|entry| (tier, entry.held)));
            newer.into_iter().for_each(|entry| self.take_in(tier, entry, &mut unfit));
            total.foreign += counts.foreign;
            total.torn += counts.torn;
            total.spare += counts.spare;
        }
        let told = |e: io::Error| Error::usage(format!("cannot remove what has no room: {e}"));
        self.discard(unfit).map_err(told)?;
        Ok(total)
    }

    /// Takes in one entry. What has no place is added to `unfit`: the older of two of one key, a second copy
    /// that no tier wants, what its tenant may not have.
    fn take_in(&self, tier: TierId, found: Found, unfit: &mut Vec<Copy>) {
        self.puts.fetch_max(found.birth.put + 1, Ordering::Relaxed);
        let there = self.index.find(&found.key);
        if let Some(there) = &there {
            let same = there.birth == found.birth && there.checksum() == found.checksum;
            if same && self.ledger.restore_copy(there, tier) {
                return there.keep(tier, found.held);
            }
            if there.birth.put >= found.birth.put {
                return unfit.push((tier, found.held));
            }
        }
        let (bytes, tenant) = (found.bytes, found.birth.tenant);
        let resident = Resident { fingerprint: found.key.fingerprint(), bytes, tenant };
        match self.ledger.restore(&resident, tier, |slot| Stored::found(&found, slot)) {
            None => unfit.push((tier, found.held)),
            Some(entry) => {
                entry.keep(tier, found.held);
                if let Some(older) = self.index.publish(entry, |_| {}) {
                    self.ledger.remove(&older);
                    unfit.extend(older.release_all());
                }
            }
        }
    }

    fn discard(&self, copies: Vec<Copy>) -> io::Result<()> {
        if copies.is_empty() {
            return Ok(());
        }
        let region = Region::new(1)?;
        let ports = self.backends.iter().map(|backend| Arc::clone(backend).port(&region, 1));
        let mut ports = ports.collect::<io::Result<Vec<_>>>()?;
        copies.into_iter().try_for_each(|(tier, held)| ports[usize::from(tier)].remove(held))
    }
}

/// A copy of an entry, and the tier it is in.
type Copy = (TierId, Arc<dyn Held>);

/// The oldest entries that have to go for the rest to fit, and the rest.
fn split_to_fit(mut entries: Vec<Found>, capacity: u64) -> (Vec<Found>, Vec<Found>) {
    let mut room = capacity;
    let fits = |entry: &&Found| match room.checked_sub(entry.bytes) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let kept = entries.iter().rev().take_while(fits).count();
    let newer = entries.split_off(entries.len() - kept);
    (entries, newer)
}
