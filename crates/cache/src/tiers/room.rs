//! Making room in a tier: the rules of the reference benchmark's `ensure_space` (spec/kv-bench.md 9).
//!
//! Three differences. An entry that the last tier cannot hold is refused, where the reference lets it pass
//! the capacity: `used ≤ capacity` always holds. A victim too large for the next tier is offered to those
//! below it, and one that no lower tier can ever hold leaves, so that it does not block its tier for good.
//! And a policy may refuse free room (`admits`), which then takes victims like a lack of it.

use serde::{Deserialize, Serialize};

use super::{Destination, Move, Refusal, TierId, Tiers};
use crate::eviction::{Eviction, Resident, Slot};

/// The rules of making room that can be set; the defaults are the reference's. Shares are of a tier's
/// capacity, and of tiers that are not the last, which may fill up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Room {
    /// What a tier aims at, so that the next entry finds room.
    pub target_share: f64,
    /// A larger entry is refused; this is how a tier of no bytes is skipped.
    pub largest_share: f64,
    /// One call may evict as many as there are and a few that arrive meanwhile, at least this many …
    pub evictions_min: u64,
    /// … and at most this many.
    pub evictions_max: u64,
    /// How many tiers down one call may push entries.
    pub depth_max: u8,
}

impl Default for Room {
    fn default() -> Self {
        Self::REFERENCE
    }
}

impl Room {
    /// The reference's rules.
    pub const REFERENCE: Self = Self {
        target_share: 0.8,
        largest_share: 0.95,
        evictions_min: 1000,
        evictions_max: 5000,
        depth_max: 10,
    };

    fn most_evictions(&self, entries: u64) -> u64 {
        (entries + SPARE_EVICTIONS).max(self.evictions_min).min(self.evictions_max)
    }
}

// The constants below are those of the reference, in percent of the capacity where nothing else is said.

/// A tier with less in it than this takes what fits its capacity, target or not.
const NEARLY_EMPTY_PERCENT: u64 = 5;
/// A tier with less in it than this …
const SPARSE_PERCENT: u64 = 20;
/// … is not emptied for an entry larger than this share of the target.
const BULKY_PERCENT_OF_TARGET: u64 = 50;
/// What may arrive while a call evicts.
const SPARE_EVICTIONS: u64 = 100;

/// How full a tier may get.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    capacity: Option<u64>,
    /// The largest entry it takes.
    largest: u64,
    /// What to have in it at most after an entry came.
    target: u64,
    is_last: bool,
}

impl Limits {
    pub(super) fn of(capacity: Option<u64>, is_last: bool, room: &Room) -> Self {
        // Parts per million are exact for what people write.
        let part = |share: f64| (u128::from((share * 1e6).round() as u64), 1_000_000);
        let share = |share| {
            let (part, whole) = part(share);
            capacity.map_or(u64::MAX, |capacity| (u128::from(capacity) * part / whole) as u64)
        };
        let (largest, target) = if is_last { (1.0, 1.0) } else { (room.largest_share, room.target_share) };
        Self { capacity, largest: share(largest), target: share(target), is_last }
    }

    pub(super) fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    fn fits(&self, used: u64, need: u64) -> bool {
        let Some(after) = used.checked_add(need) else {
            return false;
        };
        let within_capacity = self.capacity.is_none_or(|capacity| after <= capacity);
        after <= self.target || (within_capacity && self.holds_less_than(used, NEARLY_EMPTY_PERCENT))
    }

    /// Whether `need` is out of proportion to the little there is to evict.
    fn is_bulky(&self, used: u64, need: u64) -> bool {
        let bulky = need > percent(self.target, BULKY_PERCENT_OF_TARGET);
        !self.is_last && bulky && self.holds_less_than(used, SPARSE_PERCENT)
    }

    fn holds_less_than(&self, used: u64, share: u64) -> bool {
        self.capacity.is_none_or(|capacity| u128::from(used) * 100 < u128::from(capacity) * u128::from(share))
    }
}

fn percent(of: u64, share: u64) -> u64 {
    (u128::from(of) * u128::from(share) / 100) as u64
}

/// What one call asks and fills.
pub(super) struct Call<'a> {
    pub(super) evictable: &'a mut dyn FnMut(Slot, TierId) -> bool,
    pub(super) moves: &'a mut Vec<Move>,
    /// How many tiers down it is already.
    pub(super) depth: u8,
}

