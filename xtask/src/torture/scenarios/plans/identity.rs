//! What must not make a difference: which router has no choice, a tier that never hits, a scaler that never
//! acts, simulated time or the wall clock.

use serde_json::{Value, json};

use super::flags::{Flags, Wanted, drawn};
use super::{replay, requests};
use crate::torture::round::{Round, ensure};

/// Routers that take a single worker.
const ROUTERS: [&str; 5] = ["round_robin", "least_loaded", "power_of_two", "random", "session_sticky"];
/// Of a request, what says how it was routed rather than what became of it.
const ROUTING: [&str; 1] = ["routing_history"];

/// With one worker every router gives the same result.
pub(super) fn routers(round: &mut Round) -> Result<(), String> {
    let flags = drawn(round, Wanted::OneWorker)?;
    let first = flags.with("router-mode", ROUTERS[0]);
    replay(round, &first, "a")?;
    let expected = requests(round, "a", &ROUTING)?;
    for router in &ROUTERS[1..] {
        replay(round, &flags.with("router-mode", *router), "b")?;
        same(&expected, &requests(round, "b", &ROUTING)?, &flags, router)?;
        round.cases += 1;
    }
    Ok(())
}

/// A tier behind memory in which nothing is ever found changes nothing.
pub(super) fn tier(round: &mut Round) -> Result<(), String> {
    let flags = drawn(round, Wanted::NothingShared)?;
    let mut engine = round.json("engine.json")?;
    engine["kv_bytes_per_token"] = json!(1000);
    round.write("engine.json", engine.to_string())?;
    replay(round, &flags, "a")?;
    let medium = round.draw.pick(&["32GB/s", "100us+1GB/s", "queued:gbps=2+order=fifo"]);
    let tier = format!("cpu=1GiB:{medium},write=through,load=delay");
    replay(round, &flags.with("tier", tier.clone()), "b")?;
    compare(round, &flags, &tier)
}

/// A scaler that is held to as many workers as there are changes nothing.
pub(super) fn scaler(round: &mut Round) -> Result<(), String> {
    let flags = drawn(round, Wanted::OneWorker)?;
    let workers = round.draw.within(1, 3);
    let flags = flags.with("num-workers", workers);
    replay(round, &flags, "a")?;
    let config = json!({ "min": workers, "max": workers, "interval_seconds": round.draw.within(1, 5) });
    let scaled = flags.with("autoscale", "load").with("autoscale-config", config.to_string());
    replay(round, &scaled, "b")?;
    compare(round, &flags, "autoscale")
}

/// On the wall clock the same requests come to the same ends with the same tokens.
pub(super) fn live(round: &mut Round) -> Result<(), String> {
    let flags = drawn(round, Wanted::Short)?;
    let offline = replay(round, &flags, "a")?;
    let online = replay(round, &flags.with("replay-mode", "online"), "b")?;
    round.cases += 1;
    // Whoever is reused or preempted is a matter of time.
    for count in ["/counts/arrived", "/counts/completed", "/counts/rejected", "/num_requests"]
        .into_iter()
        .chain(["/total_input_tokens", "/total_output_tokens", "/partial"])
    {
        let (wanted, found) = (offline.pointer(count), online.pointer(count));
        ensure(wanted == found, || format!("{count} is {wanted:?} offline and {found:?} online: {flags:?}"))?;
    }
    // Timers are late and never early; a machine that does other work may be later than any bound.
    let duration = |report: &Value| report["duration_ms"].as_f64().unwrap_or(0.0);
    ensure(duration(&online) >= 0.5 * duration(&offline), || {
        format!("{} ms online, {} ms offline: {flags:?}", duration(&online), duration(&offline))
    })
}

fn compare(round: &mut Round, flags: &Flags, what: &str) -> Result<(), String> {
    let (a, b) = (requests(round, "a", &[])?, requests(round, "b", &[])?);
    round.cases += 1;
    same(&a, &b, flags, what)
}

fn same(wanted: &[Value], found: &[Value], flags: &Flags, what: &str) -> Result<(), String> {
    let differs = wanted.iter().zip(found).find(|(wanted, found)| wanted != found);
    ensure(wanted.len() == found.len() && differs.is_none(), || {
        let counts = format!("{} and {} requests", wanted.len(), found.len());
        format!("{what} makes a difference ({counts}): {differs:?}\n  {flags:?}")
    })
}
