//! What a storage benchmark was set to, as far as its numbers depend on it.

use serde::{Deserialize, Serialize};
use wavetank_model::TierRole;

use super::{Criteria, Profile};

/// What a class is promised, in milliseconds of end-to-end latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassTarget {
    /// For 95 of 100 requests.
    pub p95_ms: f64,
    /// For 99 of 100.
    pub p99_ms: f64,
    /// For 999 of 1,000.
    pub p999_ms: f64,
    /// For 9,999 of 10,000.
    pub p9999_ms: f64,
}

/// The clock that a run's times are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// That of the wall.
    #[default]
    Wall,
    /// Time that goes on only as the run says, while its bytes are moved.
    Virtual,
    /// The same, and nothing is moved: operations are only written down.
    VirtualLogged,
    /// Time that goes on as models of the devices say, and nothing is moved.
    Simulated,
}

impl Clock {
    /// Its name in the keys of a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Virtual => "virtual",
            Self::VirtualLogged => "virtual_logged",
            Self::Simulated => "simulated",
        }
    }
}

/// What the numbers of a run depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The tiers in the order of their numbers in events; a role comes once at most.
    pub tiers: Vec<TierRole>,
    /// Bytes of one token in an entry.
    pub bytes_per_token: u64,
    /// What each class is promised, in the order of `Class::ALL`.
    pub targets: [ClassTarget; 3],
    /// Host memory the run was given; it decides which metric tells drives apart.
    pub cpu_mem_bytes: u64,
    /// How long generating one token takes; zero where generation is left out.
    pub generation_ns_per_token: u64,
    /// Where everything random comes from.
    pub seed: u64,
    /// What the storage is judged by.
    pub profile: Profile,
    /// The thresholds.
    #[serde(default)]
    pub criteria: Criteria,
    /// What the run's times are of.
    #[serde(default)]
    pub clock: Clock,
    /// The run ends after so many requests, so that the seed says what is read, however fast.
    #[serde(default)]
    pub counted: bool,
    /// The number of users changes during the run, and what is read with it.
    #[serde(default)]
    pub scaled: bool,
}

impl Setting {
    /// The number of the tier with this role.
    pub fn tier(&self, role: TierRole) -> Option<usize> {
        self.tiers.iter().position(|&tier| tier == role)
    }
}
