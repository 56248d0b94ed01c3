//! How far apart runs of one plan are that differ in the seed alone.

use serde_json::{Value, json};
use wavetank::Plan;

use super::effect::{GOALS, Measured};

/// Runs of the plan itself, where something in it is left to chance.
const SEEDS: u64 = 3;

/// The seeds to run the plan with besides its own.
pub(super) fn further_seeds(plan: &Plan) -> Vec<u64> {
    let further = |offset| plan.simulation.seed.wrapping_add(offset);
    if plan.has_chance() { (1..SEEDS).map(further).collect() } else { Vec::new() }
}

/// From the least to the most that seeds gave, metric by metric.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    seeds: Vec<u64>,
    widths: Vec<(&'static str, f64)>,
}

impl Spread {
    /// Of the plan's own run and others; nothing where there are none.
    pub(super) fn of(seed: u64, base: &Measured, others: &[(u64, Measured)]) -> Option<Self> {
        if others.is_empty() {
            return None;
        }
        let runs = || std::iter::once(base).chain(others.iter().map(|(_, run)| run));
        let width = |name: &'static str| {
            let values = || runs().map(|run| run.of(name));
            (name, values().fold(f64::NAN, f64::max) - values().fold(f64::NAN, f64::min))
        };
        Some(Self {
            seeds: std::iter::once(seed).chain(others.iter().map(|(seed, _)| *seed)).collect(),
            widths: GOALS.iter().map(|goal| width(goal.name)).collect(),
        })
    }

    /// How far apart seeds are in one metric.
    pub(super) fn of_metric(&self, name: &str) -> f64 {
        self.widths.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, width)| *width)
    }

    pub(super) fn json(&self) -> Value {
        let widths = self.widths.iter().filter(|(_, width)| width.is_finite());
        let widths: serde_json::Map<String, Value> =
            widths.map(|(name, width)| ((*name).to_owned(), json!(width))).collect();
        json!({ "seeds": self.seeds, "spread": widths })
    }

    /// How many seeds were run.
    pub(super) fn count(&self) -> usize {
        self.seeds.len()
    }
}