impl<P: Eviction> Tiers<P> {
    /// Makes room in `tier` for `incoming` and takes it.
    pub(super) fn reserve(
        &mut self,
        tier: TierId,
        incoming: &Resident,
        call: &mut Call<'_>,
    ) -> Result<(), Refusal> {
        let row = self.tier(tier);
        if incoming.bytes > row.limits.largest {
            return Err(Refusal::TooLarge);
        }
        let fits = row.limits.fits(row.used_bytes, incoming.bytes);
        if !fits && row.limits.is_bulky(row.used_bytes, incoming.bytes) {
            return Err(Refusal::NoRoom);
        }
        let mut evictions_left = self.rules.room.most_evictions(row.entries);
        while !self.takes(tier, incoming) {
            evictions_left = evictions_left.checked_sub(1).ok_or(Refusal::NoRoom)?;
            let victim = self.victim(tier, incoming, call).ok_or(Refusal::NoRoom)?;
            self.displace(tier, victim, call)?;
        }
        let row = self.tier_mut(tier);
        row.used_bytes += incoming.bytes;
        debug_assert!(row.limits.capacity.is_none_or(|capacity| row.used_bytes <= capacity));
        Ok(())
    }

    fn takes(&self, tier: TierId, incoming: &Resident) -> bool {
        let row = self.tier(tier);
        row.limits.fits(row.used_bytes, incoming.bytes) && row.policy.admits(incoming)
    }

    fn victim(&mut self, tier: TierId, incoming: &Resident, call: &mut Call<'_>) -> Option<Slot> {
        let entries = &self.entries;
        let mut evictable = |slot: Slot| !entries[slot as usize].busy && (call.evictable)(slot, tier);
        self.tiers[usize::from(tier)].policy.victim(incoming, &mut evictable)
    }

    /// Takes the victim's copy out of `tier`: down, or away.
    fn displace(&mut self, tier: TierId, slot: Slot, call: &mut Call<'_>) -> Result<(), Refusal> {
        let to = self.destination(tier, slot, call)?;
        self.tier_mut(tier).policy.evict(slot);
        self.give_back(tier, slot);
        if let Destination::Tier(lower) = to {
            self.place(slot, lower);
            self.entry_mut(slot).busy = true;
        }
        call.moves.push(Move { slot, from: tier, to });
        if to == Destination::Out {
            self.free.push(slot);
        }
        Ok(())
    }

    /// Where a victim of `tier` goes; a tier below has its room taken.
    fn destination(&mut self, tier: TierId, slot: Slot, call: &mut Call<'_>) -> Result<Destination, Refusal> {
        let copies = self.copies(slot);
        if let Some(below) = copies.below(tier) {
            return Ok(Destination::Below(below));
        }
        let resident = *self.resident(slot);
        if call.depth >= self.rules.room.depth_max {
            return Err(Refusal::NoRoom);
        }
        for lower in tier + 1..self.len() {
            call.depth += 1;
            let reserved = self.reserve(lower, &resident, call);
            call.depth -= 1;
            match reserved {
                Ok(()) => return Ok(Destination::Tier(lower)),
                Err(Refusal::TooLarge) => {}
                Err(Refusal::NoRoom) => return Err(Refusal::NoRoom),
            }
        }
        let above = copies.fastest().filter(|&fastest| fastest < tier);
        Ok(above.map_or(Destination::Out, Destination::Above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_reference() {
        let upper = Limits::of(Some(1000), false, &Room::default());
        assert_eq!((upper.largest, upper.target), (950, 800));
        assert!(upper.fits(700, 100) && !upper.fits(700, 101), "the target");
        assert!(upper.fits(49, 951) && !upper.fits(49, 952) && !upper.fits(50, 950), "nearly empty");
        assert!(upper.is_bulky(199, 401) && !upper.is_bulky(200, 401) && !upper.is_bulky(199, 400));
        let last = Limits::of(Some(1000), true, &Room::default());
        assert_eq!((last.largest, last.target), (1000, 1000));
        assert!(last.fits(900, 100) && !last.fits(900, 101) && !last.is_bulky(0, 1000));
        let unlimited = Limits::of(None, false, &Room::default());
        assert!(unlimited.fits(0, u64::MAX) && !unlimited.fits(1, u64::MAX) && unlimited.largest == u64::MAX);
        assert_eq!([0, 950, 9999].map(|n| Room::default().most_evictions(n)), [1000, 1050, 5000]);
    }
}
