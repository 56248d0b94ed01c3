//! Everything a storage benchmark depends on. It is part of every report and can be run again.

use serde::{Deserialize, Serialize};
use wavetank_cache::Rules;
use wavetank_model::{Nanos, TierRole};

use crate::class::Target;
use crate::queue::Ageing;
use crate::scale::Scaling;
use crate::user::Habits;
use crate::worker::{Pace, Reads, Role};

/// A storage benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Requests, names and contents follow from it.
    pub seed: u64,
    /// The KV of one token on this machine.
    pub bytes_per_token: u64,
    /// How many users there are; also how many requests are worked on at a time, up to `workers_max`.
    pub users: u32,
    /// More requests than this are never worked on at a time.
    pub workers_max: u32,
    /// What all users have in common.
    pub habits: Habits,
    /// Where requests come from.
    pub feed: Feed,
    /// How many requests may wait; no limit when absent.
    pub queue_limit: Option<u64>,
    /// How waiting makes a request more urgent.
    pub ageing: Ageing,
    /// What each class is promised, in the order of [`Class::ALL`](wavetank_model::Class::ALL).
    pub targets: [Target; 3],
    /// How often generating reads an entry.
    pub reads: Reads,
    /// Which parts of a request this machine does.
    pub role: Role,
    /// How long generating takes.
    pub pace: Pace,
    /// Which clock users and generation follow.
    pub time: Time,
    /// What is excluded at the start.
    pub warmup: Nanos,
    /// What is measured after it, at most.
    pub duration: Nanos,
    /// The run ends when this many requests were served; no limit when absent.
    pub max_requests: Option<u64>,
    /// How many entries may be written at a time; no limit when absent.
    pub max_concurrent_allocs: Option<u32>,
    /// How the number of users changes; not at all when absent.
    pub scaling: Option<Scaling>,
    /// Bytes written before the run so that the drive is in use; none when absent.
    pub precondition_bytes: Option<u64>,
    /// How many entries of preconditioning are written at a time.
    pub precondition_depth: u32,
    /// Threads that do I/O, each with a queue of its own.
    pub io_threads: u32,
    /// Pieces of 1 MiB at devices at a time, per thread.
    pub io_depth: u32,
    /// Where entries live, fastest first.
    pub tiers: Vec<TierPlan>,
    /// What the tiers have in common.
    pub rules: Rules,
    /// Whether what is read is compared with what was written.
    pub verify: bool,
    /// Whether entries stay in the cache directory after the run.
    pub keep_cache: bool,
}

impl Plan {
    /// The last tier, which is what is measured.
    pub fn storage(&self) -> Option<&TierPlan> {
        self.tiers.iter().find(|tier| tier.role == TierRole::Storage)
    }

    /// How many threads there are, and how many pieces each may have at devices: modelled devices have one
    /// thread for all, since their time is one.
    pub(crate) fn lanes(&self) -> (u32, usize) {
        match self.time {
            Time::Modelled => (1, self.io_threads as usize * self.io_depth as usize),
            Time::Wall | Time::Virtual => (self.io_threads, self.io_depth as usize),
        }
    }
}

/// Where requests come from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feed {
    /// Simulated users.
    Users(Load),
    /// A recording of conversations or requests.
    Recording {
        /// When they come.
        arrivals: Arrivals,
        /// How often it is played; without end when absent.
        cycles: Option<u64>,
        /// Whether each pass has an order of its own.
        shuffle: bool,
    },
}

/// Whether users wait for answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// They ask on their own schedule.
    #[default]
    Open,
    /// They think once they have their answer, then ask again.
    Closed,
}

/// When the requests of a recording come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At their recorded times, so many times faster.
    Recorded {
        /// How many times.
        speedup: f64,
    },
    /// One after the other, this far apart.
    Every(Nanos),
    /// Each user plays a conversation, then the next one; a turn follows the answer to the one before.
    OnAnswer,
}

/// Which clock users and generation follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// The wall clock.
    #[default]
    Wall,
    /// A virtual one, on which I/O takes no time: the order of operations depends on the seed alone.
    Virtual,
    /// A virtual one, on which I/O takes what models of the tiers' devices say.
    Modelled,
}

/// One tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierPlan {
    /// What it stands for.
    pub role: TierRole,
    /// A row of the backends table.
    pub backend: String,
    /// A directory, device or address.
    pub location: String,
    /// How many bytes of entries it holds; no limit when absent.
    pub capacity_bytes: Option<u64>,
    /// Who leaves first: a row of the eviction table.
    pub eviction: String,
    /// The backend's options.
    pub options: std::collections::BTreeMap<String, String>,
}
