//! Small cases whose times are known: a pass with prompts takes 10 ms, one of decoding 1 ms, a block is moved
//! in 1 ms unless said otherwise. Blocks have 16 tokens, a worker has eight of them.

use serde_json::json;
use wavetank_model::{Nanos, RequestId};
use wavetank_sim::timing::TimingConfig;
use wavetank_sim::{EngineConfig, Load, Plan, TierConfig, TierLoad, TierScope, TierUnit, TierWrite, tiers};

use crate::case::{Row, Rows, medium, plan_of, tier, transfer};
use crate::watch::{Watched, run};

const SIZE: u32 = 16;

fn ms(ms: u64) -> Nanos {
    Nanos(ms * 1_000_000)
}

/// A tier of a hundred blocks.
fn cpu(ms_per_block: f64) -> TierConfig {
    tier(100, SIZE, medium("constant", json!({"latency_us": 0.0, "gbps": 0.016 / ms_per_block})))
}

fn plan(tiers: Vec<TierConfig>, workers: u32) -> Plan {
    let times = json!({"prefill_ms": 10.0, "decode_ms": 1.0});
    let engine = EngineConfig {
        num_gpu_blocks: 8,
        block_size: SIZE,
        timing: TimingConfig {
            name: "fixed".to_owned(),
            parameters: times.as_object().expect("it is one").clone(),
        },
        transfer: transfer(),
        tiers,
        ..EngineConfig::default()
    };
    plan_of(engine, workers, Load::Schedule)
}

fn row(start_ms: u32, ids: &[u8], output: u32) -> Row {
    Row { start_ms, ids: ids.to_vec(), cut: 0, output }
}

/// A prompt of four blocks, one that takes the place of three of them, and the first again.
fn again(at_ms: u32) -> [Row; 3] {
    [row(0, &[0, 1, 2, 0], 1), row(20, &[1; 7], 1), row(at_ms, &[0, 1, 2, 0], 1)]
}

fn says(watched: &Watched, request: u32, words: &[&str]) {
    let lines = &watched.requests[&RequestId(request)];
    let found = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(found, "{words:?} of {request} in {lines:#?}");
}

fn load(watched: &Watched) -> (Vec<u32>, Nanos, Nanos) {
    let [load] = &watched.loads[..] else { panic!("one load: {:?}", watched.loads) };
    assert_eq!(load.request, RequestId(watched.arrived as u32 - 1));
    (load.tokens.clone(), load.asked, load.at)
}

#[test]
fn a_request_is_admitted_when_its_load_has_ended() {
    let (watched, outcome) = run(&plan(vec![cpu(1.0)], 1), &mut Rows::of(&again(50)));
    assert_eq!(load(&watched), (vec![32], ms(50), ms(52)));
    says(&watched, 2, &["Admitted", "52000000", "reused_tokens: 48"]);
    says(&watched, 2, &["Completed", "62000000"]);
    // Four blocks and seven; what was loaded is there already, and so is the last block when it is computed.
    assert_eq!((outcome.tiers[0].held_blocks, outcome.tiers[0].bytes_written), (11, 11 * 16_000));
    assert_eq!((outcome.tiers[0].bytes_read, outcome.tiers[0].busy), (2 * 16_000, ms(4 + 7 + 2)));
}

#[test]
fn a_pass_that_loads_beside_it_ends_no_earlier_than_the_load() {
    for (ms_per_block, end) in [(1.0, "60000000"), (8.0, "66000000")] {
        // A write of seven blocks is long over at 50 ms in the first case, and under way in the second.
        let tier = TierConfig { load: TierLoad::Overlap, ..cpu(ms_per_block) };
        let (watched, _) = run(&plan(vec![tier], 1), &mut Rows::of(&again(50)));
        assert_eq!(load(&watched).1, ms(50));
        says(&watched, 2, &["Admitted", "Nanos(50000000)", "reused_tokens: 48"]);
        says(&watched, 2, &["Completed", end]);
    }
}

#[test]
fn others_decode_meanwhile_and_the_next_pass_takes_it() {
    let mut rows = again(50).to_vec();
    rows.push(Row { cut: 1, ..row(45, &[2], 100) });
    let (watched, _) = run(&plan(vec![cpu(1.5)], 1), &mut Rows::of(&rows));
    // The prompt at 45 ms takes the last block's place and ends at 55; five passes of 1 ms begin before the
    // load has ended at 59.5.
    assert_eq!(load(&watched), (vec![48], ms(55), Nanos(59_500_000)));
    says(&watched, 3, &["Admitted", "Nanos(60000000)", "reused_tokens: 48"]);
}

#[test]
fn what_is_being_written_is_not_found() {
    // Four blocks are written from 10 to 70 ms.
    for (at, found) in [(60, 0), (80, 1)] {
        let (watched, _) = run(&plan(vec![cpu(15.0)], 1), &mut Rows::of(&again(at)));
        assert_eq!(watched.loads.len(), found, "at {at} ms");
    }
}

#[test]
fn what_the_gpu_gives_up_is_written_when_its_place_is_taken() {
    let tier = TierConfig { write: TierWrite::Evict, ..cpu(1.0) };
    let (watched, outcome) = run(&plan(vec![tier], 1), &mut Rows::of(&again(50)));
    // Three blocks at 20 ms; at 52, the one block that is computed takes the place of the last of the seven.
    assert_eq!(load(&watched), (vec![32], ms(50), ms(52)));
    let written = watched.lines.iter().filter(|line| line.contains("operation: Write"));
    let began: Vec<_> = written.map(|line| line.contains("began: Nanos(20000000)")).collect();
    assert!(began[0] && !began[1..].contains(&true), "{began:?}");
    assert_eq!(outcome.tiers[0].bytes_written, (3 + 3) * 16_000, "two places for the load, one for the pass");
}

