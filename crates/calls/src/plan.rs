//! What storage calls run on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use wavetank_cache::eviction::{self, Quotas};
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
    /// What each tenant may have here.
    #[serde(default)]
    pub quotas: QuotaPlan,
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
    /// What each tenant may have here.
    #[serde(default)]
    pub quotas: QuotaPlan,
}

/// What tenants may have in a tier; only `isolated_lru` asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaPlan {
    /// Bytes for tenants that are not named; without it they have no limit.
    pub default_bytes: Option<u64>,
    /// Bytes by the tenant's cache salt; the empty one is for objects without.
    pub by_salt: BTreeMap<String, u64>,
}

impl Plan {
    /// Whether a policy knows objects again that left.
    pub(crate) fn remembers(&self) -> Result<bool> {
        self.policies().try_fold(false, |any, policy| Ok(any | policy?.remembers))
    }

    /// Whether a policy asks what each tenant may have.
    pub(crate) fn has_quotas(&self) -> Result<bool> {
        self.policies().try_fold(false, |any, policy| Ok(any | policy?.has_quotas))
    }

    fn policies(&self) -> impl Iterator<Item = Result<&'static eviction::Entry>> {
        let behind = self.adapters.iter().filter_map(|adapter| adapter.eviction.as_ref());
        behind.chain([&self.l1.eviction]).map(|plan| eviction::policy(&plan.policy))
    }

    /// Numbers for the tenants that the plan names.
    pub(crate) fn tenants(&self) -> Tenants {
        let quotas = self.adapters.iter().map(|adapter| &adapter.quotas).chain([&self.l1.quotas]);
        let mut tenants = Tenants::default();
        let salts: BTreeSet<&String> = quotas.flat_map(|quotas| quotas.by_salt.keys()).collect();
        salts.into_iter().for_each(|salt| {
            tenants.number(salt);
        });
        tenants.named = tenants.salts.len() as u32;
        tenants
    }
}

/// Tenants by number: 0 has no salt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tenants {
    numbers: HashMap<Box<str>, u32>,
    /// Salts by number, from 1 on; absent where the number is free.
    salts: Vec<Option<Box<str>>>,
    vacant: Vec<u32>,
    /// Those that the plan names have the first numbers, for ever.
    named: u32,
}

impl Tenants {
    /// The number of a salt, given one if it has none.
    pub(crate) fn number(&mut self, salt: &str) -> u32 {
        if salt.is_empty() {
            return 0;
        }
        if let Some(number) = self.numbers.get(salt) {
            return *number;
        }
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.salts.push(None);
            self.salts.len() as u32
        });
        self.salts[number as usize - 1] = Some(salt.into());
        self.numbers.insert(salt.into(), number);
        number
    }

    /// A tenant has nothing any more: its number is another's next.
    pub(crate) fn forget(&mut self, number: u32) {
        if number > self.named
            && let Some(salt) = self.salts[number as usize - 1].take()
        {
            self.numbers.remove(&salt);
            self.vacant.push(number);
        }
    }

    /// Quotas by those numbers.
    pub(crate) fn quotas(&self, plan: &QuotaPlan) -> Quotas {
        let number = |salt: &str| if salt.is_empty() { Some(0) } else { self.numbers.get(salt).copied() };
        let named = plan.by_salt.iter().filter_map(|(salt, bytes)| Some((number(salt)?, *bytes)));
        Quotas { default_bytes: plan.default_bytes, by_tenant: named.collect() }
    }

    /// Salts with their numbers, the empty one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, u32)> {
        let named = self.salts.iter().zip(1..).filter_map(|(salt, number)| Some((salt.as_deref()?, number)));
        [("", 0)].into_iter().chain(named)
    }
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
