//! What storage calls run on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wavetank_cache::eviction;
use wavetank_model::{Error, Nanos, Result};

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
    /// What its bytes are in, where there are any.
    pub medium: Medium,
    /// What it holds; no limit when absent.
    pub capacity_bytes: Option<u64>,
    /// How fast it takes objects; at once when absent.
    pub bytes_per_second: Option<f64>,
    /// Who leaves, and when; nobody when absent.
    pub eviction: Option<EvictionPlan>,
}

/// What a tier behind memory is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// Memory that is as slow as the plan says.
    #[default]
    Mock,
    /// A backend of the store.
    Backend {
        /// A row of the backend table.
        name: String,
        /// A directory or an address; empty where there is none.
        location: String,
        /// Its options by name.
        options: BTreeMap<String, String>,
        /// What goes around it, the innermost first.
        wrappers: Vec<Wrapping>,
    },
}

/// A wrapper around a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrapping {
    /// A row of the wrapper table.
    pub name: String,
    /// Its options by name.
    pub options: BTreeMap<String, String>,
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

/// What the reference has where nothing is said (spec/storage-trace.md 6).
const WATERMARK: f64 = 0.8;
const RATIO: f64 = 0.2;

impl EvictionPlan {
    /// As users type it: names as the reference writes them are taken too, `IsolatedLRU` is `isolated_lru`.
    /// `places` name the three for errors.
    pub fn typed(
        policy: &str,
        watermark: Option<f64>,
        ratio: Option<f64>,
        places: [&str; 3],
    ) -> Result<Self> {
        let name = match policy {
            "IsolatedLRU" => "isolated_lru".to_owned(),
            other => other.to_lowercase(),
        };
        eviction::policy(&name).map_err(|error| error.at(places[0]))?;
        let part = |place: &str, value: f64| match value {
            0.0..=1.0 => Ok(value),
            _ => Err(Error::usage(format!("must be from 0 to 1, not {value}")).at(place)),
        };
        Ok(Self {
            policy: name,
            trigger_watermark: part(places[1], watermark.unwrap_or(WATERMARK))?,
            eviction_ratio: part(places[2], ratio.unwrap_or(RATIO))?,
        })
    }
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
