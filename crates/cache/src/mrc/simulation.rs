//! Caches of every policy and capacity, side by side on samples of the same accesses.

use wavetank_model::Result;

use super::Sizes;
use super::curve::StackCurve;
use super::cut::Part;
use super::miniature::{Miniature, Terms};
use super::report::Row;
use super::study::Plan;
use super::tally::Strata;
use crate::eviction::{self, Entry, LRU};

/// Parts that are gathered before each cache works through them: a cache's tables are then at hand.
const BATCH: usize = 1 << 14;

/// Whose simulation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// The policy of this place in the plan.
    Policy(usize),
    /// LRU on the same sample, to see how far off it is.
    Control,
}

struct Simulation {
    subject: Subject,
    capacity: u64,
    cache: Miniature,
}

/// Simulations that look at the same blocks.
struct Sample {
    terms: Terms,
    simulations: Vec<Simulation>,
    /// What was looked at of the trunk and of the rest, with what it stands for.
    seen: Strata,
    parts: Vec<Part>,
    /// Where each request of `parts` ends, and whose it is.
    requests: Vec<(usize, u32)>,
}

/// All simulations of a study.
pub(super) struct Simulations {
    samples: Vec<Sample>,
}

impl Simulations {
    /// Empty caches; a block weighs `mean_weight` on average.
    pub(super) fn of(plan: &Plan, mean_weight: u64) -> Result<Self> {
        let mut simulations = Self { samples: Vec::new() };
        for &capacity in &plan.capacities {
            let most = most_of(plan, capacity, mean_weight);
            let one_in = |policy: &Entry| if policy.scales { most } else { 1 };
            for (at, policy) in plan.policies.iter().enumerate() {
                simulations.sample(plan, one_in(policy)).add(Subject::Policy(at), policy, plan, capacity)?;
            }
            if most > 1 && plan.policies.iter().any(|policy| policy.scales) {
                simulations.sample(plan, most).add(Subject::Control, LRU, plan, capacity)?;
            }
        }
        Ok(simulations)
    }

    /// The sample of one block in `one_in`, made if it is not there.
    fn sample(&mut self, plan: &Plan, one_in: u64) -> &mut Sample {
        match self.samples.iter().position(|sample| sample.terms.one_in == one_in) {
            Some(at) => &mut self.samples[at],
            None => self.samples.push_mut(Sample::of(Terms { rule: plan.rule, sizes: plan.sizes, one_in })),
        }
    }

    /// The next access.
    pub(super) fn access(&mut self, parts: &[Part], tenant: u32) {
        self.samples.iter_mut().for_each(|sample| sample.access(parts, tenant));
    }

    /// Works through what was gathered.
    pub(super) fn flush(&mut self) {
        self.samples.iter_mut().for_each(Sample::flush);
    }

    /// The policy of place `at` in the plan with one of its capacities.
    pub(super) fn row(&self, at: usize, capacity: u64, lru: &StackCurve, all: &Strata) -> Row {
        let subject = Subject::Policy(at);
        let found = self.samples.iter().find_map(|sample| Some((sample, sample.served(subject, capacity)?)));
        let (sample, served) = found.expect("every capacity is simulated");
        let [block_hit_ratio, weight_hit_ratio] = served.shares(&sample.seen, all);
        let error = |control: Strata| control.shares(&sample.seen, all)[0] - lru.at(capacity).block_hit_ratio;
        let lru_error = sample.served(Subject::Control, capacity).map(error);
        Row { capacity, block_hit_ratio, weight_hit_ratio, one_in: sample.terms.one_in, lru_error }
    }
}

/// For how many blocks one stands in a cache of `capacity`: fewer where it would hold too few.
fn most_of(plan: &Plan, capacity: u64, mean_weight: u64) -> u64 {
    let entries = match plan.sizes {
        Sizes::Equal => capacity,
        Sizes::Weighed => capacity / mean_weight.max(1),
    };
    let most = (entries / plan.least_entries.max(1)).max(1);
    u64::from(plan.one_in).min(1 << most.ilog2())
}

impl Sample {
    fn of(terms: Terms) -> Self {
        let (simulations, parts, requests) = (Vec::new(), Vec::new(), Vec::new());
        Self { terms, simulations, seen: Strata::default(), parts, requests }
    }

    /// Adds a cache.
    fn add(&mut self, subject: Subject, policy: &Entry, plan: &Plan, capacity: u64) -> Result<()> {
        let settings = eviction::Settings { capacity_bytes: Some(capacity), quotas: plan.quotas.clone() };
        let cache = Miniature::of((policy.build)(&settings)?, capacity, self.terms);
        self.simulations.push(Simulation { subject, capacity, cache });
        Ok(())
    }

    fn access(&mut self, parts: &[Part], tenant: u32) {
        let (one_in, begin) = (self.terms.one_in, self.parts.len());
        for part in parts.iter().filter(|part| part.turn.has_come(one_in)) {
            self.seen.add(part, one_in);
            self.parts.push(*part);
        }
        if self.parts.len() > begin {
            self.requests.push((self.parts.len(), tenant));
        }
        if self.parts.len() >= BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        for simulation in &mut self.simulations {
            let mut begin = 0;
            for &(end, tenant) in &self.requests {
                simulation.cache.access(&self.parts[begin..end], tenant);
                begin = end;
            }
        }
        self.parts.clear();
        self.requests.clear();
    }

    fn served(&self, subject: Subject, capacity: u64) -> Option<Strata> {
        let is_it = |one: &&Simulation| one.subject == subject && one.capacity == capacity;
        self.simulations.iter().find(is_it).map(|one| one.cache.served())
    }
}
