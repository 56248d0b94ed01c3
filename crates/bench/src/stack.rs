//! The store a benchmark runs on: one tier per row of the plan.

use std::sync::Arc;

use wavetank_cache::eviction::{self, Settings};
use wavetank_model::{Error, Result};
use wavetank_store::backends::{self, Site};
use wavetank_store::wrappers::verify;
use wavetank_store::{Store, Tier};

use crate::plan::{Plan, TierPlan};

/// Opens the tiers of `plan`.
pub(crate) fn open(plan: &Plan) -> Result<Arc<Store>> {
    let tiers = plan.tiers.iter().map(|tier| open_tier(tier, plan.verify)).collect::<Result<Vec<_>>>()?;
    Store::open(tiers, plan.rules)
}

fn open_tier(tier: &TierPlan, verifies: bool) -> Result<Tier> {
    let TierPlan { backend, location, capacity_bytes, options, .. } = tier;
    let site =
        Site { location: location.clone(), capacity_bytes: *capacity_bytes, options: options.clone().into() };
    let named = |error: Error| error.at(format!("{} tier", tier.role.name()));
    let mut opened = backends::open(backend, &site).map_err(named)?;
    if verifies && backends::backend(backend)?.caps.keeps_bytes {
        opened = verify::wrap(opened);
    }
    let eviction = eviction::policy(&tier.eviction)?;
    let eviction = (eviction.build)(&Settings { capacity_bytes: *capacity_bytes, ..Settings::default() })?;
    Ok(Tier { backend: opened, capacity_bytes: *capacity_bytes, eviction })
}
