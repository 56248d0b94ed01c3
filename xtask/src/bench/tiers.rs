//! `bench tiers`: what tiers behind simulated workers cost, beside the same replays without them: the
//! Mooncake conversation trace on eight vLLM workers, by router and timing.

use super::cases::{Case, Suite};
use super::{replay, trace};

pub(super) const SUITE: Suite = Suite { cases, ..replay::SUITE };

/// Memory for each worker, and a drive behind it: for each, or one for all.
const MEMORY: &[&str] = &["--tier", "cpu=64GiB:32GB/s"];
const DRIVE: &[&str] = &["--tier", "disk=2TiB:100us+5GB/s"];
const SHARED: &[&str] = &["--tier", "disk=2TiB:100us+5GB/s,shared,write=through"];

const GRID: &[&str] = &["--timing", "grid:llama31-8b-h200-tp1-bf16"];

fn cases() -> Result<Vec<Case>, String> {
    let whole = trace::conversation()?;
    let case = |name, against, flags: &[&[&str]]| {
        let args = replay::on_vllm(&whole, "8", r#"{"block_size":64,"kv_bytes_per_token":131072}"#);
        let flags = flags.concat().into_iter().map(str::to_owned);
        Case { name, args: args.into_iter().chain(flags).collect(), against, peer_reps: 0 }
    };
    let (routed, grid) = (&["--router-mode", "kv_router"][..], GRID);
    let (plain, by_router, by_grid) = ("round_robin", "kv_router", "measured grid");
    Ok(vec![
        case(plain, None, &[]),
        case("round_robin, memory", Some(plain), &[MEMORY]),
        case("round_robin, memory and drive", Some(plain), &[MEMORY, DRIVE]),
        case("round_robin, memory and shared drive", Some(plain), &[MEMORY, SHARED]),
        case(by_router, None, &[routed]),
        case("kv_router, memory", Some(by_router), &[routed, MEMORY]),
        case("kv_router, memory and drive", Some(by_router), &[routed, MEMORY, DRIVE]),
        case("kv_router, memory and shared drive", Some(by_router), &[routed, MEMORY, SHARED]),
        case(by_grid, None, &[grid]),
        case("measured grid, memory", Some(by_grid), &[grid, MEMORY]),
        case("measured grid, memory and drive", Some(by_grid), &[grid, MEMORY, DRIVE]),
        case("measured grid, memory and shared drive", Some(by_grid), &[grid, MEMORY, SHARED]),
    ])
}
