//! The rules about tiers, whoever described them.

use wavetank_model::{Error, Result};
use wavetank_sim::{EngineConfig, TierConfig, TierLoad, TierScope, tiers};

use super::ReplayMode;

const FLAG: &str = "--tier";
/// Deeper stacks are a mistake.
const MOST_TIERS: usize = 8;
const LONGEST_NAME: usize = 32;
/// What reports call something else.
const TAKEN: [&str; 4] = ["gpu", "computed", "load_wait_ms", "prompt_tokens"];

/// Refuses tiers that cannot be simulated.
pub(super) fn check(simulation: &wavetank_sim::Plan, mode: ReplayMode) -> Result<()> {
    let decode = simulation.decode.as_ref().filter(|pool| !pool.engine.tiers.is_empty());
    if decode.is_some() {
        return Err(Error::usage("decode workers have no tiers: prompts come to them from prefill workers")
            .at("--decode-engine-args")
            .hint("--tier and \"tiers\" of --prefill-engine-args are behind prefill workers"));
    }
    let engine = &simulation.engine;
    if engine.tiers.is_empty() {
        return Ok(());
    }
    if mode == ReplayMode::Online {
        return Err(Error::usage("live workers have no tiers: they are simulated offline")
            .at(FLAG)
            .hint("leave out --replay-mode online, or the tiers; mock has none"));
    }
    if simulation.scaling.is_some() {
        return Err(Error::usage("workers that join during a replay have no tiers")
            .at("--autoscale")
            .hint("leave out --autoscale, or the tiers"));
    }
    check_engine(engine)?;
    let block = u64::from(engine.block_size) * u64::from(engine.transfer.kv_bytes_per_token);
    for (place, tier) in engine.tiers.iter().enumerate() {
        check_name(&engine.tiers, place)?;
        check_tier(tier, block)?;
    }
    match tiers::refusal(engine) {
        Some(reason) => Err(Error::usage(reason).at(FLAG).hint("docs/tiers.md says what goes together")),
        None => Ok(()),
    }
}

fn check_engine(engine: &EngineConfig) -> Result<()> {
    let wrong = |message: String, hint: &str| Err(Error::usage(message).at(FLAG).hint(hint));
    if engine.tiers.len() > MOST_TIERS {
        return wrong(format!("{} tiers: {MOST_TIERS} are the most", engine.tiers.len()), "leave some out");
    }
    if engine.transfer.kv_bytes_per_token == 0 {
        return wrong(
            "tiers need the bytes of KV per token".to_owned(),
            "give \"kv_bytes_per_token\", or \"model\" (`wavetank list models`), in the engine arguments",
        );
    }
    if engine.async_scheduling {
        return wrong(
            "tiers are not simulated with passes that are scheduled ahead".to_owned(),
            "leave out \"async_scheduling\", or the tiers",
        );
    }
    if engine.data_parallel_ranks > 1 {
        return wrong("data-parallel ranks have no tiers".to_owned(), "use one rank per worker");
    }
    if !engine.enable_prefix_caching {
        return wrong(
            "nothing is found without prefix caching".to_owned(),
            "leave \"enable_prefix_caching\" at true",
        );
    }
    Ok(())
}

fn check_name(tiers: &[TierConfig], place: usize) -> Result<()> {
    let name = tiers[place].name.as_str();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_word = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits);
    if !is_word || TAKEN.contains(&name) {
        let hint = format!("letters, digits, - and _, up to {LONGEST_NAME}, and not {}", TAKEN.join(" or "));
        return Err(Error::usage(format!("\"{name}\" is no name of a tier")).at(FLAG).hint(hint));
    }
    match tiers[..place].iter().any(|tier| tier.name == name) {
        true => Err(Error::usage(format!("two tiers are called \"{name}\"")).at(FLAG)),
        false => Ok(()),
    }
}

fn check_tier(tier: &TierConfig, block_bytes: u64) -> Result<()> {
    let place = format!("{FLAG} {}", tier.name);
    if tier.capacity_bytes < block_bytes {
        let (capacity, least) = (tier.capacity_bytes, block_bytes);
        return Err(Error::usage(format!("{capacity} bytes hold no block of {least} bytes"))
            .at(place)
            .hint("a block is \"block_size\" times \"kv_bytes_per_token\""));
    }
    if tier.load == TierLoad::Overlap && tier.scope == TierScope::Shared {
        return Err(Error::usage("loads from a shared tier cannot overlap with compute")
            .at(place)
            .hint("use load=delay, or leave out shared"));
    }
    tier.medium.build(0).map(drop).map_err(|error| error.at(place))
}
