//! A device behind the workers of a plan, as a tier of what it was measured to do.

use serde_json::{Map, Value, json};
use wavetank_model::{Result, TierProfile};
use wavetank_sim::media::MediumConfig;
use wavetank_sim::{TierConfig, TierLoad, TierScope, TierUnit, TierWrite};

use super::Plan;

/// What the tier is called.
const NAME: &str = "device";

/// A device that all workers have behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTier {
    /// How much of it is used.
    pub capacity_bytes: u64,
}

impl DeviceTier {
    /// What has to fit there when what was simulated is played: what is in flight comes on top.
    pub fn room_bytes(&self) -> u64 {
        self.capacity_bytes.saturating_add(self.capacity_bytes / 8).saturating_add(1 << 28)
    }

    fn tier(&self, plan: &Plan, medium: MediumConfig) -> TierConfig {
        let simulation = &plan.simulation;
        TierConfig {
            name: NAME.to_owned(),
            capacity_bytes: self.capacity_bytes,
            medium,
            scope: if simulation.num_workers > 1 { TierScope::Shared } else { TierScope::Worker },
            write: if simulation.engine.tiers.is_empty() { TierWrite::Through } else { TierWrite::Evict },
            load: TierLoad::Delay,
            unit: TierUnit::Object,
        }
    }
}

impl Plan {
    /// Whether workers of it can have such a device, before anyone measures it.
    pub fn check_device(&self, device: &DeviceTier) -> Result<()> {
        let parameters = Map::from_iter([("gbps".to_owned(), json!(1.0))]);
        let any = MediumConfig { name: "constant".to_owned(), parameters };
        let mut plan = self.clone();
        plan.simulation.engine.tiers.push(device.tier(self, any));
        plan.check()
    }

    /// Puts a device behind the workers, as it was measured; the number of its tier.
    pub fn add_device(&mut self, device: &DeviceTier, profile: &TierProfile) -> Result<u8> {
        let profile = serde_json::to_value(profile).unwrap_or(Value::Null);
        let parameters = Map::from_iter([("profile".to_owned(), profile)]);
        let medium = MediumConfig { name: "measured".to_owned(), parameters };
        let tier = device.tier(self, medium);
        let tiers = &mut self.simulation.engine.tiers;
        tiers.push(tier);
        let number = tiers.len() as u8 - 1;
        self.check()?;
        Ok(number)
    }
}
