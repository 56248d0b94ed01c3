//! LRU's hit ratio as a function of the capacity.

use super::knee::{self, Knee};
use super::report::{Bound, Row, Totals};
use super::stack::Found;
use super::tally::{Strata, Tally};

/// From `capacity` on, so much is served.
#[derive(Clone, Copy, Debug)]
struct Step {
    capacity: u64,
    /// Shares of all blocks and of their weight.
    served: [f64; 2],
}

/// LRU's hit ratio at every capacity.
#[derive(Debug)]
pub struct StackCurve {
    steps: Vec<Step>,
    totals: Totals,
    one_in: u64,
}

/// How many times larger the last capacity of a spread is than the first.
const SPREAD: f64 = 256.0;

impl StackCurve {
    /// The curve of what was counted of `all`.
    pub(super) fn of(found: Found, totals: Totals, all: &Strata) -> Self {
        let Found { trunk, rest, seen, one_in, distinct, footprint } = found;
        let mut served = Strata::default();
        let steps = Tally::strata(trunk, rest).map(|(capacity, here)| {
            served = Strata { trunk: served.trunk + here.trunk, rest: served.rest + here.rest };
            Step { capacity, served: served.shares(&seen, all) }
        });
        let totals = Totals { distinct_blocks: distinct, footprint, ..totals };
        Self { steps: steps.collect(), totals, one_in }
    }

    /// One block in so many was looked at, at the end of the pass: with one the curve is exact.
    pub fn one_in(&self) -> u64 {
        self.one_in
    }

    /// What the trace holds.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What an endless cache serves.
    pub fn bound(&self) -> Bound {
        let Row { block_hit_ratio, weight_hit_ratio, .. } = self.at(u64::MAX);
        Bound { block_hit_ratio, weight_hit_ratio }
    }

    /// What a cache of `capacity` serves.
    pub fn at(&self, capacity: u64) -> Row {
        let below = self.steps.partition_point(|step| step.capacity <= capacity);
        let [block_hit_ratio, weight_hit_ratio] =
            below.checked_sub(1).map_or([0.0; 2], |last| self.steps[last].served);
        Row { capacity, block_hit_ratio, weight_hit_ratio, one_in: self.one_in, lru_error: None }
    }

    /// The least capacity that serves `share` of what an endless cache does, in blocks.
    pub(crate) fn least_capacity(&self, share: f64) -> Option<u64> {
        let enough = share * self.bound().block_hit_ratio;
        let at = self.steps.partition_point(|step| step.served[0] < enough);
        self.steps.get(at).map(|step| step.capacity)
    }

    /// `count` capacities up to one that serves all there is to serve, each the same factor above the one
    /// before.
    pub fn spread(&self, count: usize) -> Vec<u64> {
        let most = self.steps.last().map_or(1, |step| step.capacity.max(1)) as f64;
        let least = (most / SPREAD).max(1.0);
        let last = count.saturating_sub(1).max(1) as f64;
        let place = |at: usize| (most * (least / most).powf(1.0 - at as f64 / last)).round() as u64;
        let mut capacities: Vec<u64> = (0..count).map(place).collect();
        capacities.dedup();
        capacities
    }

    /// Where the curve bends: straight lines from one to the next stay close to the best line above it.
    pub fn knees(&self) -> Vec<Knee> {
        knee::knees(self.steps.iter().map(|step| (step.capacity, step.served[0])))
    }
}
