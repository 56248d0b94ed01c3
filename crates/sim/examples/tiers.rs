//! What tiers cost: a Mooncake trace replayed without them and with them, in processor time.
//!
//! `cargo run --release -p wavetank-sim --example tiers -- TRACE.jsonl.gz [WORKERS [ROUTER [ENGINE]]]`
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it takes arguments and prints")]

use std::io::{BufRead, BufReader};
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use wavetank_model::{
    Nanos, Opening, Priority, Prompt, Request, Result, ServeEvent, SessionId, Sink, TierEvent, Workload,
};
use wavetank_sim::media::MediumConfig;
use wavetank_sim::{EngineConfig, Plan, TierConfig, TierLoad, TierScope, TierUnit, TierWrite, Transfer};

/// Rows of a trace, read before.
struct Rows<'a>(std::slice::Iter<'a, Opening>);

impl Workload for Rows<'_> {
    fn open(&mut self) -> Result<Option<Opening>> {
        Ok(self.0.next().cloned())
    }
    fn follow_up(&mut self, _session: SessionId, _turn: u32) -> Result<Request> {
        unreachable!("every session has one turn")
    }
    fn has_follow_ups(&self) -> bool {
        false
    }
    fn requests(&self) -> u64 {
        self.0.len() as u64
    }
}

fn read(path: &str) -> Vec<Opening> {
    let file = std::fs::File::open(path).expect("the trace is there");
    let lines = BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    let row = |(number, line): (u32, std::io::Result<String>)| {
        let row: Value = serde_json::from_str(&line.expect("it is text")).expect("it is JSON");
        let number_of = |name: &str| row[name].as_u64().expect("it is a number");
        let ids = row["hash_ids"].as_array().expect("it has ids").iter().filter_map(Value::as_u64);
        let request = Request {
            session: SessionId(number),
            turn: 0,
            prompt: Prompt::from_ids(ids, number_of("input_length") as u32, 512),
            output_tokens: number_of("output_length") as u32,
            priority: Priority::default(),
            think: None,
            labels: None,
        };
        Opening { at: Nanos(number_of("timestamp") * 1_000_000), request }
    };
    (0..).zip(lines).map(row).collect()
}

/// What was told of tiers, in short.
#[derive(Debug, Default)]
struct Tally {
    reused: u64,
    loads: u64,
    loaded_tokens: u64,
    moved: u64,
    evicted: u64,
    dropped: u64,
}

impl Sink<ServeEvent<'_>> for Tally {
    fn record(&mut self, event: &ServeEvent<'_>) {
        match event {
            ServeEvent::RequestAdmitted { reused_tokens, .. } => self.reused += u64::from(*reused_tokens),
            ServeEvent::Tier(TierEvent::Moved { transfers, .. }) => self.moved += u64::from(*transfers),
            ServeEvent::Tier(TierEvent::Loaded { tokens, .. }) => {
                self.loads += 1;
                self.loaded_tokens += tokens.iter().map(|&tokens| u64::from(tokens)).sum::<u64>();
            }
            ServeEvent::Tier(TierEvent::Evicted { blocks, .. }) => self.evicted += u64::from(*blocks),
            ServeEvent::Tier(TierEvent::Dropped { blocks, .. }) => self.dropped += u64::from(*blocks),
            _ => {}
        }
    }
}

fn tier(name: &str, gib: u64, gbps: f64, latency_us: f64) -> TierConfig {
    let parameters = json!({"latency_us": latency_us, "gbps": gbps});
    TierConfig {
        name: name.to_owned(),
        capacity_bytes: gib << 30,
        medium: MediumConfig {
            name: "queued".to_owned(),
            parameters: parameters.as_object().expect("it is one").clone(),
        },
        scope: TierScope::Worker,
        write: TierWrite::Through,
        load: TierLoad::Delay,
        unit: TierUnit::Batch,
    }
}

fn plan(arguments: &[String], tiers: Vec<TierConfig>) -> Plan {
    let word =
        |position: usize, default: &str| arguments.get(position).map_or(default, |word| word).to_owned();
    Plan {
        engine: EngineConfig {
            engine_type: word(3, "vllm"),
            transfer: Transfer { kv_bytes_per_token: 131_072, ..Transfer::default() },
            tiers,
            ..EngineConfig::default()
        },
        num_workers: word(1, "8").parse().expect("a number of workers"),
        router_mode: word(2, "round_robin"),
        ..Plan::default()
    }
}

/// Processor time of this process so far, in milliseconds.
fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("it runs on Linux");
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    nanoseconds.expect("the first number is the time on a processor") / 1e6
}

/// The best of several runs, in milliseconds.
fn best_ms(plan: &Plan, rows: &[Opening]) -> f64 {
    let mut best = f64::INFINITY;
    for round in 0..7 {
        let (mut workload, mut tally) = (Rows(rows.iter()), Tally::default());
        let start = cpu_ms();
        let outcome = wavetank_sim::run(plan, &mut workload, &mut tally, &AtomicBool::new(false));
        best = best.min(cpu_ms() - start);
        if round == 0 {
            let outcome = outcome.expect("the plan is sound");
            println!("  {tally:?}");
            outcome.tiers.iter().for_each(|work| println!("  {work:?}"));
        }
    }
    best
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let rows = read(arguments.first().expect("the path of a trace"));
    let cpu = tier("cpu", 256, 32.0, 10.0);
    let disk =
        TierConfig { write: TierWrite::Evict, unit: TierUnit::Object, ..tier("disk", 2048, 10.0, 100.0) };
    let without = best_ms(&plan(&arguments, Vec::new()), &rows);
    println!("without tiers {without:.1} ms");
    for (name, tiers) in [("cpu", vec![cpu.clone()]), ("cpu and disk", vec![cpu, disk])] {
        let with = best_ms(&plan(&arguments, tiers), &rows);
        println!("{name} {with:.1} ms, {:.2} times", with / without);
    }
}
