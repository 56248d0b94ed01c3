//! A set of tiers in one byte.

use std::fmt;

use super::TierId;

/// Which tiers hold a copy, fastest first.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct TierSet(u8);

impl TierSet {
    /// As many tiers as fit.
    pub const MOST: usize = u8::BITS as usize;

    /// Whether `tier` is in it.
    pub fn contains(self, tier: TierId) -> bool {
        self.0 & Self::bit(tier) != 0
    }

    /// How many are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether none is.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The fastest one.
    pub fn fastest(self) -> Option<TierId> {
        (self.0 != 0).then(|| self.0.trailing_zeros() as TierId)
    }

    /// The fastest one that is slower than `tier`.
    pub fn below(self, tier: TierId) -> Option<TierId> {
        // `2 * bit - 1` would pass the last bit: mask off `tier` and what is faster in two steps.
        Self(self.0 & !(Self::bit(tier) | (Self::bit(tier) - 1))).fastest()
    }

    /// All of them, fastest first.
    pub fn iter(self) -> impl Iterator<Item = TierId> {
        (0..Self::MOST as TierId).filter(move |&tier| self.contains(tier))
    }

    pub(super) fn insert(&mut self, tier: TierId) {
        self.0 |= Self::bit(tier);
    }

    pub(super) fn remove(&mut self, tier: TierId) {
        self.0 &= !Self::bit(tier);
    }

    fn bit(tier: TierId) -> u8 {
        1 << tier
    }
}

impl FromIterator<TierId> for TierSet {
    fn from_iter<I: IntoIterator<Item = TierId>>(tiers: I) -> Self {
        let mut set = Self::default();
        tiers.into_iter().for_each(|tier| set.insert(tier));
        set
    }
}

impl fmt::Debug for TierSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_ends() {
        let mut set: TierSet = [7, 0, 3].into_iter().collect();
        assert_eq!(format!("{set:?} {}", set.len()), "{0, 3, 7} 3");
        assert_eq!(
            (set.below(0), set.below(3), set.below(6), set.below(7)),
            (Some(3), Some(7), Some(7), None)
        );
        set.remove(0);
        assert_eq!(set.fastest(), Some(3));
        assert!(TierSet::default().is_empty() && TierSet::default().fastest().is_none());
    }
}
