//! Generated workloads: fixed shapes for sweeps (`flat`, `sessions`), and conversations with lengths and
//! sharing as traffic has them (`conversation`), all seeded.

pub mod arrival;
pub mod conversation;
mod flat;
pub mod lengths;
mod sessions;

use serde::{Deserialize, Serialize};
use wavetank_model::Workload;

use arrival::Process;

/// A synthetic load of fixed lengths (spec/replay.md 3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synthetic {
    /// Prompt tokens of every request.
    pub input_tokens: u32,
    /// Output tokens of every request.
    pub output_tokens: u32,
    /// Sessions.
    pub request_count: u32,
    /// Turns of each session; they share no more than the group's prefix.
    pub turns_per_session: u32,
    /// Part of each prompt's blocks that its group shares.
    pub shared_prefix_ratio: f64,
    /// Groups that share a prefix; 0 shares nothing.
    pub num_prefix_groups: u32,
    /// Pause between the end of a turn and the next one.
    pub inter_turn_delay_ms: f64,
    /// When sessions start.
    pub arrivals: Process,
    /// The seed of the arrival process; changing it leaves the requests as they are.
    pub arrival_seed: u64,
}

impl Synthetic {
    /// Builds the workload. Shared prefixes are whole blocks of `block_size`; times are divided by `speedup`;
    /// `seed` decides which group a session belongs to.
    pub fn workload(&self, block_size: u32, speedup: f64, seed: u64) -> Box<dyn Workload> {
        if self.is_flat() {
            return Box::new(flat::Flat::of(self, speedup));
        }
        Box::new(sessions::Sessions::of(self, sessions::Setting { block_size, speedup, seed }))
    }

    /// Single unrelated requests.
    fn is_flat(&self) -> bool {
        self.turns_per_session == 1
            && self.shared_prefix_ratio == 0.0
            && self.num_prefix_groups == 0
            && self.inter_turn_delay_ms == 0.0
    }
}
