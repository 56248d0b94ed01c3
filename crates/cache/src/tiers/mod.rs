//! Where entries live in a stack of tiers, fastest first: the waterfall. No bytes, no clock, no keys.
//!
//! Every decision is made here at once and atomically; the caller carries out the moves in the order given
//! (a store copies bytes, a simulation adds time) and says when an entry has settled. The rules of making
//! room are in `room.rs`.

mod room;
#[cfg(test)]
mod tests;
mod tier_set;

use serde::{Deserialize, Serialize};

use crate::eviction::{Eviction, Resident, Slot};
pub use room::Room;
use room::{Call, Limits};
pub use tier_set::TierSet;

/// A tier's number: 0 is the fastest.
pub type TierId = u8;

/// What happened, or has to happen, to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which entry.
    pub slot: Slot,
    /// Where its copy leaves.
    pub from: TierId,
    /// What becomes of it.
    pub to: Destination,
}

/// Where a victim goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Its bytes move to this tier; the entry is busy until it settles.
    Tier(TierId),
    /// A lower tier has a copy already: the upper one is dropped.
    Below(TierId),
    /// An upper tier has a copy still: the lower one is dropped.
    Above(TierId),
    /// It leaves the stack; its slot is free.
    Out,
}

/// When a hit moves an entry up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promotion {
    /// Entries only fall.
    #[default]
    Never,
    /// At each hit.
    OnHit,
    /// At the second hit since it came to its fastest tier, and at later ones.
    OnSecondHit,
}

/// Where an entry is written first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WritePolicy {
    /// To the fastest tier that takes it; it falls when it is evicted.
    #[default]
    Back,
    /// To the fastest tier that takes it and, at once, to the last.
    Through,
    /// To the last tier only; upper tiers fill by promotion.
    Around,
}

/// What the tiers of a stack have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// When a hit moves an entry up.
    pub promotion: Promotion,
    /// Where an entry is written first.
    pub write: WritePolicy,
    /// How room is made.
    pub room: Room,
}

/// One tier of a stack to build.
pub struct TierRow<P> {
    /// What it holds; without it, everything.
    pub capacity_bytes: Option<u64>,
    /// Who leaves it first.
    pub policy: P,
}

/// A new entry's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its slot, which is none of those in the moves made for it.
    pub slot: Slot,
    /// Where it has to be written.
    pub tiers: TierSet,
}

/// A move up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promoted {
    /// Where it is read.
    pub from: TierId,
    /// Where it is written.
    pub to: TierId,
    /// Whether the copy it is read from stays.
    pub keeps_below: bool,
}

/// Why no tier took an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is larger than any tier that was asked ever takes.
    TooLarge,
    /// What is there cannot leave now: it is busy, its policy keeps it, or it would empty the tier.
    NoRoom,
}

struct Tier<P> {
    limits: Limits,
    used_bytes: u64,
    entries: u64,
    policy: P,
}

#[derive(Clone, Copy)]
struct Held {
    resident: Resident,
    copies: TierSet,
    /// Being written or moved: no victim.
    busy: bool,
    /// Since it came to its fastest tier.
    hits: u32,
}

/// A stack of tiers and the entries in it.
///
/// A slot names an entry from [`admit`](Self::admit) until it goes [`Destination::Out`], is
/// [removed](Self::remove) or [loses](Self::lose) its last copy; then it is used again. Asking about a slot
/// without an entry is a defect of the caller and panics. Each call is O(1) per entry it moves, plus what the
/// policies step over.
pub struct Tiers<P: Eviction = Box<dyn Eviction>> {
    tiers: Vec<Tier<P>>,
    entries: Vec<Held>,
    free: Vec<Slot>,
    rules: Rules,
}

impl<P: Eviction> Tiers<P> {
    /// An empty stack of `rows`, fastest first.
    ///
    /// # Panics
    /// When there is no row, or more than [`TierSet::MOST`].
    pub fn new(rows: Vec<TierRow<P>>, rules: Rules) -> Self {
        assert!((1..=TierSet::MOST).contains(&rows.len()), "a stack has 1 to {} tiers", TierSet::MOST);
        let last = rows.len() - 1;
        let tier = |(at, row): (usize, TierRow<P>)| Tier {
            limits: Limits::of(row.capacity_bytes, at == last, &rules.room),
            used_bytes: 0,
            entries: 0,
            policy: row.policy,
        };
        let tiers = rows.into_iter().enumerate().map(tier).collect();
        Self { tiers, entries: Vec::new(), free: Vec::new(), rules }
    }

