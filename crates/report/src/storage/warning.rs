//! What a reader of a run should know before using its numbers.

use super::{GIB, StorageSummary};
use crate::statistics::{ratio, sum};
use wavetank_model::TierRole;

/// With less of the bytes from storage, a run says little about it.
const LEAST_STORAGE_SHARE: f64 = 0.03;

impl StorageSummary {
    /// What a reader of this run should know before using its numbers.
    pub fn warnings(&self) -> Vec<String> {
        let drift = self.drift().map(|drift| drift.sentence());
        let failures = sum(self.tiers.iter().map(|tier| tier.failures));
        let failed = (failures > 0).then(|| format!("failures of devices: {failures}; see tiers[].failures"));
        let nothing = (self.requests.completed() == 0)
            .then(|| "no request ended inside the window: let it run longer, or ask for less".to_owned());
        nothing.into_iter().chain(failed).chain(self.measures_memory()).chain(drift).collect()
    }

    /// Says so where much was read and hardly anything of it from storage (W18).
    fn measures_memory(&self) -> Option<String> {
        let read = self.read_bytes();
        let share = ratio(self.tier(TierRole::Storage)?.hit_bytes as f64, read as f64);
        (read as f64 > GIB && share < LEAST_STORAGE_SHARE).then(|| {
            format!(
                "only {:.1} % of the bytes read came from storage: this run measures memory; give less \
                 --cpu-mem-gb",
                share * 100.0
            )
        })
    }
}
