//! How many blocks were at which distance.

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign};

use super::cut::Part;

/// Blocks, and what they weigh together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) blocks: u64,
    pub(super) weight: u64,
}

impl Count {
    /// One block that stands for `times`.
    pub(super) fn of(weight: u64, times: u64) -> Self {
        Self { blocks: times, weight: weight.saturating_mul(times) }
    }
}

impl Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { blocks: self.blocks + other.blocks, weight: self.weight.saturating_add(other.weight) }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Blocks of the trunk and the others, apart: samples look at them in different ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Strata {
    pub(super) trunk: Count,
    pub(super) rest: Count,
}

impl Strata {
    /// Counts a block that stands for `times`.
    pub(super) fn add(&mut self, part: &Part, times: u64) {
        let count = Count::of(part.weight, times);
        *if part.turn.is_trunk() { &mut self.trunk } else { &mut self.rest } += count;
    }

    /// What share this is of `all`, in blocks and in weight, if it was served of `seen`, which is about
    /// all.
    pub(super) fn shares(&self, seen: &Self, all: &Self) -> [f64; 2] {
        [|count: &Count| count.blocks, |count: &Count| count.weight].map(|of| {
            let whole = |served: &Count, seen: &Count, all: &Count| {
                if of(seen) == 0 { 0.0 } else { of(served) as f64 * (of(all) as f64 / of(seen) as f64) }
            };
            let served =
                whole(&self.trunk, &seen.trunk, &all.trunk) + whole(&self.rest, &seen.rest, &all.rest);
            let all = of(&all.trunk).saturating_add(of(&all.rest));
            if all == 0 { 0.0 } else { served / all as f64 }
        })
    }
}

/// Counts by distance: small whole numbers as places of a list, others by search.
#[derive(Debug)]
pub(super) enum Tally {
    Dense(Vec<Count>),
    Sparse(BTreeMap<u64, Count>),
}

impl Tally {
    pub(super) fn add(&mut self, distance: u64, count: Count) {
        match self {
            Self::Dense(counts) => {
                let at = distance as usize;
                if counts.len() <= at {
                    counts.resize(at + 1, Count::default());
                }
                counts[at] += count;
            }
            Self::Sparse(counts) => *counts.entry(distance).or_default() += count,
        }
    }

    /// The same, for distances that may be large.
    pub(super) fn sparse(self) -> Self {
        Self::Sparse(self.pairs().collect())
    }

    /// Distances that occurred in the trunk or the rest, in order, with what was counted in both.
    pub(super) fn strata(trunk: Self, rest: Self) -> impl Iterator<Item = (u64, Strata)> {
        let (mut trunk, mut rest) = (trunk.pairs().peekable(), rest.pairs().peekable());
        std::iter::from_fn(move || {
            let ahead = [trunk.peek(), rest.peek()].map(|next| next.map(|next| next.0));
            let distance = ahead.into_iter().flatten().min()?;
            let taken = |next: Option<(u64, Count)>| next.map_or_else(Count::default, |next| next.1);
            let here = |next: &(u64, Count)| next.0 == distance;
            let (trunk, rest) = (taken(trunk.next_if(here)), taken(rest.next_if(here)));
            Some((distance, Strata { trunk, rest }))
        })
    }

    /// Distances that occurred, in order.
    fn pairs(self) -> Box<dyn Iterator<Item = (u64, Count)>> {
        match self {
            Self::Dense(counts) => Box::new((0..).zip(counts).filter(|(_, count)| count.blocks > 0)),
            Self::Sparse(counts) => Box::new(counts.into_iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a distance that both have and that comes twice, and by zeros of a list.
    #[test]
    fn two_tallies_are_one() {
        let mut dense = Tally::Dense(Vec::new());
        let mut sparse = Tally::Sparse(BTreeMap::new());
        for (distance, weight) in [(7, 1), (2, 10), (7, 100)] {
            dense.add(distance, Count::of(weight, 1));
        }
        for distance in [1 << 40, 7] {
            sparse.add(distance, Count::of(3, 2));
        }
        let count = |blocks, weight| Count { blocks, weight };
        let expected = [
            (2, count(1, 10), count(0, 0)),
            (7, count(2, 101), count(2, 6)),
            (1 << 40, count(0, 0), count(2, 6)),
        ];
        let found = Tally::strata(dense, sparse).map(|(distance, both)| (distance, both.trunk, both.rest));
        assert!(found.eq(expected));
    }
}
