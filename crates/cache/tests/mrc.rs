//! Curves of the Mooncake conversation trace, where it lies beside the checkout, against plain caches.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;
use wavetank_cache::eviction::{self, policy};
use wavetank_cache::mrc::{Access, Block, Curves, Plan, Study};

/// Tokens of a full block of the trace.
const TOKENS: u64 = 512;
const CAPACITIES: [u64; 8] = [300, 1_000, 3_000, 10_000, 20_000, 40_000, 80_000, 160_000];

fn conversation() -> Option<Vec<Vec<Block>>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../../shared/data/traces/mooncake_conversation.jsonl.gz");
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(text.lines().map(|line| prompt(&serde_json::from_str(line).unwrap())).collect())
}

fn prompt(row: &Value) -> Vec<Block> {
    let tokens = row["input_length"].as_u64().unwrap();
    let ids = row["hash_ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap());
    ids.zip(0..).map(|(id, at)| Block { id, weight: TOKENS.min(tokens - TOKENS * at) }).collect()
}

fn studied(trace: &[Vec<Block>], plan: Plan) -> Curves {
    let mut study = Study::new(plan).unwrap();
    for blocks in trace {
        study.push(Access { blocks, tenant: 0 }).unwrap();
    }
    study.finish().unwrap()
}

/// A cache of so many blocks.
trait Plain {
    fn holds(&self, id: u64) -> bool;
    fn give_back(&mut self, id: u64);
}

/// Blocks by the time of their last use.
#[derive(Default)]
struct PlainLru {
    capacity: usize,
    now: u64,
    used: HashMap<u64, u64>,
    by_time: BTreeMap<u64, u64>,
}

impl Plain for PlainLru {
    fn holds(&self, id: u64) -> bool {
        self.used.contains_key(&id)
    }
    fn give_back(&mut self, id: u64) {
        self.now += 1;
        if let Some(before) = self.used.insert(id, self.now) {
            self.by_time.remove(&before);
        }
        self.by_time.insert(self.now, id);
        if self.used.len() > self.capacity {
            let (_, oldest) = self.by_time.pop_first().unwrap();
            self.used.remove(&oldest);
        }
    }
}

/// Blocks in the order they came.
#[derive(Default)]
struct PlainFifo {
    capacity: usize,
    queue: VecDeque<u64>,
    held: HashSet<u64>,
}

impl Plain for PlainFifo {
    fn holds(&self, id: u64) -> bool {
        self.held.contains(&id)
    }
    fn give_back(&mut self, id: u64) {
        if self.held.insert(id) {
            self.queue.push_back(id);
        }
        if self.queue.len() > self.capacity {
            let first = self.queue.pop_front().unwrap();
            self.held.remove(&first);
        }
    }
}

/// Blocks and tokens served. The trace's ids stand for the whole prefix.
fn served(trace: &[Vec<Block>], mut cache: impl Plain) -> [u64; 2] {
    let mut served = [0, 0];
    for blocks in trace {
        for block in blocks.iter().take_while(|block| cache.holds(block.id)) {
            served = [served[0] + 1, served[1] + block.weight];
        }
        blocks.iter().rev().for_each(|block| cache.give_back(block.id));
    }
    served
}

/// Broken by: one block more or less at any of eight sizes.
#[test]
fn the_conversation_trace_exactly() {
    let Some(trace) = conversation() else { return };
    let policies = vec![policy("fifo").unwrap()];
    let curves = studied(&trace, Plan { policies, capacities: CAPACITIES.to_vec(), ..Plan::exact() });
    let totals = curves.lru.totals();
    assert_eq!((totals.requests, totals.blocks, totals.distinct_blocks), (12_031, 288_500, 182_790));
    assert_eq!(totals.weight, 144_793_823);
    assert_eq!((curves.lru.bound().block_hit_ratio * 288_500.0).round() as u64, 288_500 - 182_790);
    for (capacity, fifo) in CAPACITIES.into_iter().zip(&curves.simulated[0].rows) {
        let counts = |blocks: f64, weight: f64| {
            [blocks * totals.blocks as f64, weight * totals.weight as f64].map(|count| count.round() as u64)
        };
        let lru = curves.lru.at(capacity);
        let size = capacity as usize;
        let plain = served(&trace, PlainLru { capacity: size, ..PlainLru::default() });
        assert_eq!(counts(lru.block_hit_ratio, lru.weight_hit_ratio), plain, "lru of {capacity}");
        let plain = served(&trace, PlainFifo { capacity: size, ..PlainFifo::default() });
        assert_eq!(counts(fifo.block_hit_ratio, fifo.weight_hit_ratio), plain, "fifo of {capacity}");
    }
}

/// Broken by: whole conversations drawn or not, which is off by up to five points.
#[test]
fn the_conversation_trace_within_a_point_from_samples() {
    let Some(trace) = conversation() else { return };
    let policies: Vec<_> = eviction::ALL.iter().collect();
    let plan = |plan| Plan { policies: policies.clone(), capacities: CAPACITIES.to_vec(), ..plan };
    let full = studied(&trace, plan(Plan::exact()));
    for seed in [1, 42] {
        let sampled = studied(&trace, Plan { lru_one_in: 8, seed, ..plan(Plan::default()) });
        for (full, sampled) in full.simulated.iter().zip(&sampled.simulated) {
            for (row, other) in full.rows.iter().zip(&sampled.rows) {
                let apart = |a: f64, b: f64| (a - b).abs();
                assert!(apart(row.block_hit_ratio, other.block_hit_ratio) < 0.01, "{} {row:?}", full.policy);
                assert!(
                    apart(row.weight_hit_ratio, other.weight_hit_ratio) < 0.01,
                    "{} {row:?}",
                    full.policy
                );
            }
        }
        for capacity in CAPACITIES {
            let [full, sampled] = [&full, &sampled].map(|curves| curves.lru.at(capacity).block_hit_ratio);
            assert!((full - sampled).abs() < 0.01, "lru of {capacity}: {full} {sampled}");
        }
    }
}
