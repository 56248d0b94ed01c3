//! The pass over a trace.

use wavetank_model::{Error, Result};

use super::curve::StackCurve;
use super::cut::{Cut, Part};
use super::report::{Curves, PolicyCurve, Totals};
use super::simulation::Simulations;
use super::stack::{self, Stack};
use super::tally::Strata;
use super::window::Window;
use super::{Access, Rule, Sizes};
use crate::eviction::{Entry, Quotas};

/// What to find out.
#[derive(Clone)]
pub struct Plan {
    /// When a block that is there is served.
    pub rule: Rule,
    /// What a block takes.
    pub sizes: Sizes,
    /// Policies beside LRU …
    pub policies: Vec<&'static Entry>,
    /// … and the capacities to simulate each of them with.
    pub capacities: Vec<u64>,
    /// What tenants may hold; only a policy with quotas asks.
    pub quotas: Quotas,
    /// For how many blocks one stands in a simulation: a power of two, one for exact ones.
    pub one_in: u32,
    /// A simulated cache has room for at least so many blocks; a smaller one looks at more of them.
    pub least_entries: u64,
    /// For how many blocks one stands for LRU, a power of two …
    pub lru_one_in: u32,
    /// … and twice as many whenever it has more different ones than these: what bounds the memory.
    pub most_blocks: usize,
    /// Another one draws another sample.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            sizes: Sizes::default(),
            policies: Vec::new(),
            capacities: Vec::new(),
            quotas: Quotas::default(),
            one_in: 8,
            least_entries: 256,
            lru_one_in: 1,
            most_blocks: 1 << 19,
            seed: 42,
        }
    }
}

impl Plan {
    /// Everything is looked at, whatever it takes: memory grows with the number of different blocks.
    pub fn exact() -> Self {
        Self { one_in: 1, lru_one_in: 1, most_blocks: usize::MAX, ..Self::default() }
    }

    fn check(&self) -> Result<()> {
        for (what, one_in) in [("simulations", self.one_in), ("lru", self.lru_one_in)] {
            if !one_in.is_power_of_two() || one_in > MOST_ONE_IN {
                let text = format!("one block in {one_in} cannot be drawn for {what}");
                return Err(Error::input(text).hint(format!("take a power of two up to {MOST_ONE_IN}")));
            }
        }
        Ok(())
    }
}

/// No trace is so long that less of it is of use.
const MOST_ONE_IN: u32 = 1 << 16;

/// What all accesses may weigh together, each with what it stands for: sums stay within 64 bits.
const MOST_WEIGHT: u64 = 1 << 62;

/// A pass over a trace.
pub struct Study {
    plan: Plan,
    totals: Totals,
    /// Requests that nobody has seen yet.
    window: Window,
    cut: Cut,
    parts: Vec<Part>,
    /// All that was asked for.
    all: Strata,
    stack: Stack,
    /// Made with the first window.
    simulations: Option<Simulations>,
}

impl Study {
    /// A pass that has seen nothing yet.
    pub fn new(plan: Plan) -> Result<Self> {
        plan.check()?;
        let stack = Stack::of(stack::Settings {
            rule: plan.rule,
            sizes: plan.sizes,
            one_in: u64::from(plan.lru_one_in),
            most_blocks: plan.most_blocks,
        });
        Ok(Self {
            totals: Totals::default(),
            window: Window::default(),
            cut: Cut::of(plan.rule, plan.seed),
            parts: Vec::new(),
            all: Strata::default(),
            stack,
            simulations: None,
            plan,
        })
    }

    /// The next access.
    pub fn push(&mut self, access: Access<'_>) -> Result<()> {
        self.count(access)?;
        self.window.push(access);
        if self.window.is_full() {
            self.learn();
            self.pass()?;
        }
        Ok(())
    }

    /// What was found.
    pub fn finish(mut self) -> Result<Curves> {
        // A few last requests teach nothing after many.
        if self.simulations.is_none() {
            self.learn();
        }
        self.pass()?;
        let mut simulations = self.simulations.take().expect("made with the first window");
        simulations.flush();
        let lru = StackCurve::of(self.stack.finish(), self.totals, &self.all);
        let Plan { rule, sizes, policies, capacities, .. } = self.plan;
        let curve = |(at, policy): (usize, &&'static Entry)| {
            let row = |&capacity| simulations.row(at, capacity, &lru, &self.all);
            PolicyCurve { policy: policy.name, rows: capacities.iter().map(row).collect() }
        };
        let simulated = policies.iter().enumerate().map(curve).collect();
        Ok(Curves { rule, sizes, lru, simulated })
    }

    fn count(&mut self, access: Access<'_>) -> Result<()> {
        let add = |sum: Option<u64>, weight: u64| sum?.checked_add(weight);
        let sum = access.blocks.iter().map(|block| block.weight).fold(Some(self.totals.weight), add);
        let requests = self.totals.requests + 1;
        let most = MOST_WEIGHT / u64::from(self.plan.one_in.max(self.plan.lru_one_in));
        let Some(weight) = sum.filter(|&sum| sum <= most) else {
            let text = format!("the weights of {requests} requests add up to more than {most}");
            return Err(Error::input(text).hint("look for sizes that are damaged"));
        };
        let blocks = self.totals.blocks + access.blocks.len() as u64;
        self.totals = Totals { requests, blocks, weight, ..self.totals };
        Ok(())
    }

    /// Learns from the window what many requests have in common, if it makes a difference.
    fn learn(&mut self) {
        let is_exact = self.plan.one_in == 1 && self.plan.lru_one_in == 1;
        if is_exact && self.plan.most_blocks == usize::MAX {
            return;
        }
        let frequent = self.window.frequent(self.plan.rule, &self.cut.trunk);
        if self.cut.trunk.become_these(&frequent) {
            self.stack.follow(&self.cut.trunk);
        }
    }

    /// Shows the window's requests to all caches.
    fn pass(&mut self) -> Result<()> {
        let simulations = match &mut self.simulations {
            Some(simulations) => simulations,
            made => made.insert(Simulations::of(&self.plan, self.window.mean_weight())?),
        };
        for access in self.window.accesses() {
            self.cut.parts(access.blocks, &mut self.parts);
            self.parts.iter().for_each(|part| self.all.add(part, 1));
            self.stack.access(&self.parts);
            simulations.access(&self.parts, access.tenant);
        }
        self.window.clear();
        Ok(())
    }
}
