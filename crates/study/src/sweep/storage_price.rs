//! What memory and storage cost by the GiB and hour: KV in GPUs, and the tiers behind them.

use std::collections::BTreeMap;

use wavetank::Plan;
use wavetank_model::Result;
use wavetank_sim::{EngineConfig, TierScope};

use super::document::Section;

/// How a price of a GiB for an hour is called, after what it is the price of.
pub(super) const SUFFIX: &str = "_gib_hour";
/// What the GPU's own memory is called.
const GPU: &str = "gpu";
/// Names that one price covers, where a tier has none under its own.
const KINDS: [(&str, &[&str]); 2] = [
    ("disk", &["disk", "g3", "nvme", "ssd", "storage"]),
    ("ram", &["cpu", "dram", "g2", "host", "memory", "ram"]),
];

const GIB: f64 = (1u64 << 30) as f64;

/// Prices in USD, by what they are of: a tier's name, a kind of tiers, or the GPU's memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StoragePrices(BTreeMap<String, f64>);

/// Something that holds KV.
struct Store {
    name: String,
    /// Of all workers; not a number where the bytes of a token are not known.
    gib: f64,
}

impl StoragePrices {
    /// Every key of the section that is the price of a GiB.
    pub(super) fn read(section: &Section<'_>) -> Result<Self> {
        let named =
            section.entries().iter().filter_map(|(key, _)| Some((key, key.strip_suffix(SUFFIX)?.to_owned())));
        let priced = |(key, name): (&String, String)| {
            let usd = section.value(key, "a number from 0 to 1e12", super::cost::amount)?;
            Ok((name, usd.unwrap_or_default()))
        };
        named.map(priced).collect::<Result<_>>().map(Self)
    }

    /// What the fleet's memory and tiers cost an hour, as far as they have a price.
    pub(super) fn usd_per_hour(&self, plan: &Plan) -> f64 {
        let cost = |store: &Store| Some(self.of(&store.name)? * store.gib).filter(|usd| usd.is_finite());
        stores(plan).iter().filter_map(cost).sum()
    }

    /// Tiers without a price, and prices of nothing.
    pub(super) fn gaps(&self, plan: &Plan) -> Vec<String> {
        let stores = stores(plan);
        let unpriced = stores.iter().filter(|store| store.name != GPU && self.of(&store.name).is_none());
        let mut gaps: Vec<String> = unpriced
            .map(|store| format!("tier \"{0}\" has no price, so it costs nothing: {0}{SUFFIX}", store.name))
            .collect();
        for name in self.0.keys() {
            let priced: Vec<&Store> = stores.iter().filter(|s| self.key(&s.name) == Some(name)).collect();
            if priced.is_empty() {
                gaps.push(format!("\"{name}{SUFFIX}\" has no effect: there is no such tier"));
            } else if priced.iter().all(|store| store.gib.is_nan()) {
                gaps.push(format!("\"{name}{SUFFIX}\" has no effect: \"kv_bytes_per_token\" is not known"));
            }
        }
        gaps.dedup();
        gaps
    }

    fn of(&self, store: &str) -> Option<f64> {
        self.0.get(self.key(store)?).copied()
    }

    /// Under which name the price of a store is: its own, or that of its kind.
    fn key(&self, store: &str) -> Option<&String> {
        let kind = KINDS.iter().find(|(_, names)| names.contains(&store)).map(|(kind, _)| *kind);
        [Some(store), kind]
            .into_iter()
            .flatten()
            .find_map(|name| self.0.get_key_value(name))
            .map(|(key, _)| key)
    }
}

/// The KV memory of the GPUs of a worker of `plan`, where the bytes of a token are known.
pub(crate) fn gpu_bytes(plan: &Plan, engine: &EngineConfig) -> Option<f64> {
    let tokens = f64::from(engine.num_gpu_blocks) * f64::from(engine.block_size);
    let ranks = f64::from(engine.data_parallel_ranks.max(1));
    // Those who receive KV need not be told what those who send it were.
    let sender = plan.simulation.engine.transfer.kv_bytes_per_token;
    let per_token = Some(engine.transfer.kv_bytes_per_token).filter(|&bytes| bytes > 0).unwrap_or(sender);
    let bytes = f64::from(per_token) * tokens * ranks;
    (bytes > 0.0).then_some(bytes)
}

/// Everything that holds KV, pool by pool.
fn stores(plan: &Plan) -> Vec<Store> {
    let simulation = &plan.simulation;
    let decode = simulation.decode.iter().map(|pool| (&pool.engine, pool.num_workers));
    let pools = std::iter::once((&simulation.engine, simulation.num_workers)).chain(decode);
    pools.flat_map(|(engine, workers)| of_pool(plan, engine, f64::from(workers))).collect()
}

fn of_pool(plan: &Plan, engine: &EngineConfig, workers: f64) -> Vec<Store> {
    let gib = gpu_bytes(plan, engine).map_or(f64::NAN, |bytes| bytes * workers / GIB);
    let tiers = engine.tiers.iter().map(|tier| {
        let copies = if tier.scope == TierScope::Shared { 1.0 } else { workers };
        Store { name: tier.name.clone(), gib: tier.capacity_bytes as f64 * copies / GIB }
    });
    std::iter::once(Store { name: GPU.to_owned(), gib }).chain(tiers).collect()
}
