//! How much a tier behind the GPU's memory holds: twice as much, half of it.

use wavetank::Plan;
use wavetank_report::render::table::number;
use wavetank_sim::TierScope;

use super::{Entry, GIB, Perturbation, Pool, Side, changed};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "tier_capacity", variants, idle: |_| None, caveat: |_| None };

fn variants(plan: &Plan) -> Vec<Perturbation> {
    let tiers = |(pool, side): (Pool, Side)| {
        (0..pool.engine(plan).tiers.len()).map(move |number| (pool, side, number))
    };
    let all = Pool::both_ways(plan).flat_map(tiers);
    all.map(|(pool, side, number)| variant(plan, pool, side, number)).collect()
}

fn variant(plan: &Plan, pool: Pool, side: Side, at: usize) -> Perturbation {
    let tier = &pool.engine(plan).tiers[at];
    let before = tier.capacity_bytes;
    let after = side.choose(before.saturating_mul(2), before / 2);
    let gib = before.abs_diff(after) as f64 / GIB;
    let (whose, unit) = match tier.scope {
        TierScope::Worker => (format!(" per {}", pool.worker()), "GiB per worker"),
        TierScope::Shared => (String::new(), "GiB"),
    };
    Perturbation {
        resource: &ENTRY,
        side,
        pool,
        tier: Some(tier.name.clone()),
        what: format!("{} GiB {} {}{whose}", number(gib), side.choose("more", "less"), tier.name),
        amount: gib,
        unit,
        plan: changed(plan, |plan| pool.engine_mut(plan).tiers[at].capacity_bytes = after),
    }
}
