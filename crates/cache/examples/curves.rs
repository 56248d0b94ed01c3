//! What miss-ratio curves of a Mooncake trace cost, and how far off samples are: a Markdown table.
//!
//! ```text
//! cargo run --release -p wavetank-cache --example curves -- TRACE.jsonl [LONG_TRACE.jsonl]
//! ```
//!
//! LRU's curve on both traces, every other policy's at eight capacities on the first; errors are those of
//! block hit ratios at these capacities. Below, the errors of two plainer ways to draw one block in eight:
//! whole conversations, and single blocks, each played on caches of an eighth of the size.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde_json::Value;
use wavetank_cache::eviction::{self, Entry};
use wavetank_cache::mrc::{Access, Block, Curves, Plan, Row, Study};

/// Tokens of a full block of the trace.
const TOKENS: u64 = 512;
/// Each time is the mean of as many passes as take so many seconds: the kernel's clock ticks.
const LEAST_SECONDS: f64 = 0.5;
/// Errors are those of so many samples.
const SEEDS: u64 = 10;
const CAPACITIES: usize = 8;
/// Of plainer samples fewer seeds do: their errors are larger, and each takes a pass.
const PLAINER_SEEDS: u64 = 5;
const ONE_IN: u64 = 8;

type Trace = Vec<Vec<Block>>;

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    println!("| trace | curve | one block in | CPU ms | M blocks/s | error, points: worst | RMS |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for path in &paths {
        lru(path);
    }
    if let Some(first) = paths.first() {
        others(first);
        plainer_draws(first);
    }
}

/// Exactly, with a bound on memory, and with samples.
fn lru(path: &str) {
    let trace = read(path);
    let exact = study(&trace, &Plan::exact());
    let capacities = exact.lru.spread(CAPACITIES);
    let all = |curves: &Curves| rows_of_lru(curves, &capacities);
    let sampled = |one_in| Plan { lru_one_in: one_in, ..Plan::default() };
    let rows = [("lru", Plan::exact()), ("lru, default", Plan::default())].into_iter();
    let rows = rows.chain([8, 16, 32, 64].map(|one_in| ("lru, sampled", sampled(one_in))));
    for (name, plan) in rows {
        print_row(&Line { path, trace: &trace, name, plan: &plan }, &all, &all(&exact));
    }
}

fn rows_of_lru(curves: &Curves, capacities: &[u64]) -> Vec<Row> {
    capacities.iter().map(|&capacity| curves.lru.at(capacity)).collect()
}

/// Exactly and as by default.
fn others(path: &str) {
    let trace = read(path);
    let capacities = study(&trace, &Plan::exact()).lru.spread(CAPACITIES);
    let policies = eviction::ALL.iter().filter(|policy| policy.name != eviction::LRU.name);
    for policy in policies {
        let simulated = |plan: Plan| with(plan, policy, &capacities);
        let first = |curves: &Curves| curves.simulated[0].rows.clone();
        let exact = first(&study(&trace, &simulated(Plan::exact())));
        for plan in [Plan::exact(), Plan::default()] {
            let plan = &simulated(plan);
            print_row(&Line { path, trace: &trace, name: policy.name, plan }, &first, &exact);
        }
    }
}

/// What of a prompt is looked at, drawn by a hash.
type Draw = fn(&[Block], u64) -> Vec<Block>;

/// A conversation with its first block, or not at all.
fn whole_conversations(prompt: &[Block], seed: u64) -> Vec<Block> {
    if prompt.first().is_some_and(|first| is_drawn(first, seed)) { prompt.to_vec() } else { Vec::new() }
}

fn single_blocks(prompt: &[Block], seed: u64) -> Vec<Block> {
    prompt.iter().filter(|block| is_drawn(block, seed)).copied().collect()
}

fn is_drawn(block: &Block, seed: u64) -> bool {
    let mut hasher = DefaultHasher::new();
    (block.id, seed).hash(&mut hasher);
    hasher.finish().is_multiple_of(ONE_IN)
}

