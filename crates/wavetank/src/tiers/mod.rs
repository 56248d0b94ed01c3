//! Tiers behind a worker's GPU memory as users describe them: `--tier` and tables (`text`, `table`), what
//! they are kept on (`medium`), and the keys of the reference that mean the same (`offload`). What they are
//! worth beside computing again is in `worth`.

mod list;
mod medium;
mod named;
mod offload;
mod table;
mod text;
mod worth;

use serde_json::Value;
use wavetank_model::{Error, Result};
use wavetank_report::{TierShape, Tiers};
use wavetank_sim::{EngineConfig, TierConfig, TierLoad, TierScope, engines};

use crate::json_arg::JsonArg;
use worth::Worth;

pub(crate) use medium::note;
pub use named::relocated;
pub(crate) use named::{files, list as typed_list, set_inside};

/// The key of engine arguments that describes tiers.
pub(crate) const KEY: &str = "tiers";

/// The tiers of an engine whose other arguments are settled: of `--tier`, of its key, or of the reference's
/// keys; only one of the three may be there.
pub(crate) fn of(
    typed: &JsonArg,
    flags: &[Value],
    engine: &EngineConfig,
    notes: &mut Vec<String>,
) -> Result<Vec<TierConfig>> {
    let given = |key: &&str| typed.object.get(*key).is_some_and(|value| !value.is_null());
    let offload = offload::TIERS.iter().find(|key| given(key)).copied();
    let listed = Some(KEY).filter(|key| given(key));
    let clash = |one: &str, other: &str| {
        Err(Error::usage(format!("cannot be combined with \"{other}\"")).at(one.to_owned()).hint(ONE_WAY))
    };
    match (flags.is_empty(), listed, offload) {
        (false, Some(key), _) | (false, None, Some(key)) => clash("--tier", key),
        (true, Some(_), Some(key)) => clash(&format!("{}: \"{KEY}\"", typed.place), key),
        (false, None, None) => list::read(flags, "--tier", engine, notes),
        (true, Some(_), None) => {
            let place = format!("{}: \"{KEY}\"", typed.place);
            let items = typed.object[KEY].as_array().map_or(&[][..], Vec::as_slice);
            list::read(items, &place, engine, notes)
        }
        (true, None, _) => offload::tiers(typed, engine, notes),
    }
}

/// What collects the doings of the tiers of a plan; nothing where there are none.
pub(crate) fn collector(plan: &wavetank_sim::Plan) -> Result<Option<Tiers>> {
    let engine = &plan.engine;
    if engine.tiers.is_empty() {
        return Ok(None);
    }
    let worth = Worth::of(engine)?;
    let shape = |tier: &TierConfig| {
        Ok(TierShape {
            name: tier.name.clone(),
            capacity_bytes: tier.capacity_bytes,
            copies: if tier.scope == TierScope::Shared { 1 } else { plan.num_workers },
            break_even: worth.break_even(tier)?,
        })
    };
    let shapes: Vec<TierShape> = engine.tiers.iter().map(shape).collect::<Result<_>>()?;
    let saved = move |prompt, found, loaded| worth.saved_ms(prompt, found, loaded);
    Ok(Some(Tiers::of(shapes, engine.block_size, Box::new(saved))))
}

const ONE_WAY: &str = "describe tiers in one way: --tier, \"tiers\", or the num_g2_blocks keys";

/// How an engine loads from the fastest tier, unless it is told otherwise.
fn first_load(scope: TierScope, engine: &EngineConfig) -> TierLoad {
    let overlaps = engines::entry(&engine.engine_type).is_ok_and(|row| row.overlaps_loads);
    if overlaps && scope == TierScope::Worker { TierLoad::Overlap } else { TierLoad::Delay }
}

#[cfg(test)]
mod tests;
