//! A device behind the workers of a plan, as a tier of what it was measured to do.

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result, TierProfile};
use wavetank_sim::media::MediumConfig;
use wavetank_sim::{TierConfig, TierScope};

use super::Plan;
use crate::args::ReplayArgs;

/// What the tier is called.
const NAME: &str = "device";

/// A plan with a device behind all workers, which is still to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct DevicePlan {
    plan: Plan,
    /// The number of the device's tier: the last one.
    pub tier: u8,
}

impl DevicePlan {
    /// The plan of these flags with so much of a device behind the workers.
    pub fn of(args: &ReplayArgs, capacity: &str) -> Result<Self> {
        // Until it is measured it is a device of some speed.
        let device = json!({
            "name": NAME, "capacity": capacity, "medium": "1GB/s", "unit": "object", "load": "delay",
        });
        let mut args = args.clone();
        args.tiers.push(device);
        let mut plan = Plan::of(&args)?;
        let simulation = &mut plan.simulation;
        let number = simulation.engine.tiers.len() as u8;
        if let Some(device) = simulation.engine.tiers.last_mut().filter(|_| simulation.num_workers > 1) {
            device.scope = TierScope::Shared;
        }
        plan.check()?;
        let tier = number.checked_sub(1).ok_or_else(|| Error::usage("workers of this plan have no tiers"))?;
        Ok(Self { plan, tier })
    }

    fn device(&self) -> &TierConfig {
        &self.plan.simulation.engine.tiers[usize::from(self.tier)]
    }

    /// What has to fit there when what was simulated is played: what is in flight comes on top.
    pub fn room_bytes(&self) -> u64 {
        let capacity = self.device().capacity_bytes;
        capacity.saturating_add(capacity / 8).saturating_add(1 << 28)
    }

    /// What it reads.
    pub fn inputs(&self) -> impl Iterator<Item = &std::path::Path> {
        self.plan.inputs()
    }

    /// The plan, with the device as it was measured.
    pub fn measured(mut self, profile: &TierProfile) -> Result<Plan> {
        let profile = serde_json::to_value(profile).unwrap_or(Value::Null);
        let parameters = Map::from_iter([("profile".to_owned(), profile)]);
        let medium = MediumConfig { name: "measured".to_owned(), parameters };
        self.plan.simulation.engine.tiers[usize::from(self.tier)].medium = medium;
        self.plan.check()?;
        Ok(self.plan)
    }
}
