//! Whose the keys of a recording are, where quotas are kept.

use std::collections::HashMap;

use wavetank_model::{FamilyId, KeyId, Result};

use super::Recording;
use crate::engine::Engine;
use crate::plan::Plan;

/// Tells the engine whose each key is, if a policy asks.
pub(super) fn label(recording: &Recording<'_>, plan: &Plan, engine: &mut Engine) -> Result<()> {
    let Some(table) = recording.table else { return Ok(()) };
    if !plan.has_quotas()? {
        return Ok(());
    }
    let mut tenants = plan.tenants();
    let mut numbers: HashMap<FamilyId, u32> = HashMap::new();
    for key in (0..recording.keys as u32).map(KeyId) {
        let family = table.family_of(key);
        let number = || tenants.number(table.family(family).cache_salt);
        let tenant = *numbers.entry(family).or_insert_with(number);
        engine.label_tenant(key, tenant);
    }
    Ok(())
}