#[test]
fn objects_are_what_was_written_at_once_and_move_side_by_side() {
    let objects = TierConfig { unit: TierUnit::Object, ..cpu(1.0) };
    let (watched, _) = run(&plan(vec![objects], 1), &mut Rows::of(&again(50)));
    // Each id is a group: two objects of one block, at the same time.
    assert_eq!(load(&watched), (vec![32], ms(50), ms(51)));
}

#[test]
fn a_block_comes_from_the_fastest_tier_that_has_it_and_goes_to_those_above() {
    // The first tier has room for what was written last; the second has everything.
    let small = tier(7, SIZE, medium("constant", json!({"latency_us": 0.0, "gbps": 0.016})));
    let behind = TierConfig { name: "disk".to_owned(), ..cpu(2.0) };
    let (watched, outcome) = run(&plan(vec![small, behind], 1), &mut Rows::of(&again(50)));
    assert_eq!(load(&watched), (vec![0, 32], ms(50), ms(54)));
    // Seven blocks, and what was loaded in the place of some of them, then the last block again.
    assert_eq!(outcome.tiers[0].held_blocks, 7);
    assert!(outcome.tiers[0].bytes_written > (4 + 7) * 16_000);
    assert_eq!((outcome.tiers[1].held_blocks, outcome.tiers[1].bytes_written), (11, 11 * 16_000));
}

#[test]
fn what_a_tier_gives_up_goes_to_the_next() {
    let small = tier(7, SIZE, medium("constant", json!({"latency_us": 0.0, "gbps": 0.016})));
    let behind = TierConfig { name: "disk".to_owned(), write: TierWrite::Evict, ..cpu(2.0) };
    let (watched, outcome) = run(&plan(vec![small, behind], 1), &mut Rows::of(&again(50)));
    assert_eq!(load(&watched), (vec![0, 32], ms(50), ms(54)));
    assert!(outcome.tiers[1].bytes_written >= 4 * 16_000);
}

#[test]
fn workers_find_in_a_shared_tier_what_another_wrote_before() {
    let shared = TierConfig { scope: TierScope::Shared, ..cpu(1.0) };
    for (at, reused) in [(12, "reused_tokens: 0"), (13, "reused_tokens: 0"), (14, "reused_tokens: 48")] {
        let rows = [row(0, &[0, 1, 2, 0], 40), row(at, &[0, 1, 2, 0], 40)];
        let (watched, outcome) = run(&plan(vec![shared.clone()], 2), &mut Rows::of(&rows));
        says(&watched, 1, &["Admitted", "WorkerId(1)", reused]);
        assert_eq!(outcome.tiers[0].instances, 1);
    }
}

/// Broken by: a router that is not told what tiers hold, or of the wrong worker.
#[test]
fn the_router_goes_where_a_tier_has_the_prompt() {
    let mut rows = vec![row(0, &[0, 0, 1, 1, 2, 2, 0], 1)];
    let fill: [[u8; 7]; 6] = std::array::from_fn(|first| {
        std::array::from_fn(|block| if block == 0 { first as u8 % 2 + 1 } else { (first >> 1) as u8 })
    });
    rows.extend((1..).zip(&fill).map(|(number, ids)| row(100 * number, ids, 1)));
    rows.push(row(1000, &[0, 0, 1, 1, 2, 2, 0], 1));
    for seed in 0..10 {
        let plan = Plan { seed, router_mode: "kv_router".to_owned(), ..plan(vec![cpu(1.0)], 2) };
        let (watched, _) = run(&plan, &mut Rows::of(&rows));
        let worker = |request: u32| {
            let line = watched.requests[&RequestId(request)].iter().find(|line| line.contains("Admitted"));
            line.unwrap().contains("WorkerId(1)")
        };
        assert_eq!(worker(7), worker(0), "seed {seed}");
        assert!(watched.reused[&RequestId(7)] >= 96, "seed {seed}");
    }
}

#[test]
fn what_cannot_have_tiers_is_told() {
    let good = plan(vec![cpu(1.0)], 1).engine;
    assert_eq!(tiers::refusal(&good), None);
    let shared = TierConfig { scope: TierScope::Shared, ..cpu(1.0) };
    let overlap = TierConfig { load: TierLoad::Overlap, ..shared.clone() };
    for (engine, word) in [
        (EngineConfig { async_scheduling: true, ..good.clone() }, "async_scheduling"),
        (EngineConfig { data_parallel_ranks: 2, ..good.clone() }, "data_parallel_ranks"),
        (EngineConfig { enable_prefix_caching: false, ..good.clone() }, "enable_prefix_caching"),
        (EngineConfig { transfer: Default::default(), ..good.clone() }, "kv_bytes_per_token"),
        (EngineConfig { tiers: vec![shared, cpu(1.0)], ..good.clone() }, "behind"),
        (EngineConfig { tiers: vec![overlap], ..good.clone() }, "overlap"),
        (EngineConfig { tiers: vec![cpu(1.0); 4], ..good.clone() }, "at most"),
    ] {
        let told = tiers::refusal(&engine);
        assert!(told.as_ref().is_some_and(|told| told.contains(word)), "{word}: {told:?}");
    }
}
