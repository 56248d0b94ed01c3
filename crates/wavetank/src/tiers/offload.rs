//! The reference's keys of host, disk and object tiers (spec/engine.md 2 and 7), as the tiers they mean.
//! Speeds are those of its newest generation (spec/engine.md 15.9), but for object storage, which only older
//! ones have.

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result};
use wavetank_sim::media::MediumConfig;
use wavetank_sim::{EngineConfig, TierConfig, TierLoad, TierScope, TierUnit, TierWrite};

use super::first_load;
use crate::json_arg::JsonArg;

/// Keys that make a tier.
pub(super) const TIERS: [&str; 3] = ["num_g2_blocks", "num_g3_blocks", "enable_g4_storage"];

/// A tier of the reference.
struct Row {
    name: &'static str,
    /// What makes it, and what it is written and read over.
    key: &'static str,
    write: &'static str,
    read: &'static str,
    latency_us: f64,
    gbps: f64,
    order: &'static str,
}

const ROWS: [Row; 3] = [
    Row {
        name: "g2",
        key: TIERS[0],
        write: "bandwidth_g1_to_g2_gbps",
        read: "bandwidth_g2_to_g1_gbps",
        latency_us: 0.0,
        gbps: 32.0,
        order: "fifo",
    },
    Row {
        name: "g3",
        key: TIERS[1],
        write: "bandwidth_g2_to_g3_gbps",
        read: "bandwidth_g3_to_g2_gbps",
        latency_us: 100.0,
        gbps: 10.0,
        order: "share",
    },
    Row {
        name: "g4",
        key: TIERS[2],
        write: "bandwidth_g2_to_g4_gbps",
        read: "bandwidth_g4_to_g2_gbps",
        latency_us: 0.0,
        gbps: 4.0,
        order: "share",
    },
];

/// What the reference calls infinite: nothing here takes as long as a nanosecond at it.
const ENDLESS_GBPS: f64 = 1e9;
/// Blocks of object storage: more than any run writes.
const ENDLESS_BLOCKS: u64 = 1 << 30;
const BATCH: &str = "offload_batch_size";
/// Blocks of an object.
const OBJECT_BLOCKS: u64 = 8;

/// The tiers of the keys, from the fastest.
pub(super) fn tiers(
    typed: &JsonArg,
    engine: &EngineConfig,
    notes: &mut Vec<String>,
) -> Result<Vec<TierConfig>> {
    let object = &typed.object;
    let is_there = |row: &Row| object.get(row.key).is_some_and(|value| value.is_u64() || value == true);
    let idle = |key: &str, why: &str| format!("{}: \"{key}\" has no effect: {why}", typed.place);
    for row in &ROWS {
        let keys = [row.write, row.read].into_iter().filter(|key| number(object, key).is_some());
        let without = format!("there is no \"{}\"", row.key);
        notes.extend(keys.filter(|_| !is_there(row)).map(|key| idle(key, &without)));
    }
    let there: Vec<&Row> = ROWS.iter().filter(|row| is_there(row)).collect();
    if let (Some(first), false) = (there.first(), ROWS.first().is_some_and(is_there)) {
        return Err(Error::usage(format!("\"{}\" needs \"{}\"", first.key, ROWS[0].key))
            .at(typed.place.clone())
            .hint("the tiers of these keys are behind each other; --tier describes any"));
    }
    if there.is_empty() && number(object, BATCH).is_some() {
        notes.push(idle(BATCH, "there is no \"num_g2_blocks\""));
    }
    Ok(there.into_iter().map(|row| tier(row, object, engine)).collect())
}

fn tier(row: &Row, object: &Map<String, Value>, engine: &EngineConfig) -> TierConfig {
    let block = u64::from(engine.block_size) * u64::from(engine.transfer.kv_bytes_per_token);
    let blocks = object[row.key].as_u64().unwrap_or(ENDLESS_BLOCKS);
    let is_first = row.name == ROWS[0].name;
    // The reference moves so many blocks at once; here it is an object of up to eight, or all there is.
    let small = object.get(BATCH).and_then(Value::as_u64).is_some_and(|blocks| blocks <= OBJECT_BLOCKS);
    let scope = if object[row.key].is_boolean() { TierScope::Shared } else { TierScope::Worker };
    TierConfig {
        name: row.name.to_owned(),
        capacity_bytes: blocks.saturating_mul(block),
        medium: medium(row, object),
        scope,
        write: if is_first { TierWrite::Through } else { TierWrite::Evict },
        load: if is_first { first_load(scope, engine) } else { TierLoad::Delay },
        unit: if is_first && !small { TierUnit::Batch } else { TierUnit::Object },
    }
}

fn medium(row: &Row, object: &Map<String, Value>) -> MediumConfig {
    let speed = |key: &str| match number(object, key) {
        Some(gbps) if gbps > 0.0 => gbps,
        Some(_) => ENDLESS_GBPS,
        None => row.gbps,
    };
    let (read, write) = (speed(row.read), speed(row.write));
    let mut parameters = Map::from_iter([("gbps".to_owned(), json!(read))]);
    if write != read {
        parameters.insert("write_gbps".to_owned(), json!(write));
    }
    if row.latency_us > 0.0 {
        parameters.insert("latency_us".to_owned(), json!(row.latency_us));
    }
    parameters.insert("order".to_owned(), row.order.into());
    MediumConfig { name: "queued".to_owned(), parameters }
}

fn number(object: &Map<String, Value>, key: &str) -> Option<f64> {
    object.get(key).and_then(Value::as_f64)
}
