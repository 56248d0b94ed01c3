//! Ids of traces and spans: a sequence from a seed, or what stands for a number.

/// Ids that follow from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Ids(u64);

impl Ids {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The ids of one thing among many, whatever was made before.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        Self(mix(mix(seed) ^ number.wrapping_mul(GOLDEN)))
    }

    pub(crate) fn trace(&mut self) -> [u8; 16] {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.span());
        id[8..].copy_from_slice(&self.span());
        id
    }

    /// Never zero, which would be no id.
    pub(crate) fn span(&mut self) -> [u8; 8] {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0).max(1).to_be_bytes()
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
#[inline]
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Broken by: a sequence that repeats, or numbers that share one.
    #[test]
    fn ids_are_distinct_and_follow_from_the_seed() {
        let mut seen = HashSet::new();
        for number in 0..1000 {
            let mut ids = Ids::of(7, number);
            let all = [ids.span(), ids.span(), ids.span()];
            assert!(all.into_iter().all(|id| id != [0; 8] && seen.insert(id)));
        }
        assert_eq!(Ids::seeded(3).trace(), Ids::seeded(3).trace());
        assert_ne!(Ids::seeded(3).trace(), Ids::seeded(4).trace());
    }
}
