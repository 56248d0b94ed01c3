//! How fast a tier behind the GPU's memory is: twice as fast, half as fast.

use wavetank::Plan;

use super::{Entry, Perturbation, Pool, Side, changed};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "tier_speed", variants, idle: |_| None, caveat: |_| None };

fn variants(plan: &Plan) -> Vec<Perturbation> {
    let tiers = |(pool, side): (Pool, Side)| {
        (0..pool.engine(plan).tiers.len()).map(move |number| (pool, side, number))
    };
    let all = Pool::both_ways(plan).flat_map(tiers);
    all.filter_map(|(pool, side, number)| variant(plan, pool, side, number)).collect()
}

fn variant(plan: &Plan, pool: Pool, side: Side, at: usize) -> Option<Perturbation> {
    let tier = &pool.engine(plan).tiers[at];
    let factor = side.choose(2.0, 0.5);
    let whose = if pool == Pool::Fleet { String::new() } else { format!(" of {}s", pool.worker()) };
    // Only what is no medium has no speed, and no plan has one.
    let sped = tier.medium.sped(factor).ok()?;
    Some(Perturbation {
        resource: &ENTRY,
        side,
        pool,
        tier: Some(tier.name.clone()),
        what: format!("{}{whose} {} as fast", tier.name, side.choose("twice", "half")),
        amount: factor,
        unit: "times the speed",
        plan: changed(plan, |plan| pool.engine_mut(plan).tiers[at].medium = sped),
    })
}
