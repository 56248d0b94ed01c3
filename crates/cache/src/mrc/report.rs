//! What a study found, as plain data for tables, files and plots.

use serde::Serialize;

use super::curve::StackCurve;
use super::knee::Knee;
use super::{Rule, Sizes};
use crate::eviction::LRU;

/// What a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Accesses.
    pub requests: u64,
    /// Blocks asked for, each as often as it was.
    pub blocks: u64,
    /// What they weigh together.
    pub weight: u64,
    /// Different blocks; from a sample, about so many.
    pub distinct_blocks: u64,
    /// What all different blocks take of a capacity.
    pub footprint: u64,
}

/// What no cache exceeds: every access but the first to each block is served.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Of the blocks.
    pub block_hit_ratio: f64,
    /// Of their weight.
    pub weight_hit_ratio: f64,
}

/// One capacity of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// In blocks, or in the unit of weights.
    pub capacity: u64,
    /// The share of blocks served.
    pub block_hit_ratio: f64,
    /// The same by weight.
    pub weight_hit_ratio: f64,
    /// One block in so many was looked at: with one the row is exact.
    pub one_in: u64,
    /// How far off the same sample is for LRU, where the truth is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lru_error: Option<f64>,
}

/// A policy's hit ratio at some capacities.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyCurve {
    /// Its name in the table of policies.
    pub policy: &'static str,
    /// In the order of the capacities.
    pub rows: Vec<Row>,
}

/// The capacity that serves a share of what an endless cache does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Enough {
    /// The share.
    pub share_of_bound: f64,
    /// With LRU.
    pub capacity: u64,
}

/// Everything a study found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// When a block counted as served.
    pub rule: Rule,
    /// What capacities count.
    pub sizes: Sizes,
    /// What the trace holds.
    pub totals: Totals,
    /// What an endless cache serves.
    pub bound: Bound,
    /// LRU first, then the others in the order they were asked for.
    pub curves: Vec<PolicyCurve>,
    /// Where LRU's curve bends.
    pub knees: Vec<Knee>,
    /// What is enough.
    pub enough: Vec<Enough>,
}

/// Shares of the bound that a report names capacities for.
const SHARES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// The curves of a study.
#[derive(Debug)]
pub struct Curves {
    /// When a block counted as served.
    pub rule: Rule,
    /// What capacities count.
    pub sizes: Sizes,
    /// LRU's, for any capacity.
    pub lru: StackCurve,
    /// The others', at the capacities of the plan.
    pub simulated: Vec<PolicyCurve>,
}

impl Curves {
    /// Everything, with LRU at `capacities`.
    pub fn report(&self, capacities: &[u64]) -> Report {
        let lru = PolicyCurve {
            policy: LRU.name,
            rows: capacities.iter().map(|&capacity| self.lru.at(capacity)).collect(),
        };
        let enough = |share_of_bound| {
            let capacity = self.lru.least_capacity(share_of_bound)?;
            Some(Enough { share_of_bound, capacity })
        };
        Report {
            rule: self.rule,
            sizes: self.sizes,
            totals: self.lru.totals(),
            bound: self.lru.bound(),
            curves: std::iter::once(lru).chain(self.simulated.iter().cloned()).collect(),
            knees: self.lru.knees(),
            enough: SHARES.into_iter().filter_map(enough).collect(),
        }
    }
}
