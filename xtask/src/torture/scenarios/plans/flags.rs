//! Flags of `wavetank replay` by name, as a command line and as the base of a sweep; and drawn plans.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::torture::draw::Draw;
use crate::torture::round::Round;

/// Flags without their dashes, in order. A flag that is typed again replaces nothing: each is there once.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags(Vec<(&'static str, Value)>);

impl Flags {
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        match self.0.iter_mut().find(|(there, _)| *there == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
        self
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(there, _)| *there == name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(there, _)| *there == name)?.1.as_u64()
    }

    /// How many requests the load has.
    pub(super) fn requests(&self, round: &Round) -> Result<u64, String> {
        match self.number("request-count") {
            Some(sessions) => Ok(sessions * self.number("turns-per-session").unwrap_or(1)),
            None => Ok(round.read("trace.jsonl")?.lines().count() as u64),
        }
    }

    /// The same with one more.
    pub(super) fn with(&self, name: &'static str, value: impl Into<Value>) -> Self {
        let mut flags = self.clone();
        flags.set(name, value);
        flags
    }

    /// The words of a replay.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec!["replay".to_owned()];
        for (name, value) in &self.0 {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if *name == "trace" {
                words.push(value);
            } else {
                words.extend([format!("--{name}"), value]);
            }
        }
        words
    }

    /// The base of a sweep over `count` seeds from that of the plan on.
    pub(super) fn sweep(&self, count: u64) -> String {
        let mut text = "[base]\n".to_owned();
        for (name, value) in self.0.iter().filter(|(name, _)| *name != "seed") {
            let _ = writeln!(text, "{} = {value}", name.replace('-', "_"));
        }
        let seed = self.number("seed").unwrap_or(42);
        text + &format!("[axes]\nseed = {{ from = {seed}, count = {count} }}\n")
    }
}

/// What a plan is to be drawn for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Anything.
    Any,
    /// One worker, whose router has no choice; what it does is the engine's.
    OneWorker,
    /// Prompts that share nothing and a cache for all of them: nothing is ever looked for twice.
    NothingShared,
    /// Over in a second on the wall clock.
    Short,
}

/// Some plan; its files are in the round's folder.
pub(super) fn drawn(round: &mut Round, wanted: Wanted) -> Result<Flags, String> {
    let mut flags = Flags::default();
    load(round, wanted, &mut flags)?;
    let draw = &mut round.draw;
    let mut engine = engine(draw, wanted);
    match wanted {
        Wanted::OneWorker => {
            flags.set("num-workers", 1);
        }
        Wanted::Any if draw.chance(1, 4) => {
            disaggregated(round, &mut flags, &mut engine)?;
            return Ok(flags);
        }
        _ => fleet(draw, &mut flags),
    }
    round.write("engine.json", engine.to_string())?;
    flags.set("extra-engine-args", "@engine.json");
    Ok(flags)
}

/// Aggregated workers behind any router that they can have.
fn fleet(draw: &mut Draw, flags: &mut Flags) {
    let workers = draw.within(1, 4);
    let routers = ["round_robin", "least_loaded", "power_of_two", "random", "session_sticky", "kv_router"];
    let choices = if workers > 1 { &routers[..] } else { &routers[..5] };
    flags.set("num-workers", workers).set("router-mode", draw.pick(choices));
    flags.set("seed", draw.below(1000));
}

fn disaggregated(round: &mut Round, flags: &mut Flags, engine: &mut Value) -> Result<(), String> {
    let draw = &mut round.draw;
    flags.set("num-prefill-workers", draw.within(1, 3)).set("num-decode-workers", draw.within(1, 3));
    flags.set("router-mode", "kv_router").set("seed", draw.below(1000));
    engine["kv_bytes_per_token"] = json!(draw.magnitude(200_000));
    engine["kv_transfer_bandwidth"] = json!(draw.within(1, 100));
    for (role, file) in [("prefill", "prefill.json"), ("decode", "decode.json")] {
        engine["worker_type"] = json!(role);
        round.write(file, engine.to_string())?;
    }
    flags.set("prefill-engine-args", "@prefill.json").set("decode-engine-args", "@decode.json");
    Ok(())
}