/// The errors of samples that know nothing of conversations and their parts. The block that all prompts of
/// this trace begin with is left out: drawn or not, it alone would decide.
fn plainer_draws(path: &str) {
    let trace: Trace = read(path).iter().map(|prompt| prompt[1..].to_vec()).collect();
    let capacities = study(&trace, &Plan::exact()).lru.spread(CAPACITIES);
    let small: Vec<u64> = capacities.iter().map(|capacity| (capacity / ONE_IN).max(1)).collect();
    println!("\n| drawn | curve | error, points: worst | RMS |\n|---|---|---:|---:|");
    let draws: [(&str, Draw); 2] =
        [("whole conversations", whole_conversations), ("single blocks", single_blocks)];
    for (name, draw) in draws {
        for policy in eviction::ALL.iter().filter(|policy| policy.name != eviction::LRU.name) {
            let ratios = |trace: &Trace, capacities: &[u64]| {
                study(trace, &with(Plan::exact(), policy, capacities)).simulated[0].rows.clone()
            };
            let exact = ratios(&trace, &capacities);
            let mut errors = Vec::new();
            for seed in 0..PLAINER_SEEDS {
                let drawn = trace.iter().map(|prompt| draw(prompt, seed)).filter(|prompt| !prompt.is_empty());
                let drawn: Trace = drawn.collect();
                errors.extend(ratios(&drawn, &small).iter().zip(&exact).map(apart));
            }
            let (worst, rms) = worst_and_rms(&errors);
            println!("| {name} | {} | {worst:.2} | {rms:.2} |", policy.name);
        }
    }
}

/// How far two hit ratios are apart, in points of a hundred.
fn apart((a, b): (&Row, &Row)) -> f64 {
    100.0 * (a.block_hit_ratio - b.block_hit_ratio).abs()
}

fn worst_and_rms(errors: &[f64]) -> (f64, f64) {
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    (worst, (squares / errors.len() as f64).sqrt())
}

fn with(plan: Plan, policy: &'static Entry, capacities: &[u64]) -> Plan {
    Plan { policies: vec![policy], capacities: capacities.to_vec(), ..plan }
}

/// A row of the table.
struct Line<'a> {
    path: &'a str,
    trace: &'a Trace,
    name: &'a str,
    plan: &'a Plan,
}

fn print_row(line: &Line<'_>, rows: &dyn Fn(&Curves) -> Vec<Row>, exact: &[Row]) {
    let seconds = timed(line.trace, line.plan);
    let blocks: usize = line.trace.iter().map(Vec::len).sum();
    let (mut errors, mut one_in) = (Vec::new(), 1);
    for seed in 0..SEEDS {
        let found = rows(&study(line.trace, &Plan { seed, ..line.plan.clone() }));
        one_in = found.iter().map(|row| row.one_in).fold(one_in, u64::max);
        errors.extend(found.iter().zip(exact).map(apart));
    }
    let (worst, rms) = worst_and_rms(&errors);
    let trace = Path::new(line.path).file_stem().unwrap().to_string_lossy();
    println!(
        "| {trace} | {} | {one_in} | {:.1} | {:.1} | {worst:.2} | {rms:.2} |",
        line.name,
        seconds * 1e3,
        blocks as f64 / seconds / 1e6
    );
}

fn timed(trace: &Trace, plan: &Plan) -> f64 {
    let begun = on_core();
    let mut passes = 0.0;
    loop {
        std::hint::black_box(study(trace, plan));
        passes += 1.0;
        let taken = on_core() - begun;
        if taken >= LEAST_SECONDS {
            return taken / passes;
        }
    }
}

/// Seconds this thread was on a core: the machine may have other work.
fn on_core() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap() / 1e9
}

fn study(trace: &Trace, plan: &Plan) -> Curves {
    let mut study = Study::new(plan.clone()).unwrap();
    for blocks in trace {
        study.push(Access { blocks, tenant: 0 }).unwrap();
    }
    study.finish().unwrap()
}

fn read(path: &str) -> Trace {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| prompt(&serde_json::from_str(line).unwrap())).collect()
}

fn prompt(row: &Value) -> Vec<Block> {
    let tokens = row["input_length"].as_u64().unwrap();
    let ids = row["hash_ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap());
    ids.zip(0..).map(|(id, at)| Block { id, weight: TOKENS.min(tokens - TOKENS * at) }).collect()
}