    /// Places a new entry, which is busy until it settles.
    ///
    /// Appends to `moves` what has to be done before it is written, in order, the deepest first. After a
    /// refusal the moves appended still hold: they were decided and must be carried out. `evictable` says
    /// which copies may be moved now; busy entries are not asked about.
    pub fn admit(
        &mut self,
        entry: &Resident,
        evictable: &mut dyn FnMut(Slot, TierId) -> bool,
        moves: &mut Vec<Move>,
    ) -> Result<Admitted, Refusal> {
        let mut call = Call { evictable, moves, depth: 0 };
        // Before anything leaves, so that the slot is none of those in the moves.
        let slot = self.open(entry);
        let first = if self.rules.write == WritePolicy::Around { self.last() } else { 0 };
        let taken = self.fill(slot, first..self.len(), &mut call);
        if self.rules.write == WritePolicy::Through && taken.is_ok_and(|tier| tier < self.last()) {
            // A refusal leaves it above only.
            let _ = self.fill(slot, self.last()..self.len(), &mut call);
        }
        match taken {
            Ok(_) => Ok(Admitted { slot, tiers: self.copies(slot) }),
            Err(refusal) => {
                self.free.push(slot);
                Err(refusal)
            }
        }
    }

    /// Takes an entry that is in `tier` already, as after a restart. Nothing leaves for it: without room it
    /// is not taken.
    pub fn restore(&mut self, entry: &Resident, tier: TierId) -> Option<Slot> {
        let row = self.tier_mut(tier);
        let after = row.used_bytes.checked_add(entry.bytes)?;
        if row.limits.capacity().is_some_and(|capacity| after > capacity) || !row.policy.admits(entry) {
            return None;
        }
        row.used_bytes = after;
        let slot = self.open(entry);
        self.place(slot, tier);
        self.settle(slot);
        Some(slot)
    }

    /// Takes another copy of `slot` that is in `tier` already, as after a restart: where writes do not only
    /// go to the fastest tier, and without anything leaving for it.
    pub fn restore_copy(&mut self, slot: Slot, tier: TierId) -> bool {
        let (bytes, copies) = (self.resident(slot).bytes, self.copies(slot));
        let row = self.tier(tier);
        let fits = row.limits.capacity().is_none_or(|capacity| bytes <= capacity - row.used_bytes);
        if self.rules.write == WritePolicy::Back || copies.contains(tier) || !fits {
            return false;
        }
        self.tier_mut(tier).used_bytes += bytes;
        self.place(slot, tier);
        true
    }

    /// `slot` was written or moved: it may be chosen as a victim again.
    pub fn settle(&mut self, slot: Slot) {
        self.entry_mut(slot).busy = false;
    }

    /// `slot` was hit.
    pub fn touch(&mut self, slot: Slot) {
        let held = self.entry_mut(slot);
        held.hits = held.hits.saturating_add(1);
        let copies = held.copies;
        copies.iter().for_each(|tier| self.tier_mut(tier).policy.touch(slot));
    }

    /// Whether the rules ask to move `slot` up now.
    pub fn promotes(&self, slot: Slot) -> bool {
        let Held { busy, hits, .. } = *self.entry(slot);
        let is_due = match self.rules.promotion {
            Promotion::Never => false,
            Promotion::OnHit => hits >= 1,
            Promotion::OnSecondHit => hits >= 2,
        };
        is_due && !busy && self.fastest(slot) > 0
    }

    /// Moves `slot` to the fastest tier that takes it, above its present one; it is busy until it settles.
    ///
    /// A copy in the last tier stays unless entries are written back. Nothing happens to a busy entry.
    /// `moves` and `evictable` are those of [`admit`](Self::admit): what was appended holds even if no tier
    /// took it.
    pub fn promote(
        &mut self,
        slot: Slot,
        evictable: &mut dyn FnMut(Slot, TierId) -> bool,
        moves: &mut Vec<Move>,
    ) -> Option<Promoted> {
        if self.entry(slot).busy {
            return None;
        }
        let from = self.fastest(slot);
        // What falls to make room must not push out the copy that is read.
        self.entry_mut(slot).busy = true;
        let Ok(to) = self.fill(slot, 0..from, &mut Call { evictable, moves, depth: 0 }) else {
            self.entry_mut(slot).busy = false;
            return None;
        };
        let keeps_below = self.rules.write != WritePolicy::Back && from == self.last();
        if !keeps_below {
            self.withdraw(slot, from);
        }
        Some(Promoted { from, to, keeps_below })
    }

    /// `slot` could not be written where it was promoted to: it is again where it was, if there is room
    /// without evicting anything; otherwise it is forgotten and the answer is `false`.
    pub fn retreat(&mut self, slot: Slot, promoted: Promoted) -> bool {
        let Promoted { from, to, keeps_below } = promoted;
        self.withdraw(slot, to);
        let bytes = self.entries[slot as usize].resident.bytes;
        let row = self.tier_mut(from);
        let fits = row.limits.capacity().is_none_or(|capacity| bytes <= capacity - row.used_bytes);
        if !keeps_below && fits {
            row.used_bytes += bytes;
            self.place(slot, from);
        }
        if self.entries[slot as usize].copies.is_empty() {
            self.free.push(slot);
            return false;
        }
        self.settle(slot);
        true
    }