fn engine(draw: &mut Draw, wanted: Wanted) -> Value {
    let is_sglang = draw.chance(1, 3);
    let block_size = draw.one(&[4, 16, 64]);
    let mut engine = json!({
        "engine_type": if is_sglang { "sglang" } else { "vllm" },
        "block_size": block_size,
        // Room for a few prompts: requests are preempted, and some are turned away.
        "num_gpu_blocks": 3000 / block_size + draw.below(3000),
        "max_num_seqs": draw.within(1, 32),
        "max_num_batched_tokens": block_size * draw.within(4, 200),
    });
    if wanted != Wanted::NothingShared && draw.chance(1, 4) {
        engine["enable_prefix_caching"] = json!(false);
    }
    if !is_sglang && draw.chance(1, 4) {
        engine["preemption_mode"] = json!("fifo");
    }
    match wanted {
        Wanted::NothingShared => engine["num_gpu_blocks"] = json!(1_000_000 / block_size),
        Wanted::Short => engine["speedup_ratio"] = json!(20),
        _ => {}
    }
    engine
}

fn load(round: &mut Round, wanted: Wanted, flags: &mut Flags) -> Result<(), String> {
    let draw = &mut round.draw;
    if wanted != Wanted::Short && draw.chance(1, 4) {
        flags.set("replay-concurrency", draw.within(1, 20));
    } else if wanted == Wanted::Any && draw.chance(1, 6) {
        flags.set("max-sim-time-seconds", draw.within(1, 20));
    }
    if wanted == Wanted::NothingShared || draw.chance(1, 3) {
        synthetic(draw, wanted, flags);
        return Ok(());
    }
    let rows = if wanted == Wanted::Short { draw.within(1, 30) } else { draw.within(1, 150) };
    let block = draw.one(&[16, 64]);
    let span_ms = if wanted == Wanted::Short { 300 } else { draw.magnitude(60_000) };
    flags.set("trace", "trace.jsonl").set("trace-block-size", block);
    if draw.chance(1, 4) {
        flags.set("arrival-speedup-ratio", draw.within(1, 8));
    }
    let text = trace(draw, rows, (block, span_ms));
    round.write("trace.jsonl", text)
}

fn synthetic(draw: &mut Draw, wanted: Wanted, flags: &mut Flags) {
    let most = if wanted == Wanted::Short { 20 } else { 100 };
    flags.set("input-tokens", draw.magnitude(3000)).set("output-tokens", draw.within(1, 40));
    flags.set("request-count", draw.within(1, most));
    // A closed loop has no rate.
    if !flags.has("replay-concurrency") && draw.chance(1, 2) {
        flags.set("request-rate", draw.within(50, 500)).set("arrival-seed", draw.below(1000));
    } else {
        flags.set("arrival-interval-ms", draw.below(20));
    }
    if wanted != Wanted::NothingShared && draw.chance(1, 2) {
        flags.set("turns-per-session", draw.within(2, 4)).set("shared-prefix-ratio", 0.5);
        flags.set("num-prefix-groups", draw.within(1, 5)).set("inter-turn-delay-ms", draw.below(30));
    }
}

/// Rows that share prefixes, arriving evenly, in bursts, or as a wave that swells and ebbs.
fn trace(draw: &mut Draw, rows: u64, (block, span_ms): (u64, u64)) -> String {
    let shape = draw.below(3);
    let bursts: Vec<u64> = (0..4).map(|_| draw.below(span_ms + 1)).collect();
    let mut times: Vec<u64> = (0..rows).map(|_| moment(draw, shape, (&bursts, span_ms))).collect();
    times.sort_unstable();
    let mut text = String::new();
    for (number, time) in times.iter().enumerate() {
        let (group, shared, own) = (draw.below(5), draw.below(20), draw.within(1, 12));
        let ids = (0..shared).map(|at| group * 1000 + at);
        let ids: Vec<u64> = ids.chain((0..own).map(|at| 100_000 + number as u64 * 100 + at)).collect();
        let tokens = ids.len() as u64 * block - draw.below(block);
        let row = json!({
            "timestamp": time, "input_length": tokens, "output_length": draw.within(1, 60), "hash_ids": ids,
        });
        let _ = writeln!(text, "{row}");
    }
    text
}

/// When a request arrives, in milliseconds.
fn moment(draw: &mut Draw, shape: u64, (bursts, span_ms): (&[u64], u64)) -> u64 {
    match shape {
        0 => draw.below(span_ms + 1),
        1 => draw.one(bursts),
        // The mean of four draws lies near the middle: arrivals over time are S-shaped.
        _ => (0..4).map(|_| draw.below(span_ms + 1)).sum::<u64>() / 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_words_and_a_spec() {
        let mut flags = Flags::default();
        flags.set("trace", "t.jsonl").set("num-workers", 1).set("seed", 7);
        let flags = flags.with("num-workers", 2);
        assert_eq!(flags.words(), ["replay", "t.jsonl", "--num-workers", "2", "--seed", "7"]);
        let spec = "[base]\ntrace = \"t.jsonl\"\nnum_workers = 2\n[axes]\nseed = { from = 7, count = 3 }\n";
        assert_eq!(flags.sweep(3), spec);
    }
}
