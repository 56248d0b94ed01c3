//! What a fleet could have more or less of: one file per resource, one row each in [`ALL`].

mod gpu_memory;
mod links;
mod tier_capacity;
mod tier_speed;
mod workers;

use wavetank::Plan;

use super::effect::Measured;

/// Which way a plan was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    More,
    Less,
}

impl Side {
    /// Both of them.
    const BOTH: [Self; 2] = [Self::More, Self::Less];

    /// One factor or the other.
    fn choose<T>(self, more: T, less: T) -> T {
        match self {
            Self::More => more,
            Self::Less => less,
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.choose("more", "less")
    }
}

/// A plan that differs from another in one thing.
#[derive(Clone, Debug)]
pub(crate) struct Perturbation {
    /// The row that made it.
    pub(crate) resource: &'static Entry,
    pub(crate) side: Side,
    /// Whose it is.
    pub(crate) pool: Pool,
    /// Which tier, where it is one's.
    pub(crate) tier: Option<String>,
    /// In words, such as `64.00 GiB more cpu per worker`.
    pub(crate) what: String,
    /// By how much it differs.
    pub(crate) amount: f64,
    /// In what.
    pub(crate) unit: &'static str,
    pub(crate) plan: Plan,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What it is called in reports.
    pub(crate) name: &'static str,
    /// What can be tried with a plan; nothing where it has none of it.
    pub(crate) variants: fn(&Plan) -> Vec<Perturbation>,
    /// Why nothing changed, where what was seen says so.
    pub(crate) idle: fn(&Seen<'_>) -> Option<String>,
    /// What its numbers do not mean with a plan.
    pub(crate) caveat: fn(&Plan) -> Option<String>,
}

/// A run and the one it is held against.
pub(crate) struct Seen<'a> {
    pub(crate) perturbation: &'a Perturbation,
    pub(crate) plan: &'a Plan,
    pub(crate) base: &'a Measured,
    pub(crate) tried: &'a Measured,
}

/// Every resource, alphabetical.
pub(crate) const ALL: &[Entry] =
    &[gpu_memory::ENTRY, links::ENTRY, tier_capacity::ENTRY, tier_speed::ENTRY, workers::ENTRY];

/// All that can be tried with `plan`, in the order of the table.
pub(super) fn perturbations(plan: &Plan) -> Vec<Perturbation> {
    ALL.iter().flat_map(|row| (row.variants)(plan)).collect()
}

/// What readers of the numbers must know.
pub(super) fn caveats(plan: &Plan) -> Vec<String> {
    ALL.iter().filter_map(|row| (row.caveat)(plan)).collect()
}

/// Some of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// All, which do the same.
    Fleet,
    Prefill,
    Decode,
}

impl Pool {
    /// Those of a plan.
    fn all(plan: &Plan) -> &'static [Self] {
        match plan.simulation.decode {
            None => &[Self::Fleet],
            Some(_) => &[Self::Prefill, Self::Decode],
        }
    }

    /// Every pool of a plan, both ways.
    fn both_ways(plan: &Plan) -> impl Iterator<Item = (Self, Side)> {
        Self::all(plan).iter().flat_map(|&pool| Side::BOTH.map(|side| (pool, side)))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fleet => "all",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }

    /// What one of them is called.
    fn worker(self) -> &'static str {
        match self {
            Self::Fleet => "worker",
            Self::Prefill => "prefill worker",
            Self::Decode => "decode worker",
        }
    }

    fn engine(self, plan: &Plan) -> &wavetank_sim::EngineConfig {
        match (self, &plan.simulation.decode) {
            (Self::Decode, Some(pool)) => &pool.engine,
            _ => &plan.simulation.engine,
        }
    }

    fn engine_mut(self, plan: &mut Plan) -> &mut wavetank_sim::EngineConfig {
        match (self, &mut plan.simulation.decode) {
            (Self::Decode, Some(pool)) => &mut pool.engine,
            _ => &mut plan.simulation.engine,
        }
    }

    fn workers(self, plan: &Plan) -> u32 {
        match (self, &plan.simulation.decode) {
            (Self::Decode, Some(pool)) => pool.num_workers,
            _ => plan.simulation.num_workers,
        }
    }

    fn set_workers(self, plan: &mut Plan, number: u32) {
        match (self, &mut plan.simulation.decode) {
            (Self::Decode, Some(pool)) => pool.num_workers = number,
            _ => plan.simulation.num_workers = number,
        }
    }
}

/// `plan` with a change.
fn changed(plan: &Plan, change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = plan.clone();
    change(&mut plan);
    plan
}

const GIB: f64 = (1u64 << 30) as f64;

#[cfg(test)]
mod tests;
