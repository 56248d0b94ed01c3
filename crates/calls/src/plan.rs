//! What storage calls run on.

use serde::{Deserialize, Serialize};
use wavetank_model::Nanos;

/// Two tiers and what happens between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Memory.
    pub l1: L1Plan,
    /// What is behind it, in the order they are asked.
    pub adapters: Vec<AdapterPlan>,
    /// From the end of a write to the end of its copies behind.
    pub store_delay: Nanos,
    /// What becomes of an object in memory once it was copied.
    pub store_policy: StorePolicy,
    /// What becomes of an object that came from behind once it was read.
    pub load_policy: LoadPolicy,
}

/// The tier in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L1Plan {
    /// What it holds; no limit when absent.
    pub capacity_bytes: Option<u64>,
    /// Objects take multiples of this.
    pub align_bytes: u64,
    /// How long a write may take.
    pub write_ttl: Nanos,
    /// How long a read may take.
    pub read_ttl: Nanos,
    /// Who leaves, and when.
    pub eviction: EvictionPlan,
}

/// A tier behind memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterPlan {
    /// What it holds; no limit when absent.
    pub capacity_bytes: Option<u64>,
    /// How fast it takes objects; at once when absent.
    pub bytes_per_second: Option<f64>,
    /// Who leaves, and when; nobody when absent.
    pub eviction: Option<EvictionPlan>,
}

/// Who leaves a tier, and when: a loop looks now and then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvictionPlan {
    /// A row of the eviction table.
    pub policy: String,
    /// From this part of the capacity on.
    pub trigger_watermark: f64,
    /// This part of the objects, at least one.
    pub eviction_ratio: f64,
}

/// What becomes of an object in memory once it was copied behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StorePolicy {
    /// It stays.
    #[default]
    Default,
    /// It leaves.
    SkipL1,
}

/// What becomes of an object that came from behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadPolicy {
    /// It leaves memory with its last reader.
    #[default]
    Default,
    /// It stays.
    Retain,
}
