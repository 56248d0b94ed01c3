//! The store a benchmark runs on: one tier per row of the plan.

use std::io;
use std::path::Path;
use std::sync::Arc;

use wavetank_cache::Rules;
use wavetank_cache::eviction::{self, Settings};
use wavetank_model::{Error, Result};
use wavetank_store::backend::{Backend, Location};
use wavetank_store::backends::{self, Site};
use wavetank_store::wrappers::verify;
use wavetank_store::{Store, Tier, dismantle};

use crate::plan::{Plan, TierPlan, Time};
use crate::run::Devices;

/// Opens the tiers of `plan`, on what stands for their devices if they are modelled.
pub(crate) fn open(plan: &Plan, devices: Option<&Devices>) -> Result<Arc<Store>> {
    if plan.time == Time::Modelled {
        let devices = devices.expect("a modelled run is given its devices");
        assert_eq!(devices.backends.len(), plan.tiers.len(), "each tier has one");
        let tiers = plan.tiers.iter().zip(&devices.backends);
        let tiers = tiers.map(|(tier, backend)| place(tier, Arc::clone(backend)));
        return Store::open_by(devices.clock.clone(), tiers.collect::<Result<Vec<_>>>()?, plan.rules);
    }
    let tiers = plan.tiers.iter().map(|tier| open_tier(tier, plan.verify)).collect::<Result<Vec<_>>>()?;
    Store::open(tiers, plan.rules)
}

/// Opens one tier by itself.
pub(crate) fn open_one(tier: &TierPlan) -> Result<Arc<Store>> {
    Store::open(vec![open_tier(tier, false)?], Rules::default())
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
    place(tier, opened)
}

/// A tier with this behind it.
fn place(tier: &TierPlan, backend: Arc<dyn Backend>) -> Result<Tier> {
    let capacity_bytes = tier.capacity_bytes;
    let eviction = eviction::policy(&tier.eviction)?;
    let eviction = (eviction.build)(&Settings { capacity_bytes, ..Settings::default() })?;
    Ok(Tier { backend, capacity_bytes, eviction })
}

/// Removes every entry: what an earlier run left, or what this one did.
pub(crate) fn clear(store: &Arc<Store>) -> Result<()> {
    let told =
        |error: io::Error| Error::usage(format!("cannot remove the entries of an earlier run: {error}"));
    store.clear().map_err(told)
}

/// Removes what runs of `plan` left in places that outlive them, and nothing else; not if it is to be kept.
pub fn clean(plan: &Plan) -> Result<()> {
    if plan.keep_cache || plan.time == Time::Modelled {
        return Ok(());
    }
    for tier in &plan.tiers {
        let caps = backends::backend(&tier.backend)?.caps;
        if !caps.survives {
            continue;
        }
        // Whatever it may hold, all of it goes.
        let whole = TierPlan { capacity_bytes: None, ..tier.clone() };
        let store = Store::open(vec![open_tier(&whole, false)?], plan.rules)?;
        clear(&store)?;
        store.trim().map_err(|error| Error::usage(format!("cannot delete spare files: {error}")))?;
        drop(store);
        if caps.location == Location::Directory {
            let path = Path::new(&tier.location);
            dismantle(path).map_err(|error| Error::io(path, error))?;
        }
    }
    Ok(())
}
