//! The `sglang` object inside the engine arguments: every key is a row of [`KEYS`].

use serde_json::{Map, Value};
use wavetank_model::{Error, Result};
use wavetank_sim::{EngineConfig, SchedulePolicy, SglangConfig};

use crate::json_arg::JsonArg;
use crate::keys::{self, at_least_one, expected, only, sets, text};

type Key = keys::Key<SglangConfig>;

/// Every key, alphabetical. `wavetank list sglang-args` prints this table.
pub(crate) const KEYS: &[Key] = &[
    sets("chunked_prefill_size", "longest part of prompts computed in one pass (8192)", |config, value| {
        config.chunked_prefill_size = at_least_one(value)?;
        Ok(())
    }),
    sets("clip_max_new_tokens", "most output tokens for which room is reserved (4096)", |config, value| {
        config.clip_max_new_tokens = at_least_one(value)?;
        Ok(())
    }),
    sets("max_prefill_tokens", "most prompt tokens of a pass (16384)", |config, value| {
        config.max_prefill_tokens = at_least_one(value)?;
        Ok(())
    }),
    only("page_size", "another name of block_size (1)", |value| at_least_one(value).map(drop)),
    sets(
        "schedule_conservativeness",
        "part of the output reserve kept at first, 0 to 1 (1.0)",
        |config, value| {
            let number = value.as_f64().filter(|n| (0.0..=1.0).contains(n));
            config.schedule_conservativeness = expected(value, number, "a number from 0 to 1")?;
            Ok(())
        },
    ),
    sets(
        "schedule_policy",
        "fifo (also fcfs), or lpm: longest cached prefix first (fifo)",
        |config, value| {
            config.schedule_policy = match text(value)? {
                "fifo" | "fcfs" => SchedulePolicy::Fcfs,
                "lpm" => SchedulePolicy::Lpm,
                other => return Err(format!("unknown policy \"{other}\"; known: fcfs, fifo, lpm")),
            };
            Ok(())
        },
    ),
];

/// Enters the object into the configuration.
pub(crate) fn set(config: &mut SglangConfig, object: &Map<String, Value>) -> Result<(), String> {
    let (findings, _) = keys::enter(KEYS, object, config);
    if findings.is_empty() { Ok(()) } else { Err(findings.join("; ")) }
}

/// What depends on several keys: the page size under its two names, and chunks of whole pages.
pub(crate) fn settle(config: &mut EngineConfig, typed: &JsonArg) -> Result<()> {
    let sglang = typed.object.get("sglang").and_then(Value::as_object);
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).filter(|&n| n > 0);
    let block_size = number(typed.object.get("block_size"));
    let page_size = number(sglang.and_then(|sglang| sglang.get("page_size")));
    let wrong = |message: String| Err(Error::usage(message).at(typed.place.clone()));
    config.block_size = match (block_size, page_size) {
        (Some(block), Some(page)) if block != page => {
            return wrong(format!("\"block_size\" is {block} and \"sglang.page_size\" is {page}"));
        }
        (block, page) => block.or(page).unwrap_or(1) as u32,
    };
    let chunk = config.sglang.chunked_prefill_size;
    let given = sglang.is_some_and(|sglang| sglang.contains_key("chunked_prefill_size"));
    if given && !chunk.is_multiple_of(config.block_size) {
        return wrong(format!(
            "\"sglang.chunked_prefill_size\" is {chunk}, not a multiple of the page size {}",
            config.block_size
        ));
    }
    Ok(())
}