    /// Forgets `slot`; says where its copies were.
    pub fn remove(&mut self, slot: Slot) -> TierSet {
        let copies = self.entry(slot).copies;
        copies.iter().for_each(|tier| self.withdraw(slot, tier));
        self.free.push(slot);
        copies
    }

    /// The copy in `tier` could not be written or was found damaged: forgets it and says which are left.
    /// Without any, the slot is free.
    ///
    /// # Panics
    /// When there is no copy in `tier`.
    pub fn lose(&mut self, slot: Slot, tier: TierId) -> TierSet {
        assert!(self.entry(slot).copies.contains(tier), "slot {slot} has no copy in tier {tier}");
        self.withdraw(slot, tier);
        let left = self.entries[slot as usize].copies;
        if left.is_empty() {
            self.free.push(slot);
        }
        left
    }

    /// The fastest tier that holds `slot`.
    pub fn fastest(&self, slot: Slot) -> TierId {
        self.entry(slot).copies.fastest().expect("an entry has a copy")
    }

    /// The tiers that hold `slot`.
    pub fn copies(&self, slot: Slot) -> TierSet {
        self.entry(slot).copies
    }

    /// What `slot` was admitted as.
    pub fn resident(&self, slot: Slot) -> &Resident {
        &self.entry(slot).resident
    }

    /// Whether `slot` is being written or moved.
    pub fn is_busy(&self, slot: Slot) -> bool {
        self.entry(slot).busy
    }

    /// How many tiers there are.
    #[expect(clippy::len_without_is_empty, reason = "a stack has at least one tier")]
    pub fn len(&self) -> TierId {
        self.tiers.len() as TierId
    }

    /// The slowest tier.
    pub fn last(&self) -> TierId {
        self.len() - 1
    }

    /// What `tier` holds at most, if there is a limit.
    pub fn capacity_bytes(&self, tier: TierId) -> Option<u64> {
        self.tier(tier).limits.capacity()
    }

    /// What `tier` holds, with the room taken for entries on their way.
    pub fn used_bytes(&self, tier: TierId) -> u64 {
        self.tier(tier).used_bytes
    }

    /// How many copies `tier` holds.
    pub fn entries(&self, tier: TierId) -> u64 {
        self.tier(tier).entries
    }

    /// Puts a copy of `slot` into the first of `tiers` that makes room.
    fn fill(
        &mut self,
        slot: Slot,
        tiers: std::ops::Range<TierId>,
        call: &mut Call<'_>,
    ) -> Result<TierId, Refusal> {
        let resident = self.entries[slot as usize].resident;
        let mut refusal = Refusal::TooLarge;
        for tier in tiers {
            match self.reserve(tier, &resident, call) {
                Ok(()) => {
                    self.place(slot, tier);
                    return Ok(tier);
                }
                Err(Refusal::TooLarge) => {}
                Err(Refusal::NoRoom) => refusal = Refusal::NoRoom,
            }
        }
        Err(refusal)
    }

    fn open(&mut self, entry: &Resident) -> Slot {
        let held = Held { resident: *entry, copies: TierSet::default(), busy: true, hits: 0 };
        if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = held;
            return slot;
        }
        self.entries.push(held);
        self.entries.len() as Slot - 1
    }

    /// `slot` has a copy in `tier` now, whose room is taken.
    fn place(&mut self, slot: Slot, tier: TierId) {
        let held = &mut self.entries[slot as usize];
        held.copies.insert(tier);
        if held.copies.fastest() == Some(tier) {
            held.hits = 0;
        }
        let row = &mut self.tiers[usize::from(tier)];
        row.entries += 1;
        row.policy.insert(slot, &held.resident);
    }

    /// Takes the copy of `slot` out of `tier`, for a reason that is not the policy's.
    fn withdraw(&mut self, slot: Slot, tier: TierId) {
        self.tier_mut(tier).policy.remove(slot);
        self.give_back(tier, slot);
    }

    /// The copy of `slot`, which its policy has forgotten, leaves `tier` and its bytes are free.
    fn give_back(&mut self, tier: TierId, slot: Slot) {
        let held = &mut self.entries[slot as usize];
        if held.copies.fastest() == Some(tier) {
            held.hits = 0;
        }
        held.copies.remove(tier);
        let row = &mut self.tiers[usize::from(tier)];
        row.used_bytes -= held.resident.bytes;
        row.entries -= 1;
    }

    fn tier(&self, tier: TierId) -> &Tier<P> {
        &self.tiers[usize::from(tier)]
    }

    fn tier_mut(&mut self, tier: TierId) -> &mut Tier<P> {
        &mut self.tiers[usize::from(tier)]
    }

    fn entry(&self, slot: Slot) -> &Held {
        let held = &self.entries[slot as usize];
        assert!(!held.copies.is_empty(), "slot {slot} holds no entry");
        held
    }

    fn entry_mut(&mut self, slot: Slot) -> &mut Held {
        let held = &mut self.entries[slot as usize];
        assert!(!held.copies.is_empty(), "slot {slot} holds no entry");
        held
    }
}
