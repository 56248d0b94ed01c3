//! Corners that are easy to get wrong, one example each.

use wavetank_sim::{ConcurrencyUnit, PreemptionMode};

use crate::case::{Case, EngineCase, LoadCase, SessionCase, TimingCase, TurnCase};
use crate::compare;

const MS: u64 = 1_000_000;

fn turn(content: u64, prompt: u32, output: u32) -> TurnCase {
    TurnCase { stem: content, shared: u32::MAX, tail: 0, prompt, output, think: 0 }
}

fn session(start_ms: u64, turns: &[TurnCase]) -> SessionCase {
    SessionCase { start: start_ms * MS, turns: turns.to_vec() }
}

/// Every pass with prompts takes 10 ms, and so does every pass that decodes.
fn example(workers: u32, load: LoadCase, sessions: Vec<SessionCase>) -> Case {
    let engine = EngineCase {
        num_gpu_blocks: 4,
        block_size: 4,
        max_num_seqs: None,
        max_num_batched_tokens: Some(9),
        max_model_len: None,
        prefix_caching: true,
        chunked_prefill: false,
        speedup: 1.0,
        decode_speedup: 1.0,
        preemption: PreemptionMode::Lifo,
        timing: TimingCase::Fixed { prefill_ms: 10.0, decode_ms: 10.0 },
    };
    Case { workers, engine, load, tokens_per_id: 1, sessions }
}

/// Worker 0 decodes, with a boundary at 40 ms. Then worker 1, idle, gets a prompt that does not fit, rejects
/// it in a pass without duration, and the next turn goes to worker 0: spec/replay.md 5.1 has started its pass
/// by then (step 4 of the first round), so the turn is admitted at 50 ms.
#[test]
fn late_arrival() {
    let doomed = [turn(1, 17, 1), turn(2, 1, 1)];
    let sessions = vec![session(0, &[turn(0, 1, 8)]), session(40, &doomed)];
    compare(&example(2, LoadCase::Schedule, sessions)).unwrap();
}

/// All end at 10 ms: session 0 goes on at once, session 1 makes room for session 2. Both are ready at 10 ms,
/// and spec/replay.md 4 breaks the tie by session.
#[test]
fn opening_tie() {
    let load = LoadCase::Closed { concurrency: 2, unit: ConcurrencyUnit::Sessions };
    let two = [turn(0, 1, 1), turn(1, 1, 1)];
    let sessions = vec![session(0, &two), session(0, &[turn(2, 1, 1)]), session(0, &[turn(3, 1, 1)])];
    compare(&example(2, load, sessions)).unwrap();
}

/// The first request leaves its block in the cache. The second grows over all four blocks; the fourth one, at
/// its 13th token, is the cached one. The third needs three blocks, four of its twelve tokens are cached, so
/// it waits for blocks; when there are enough, its prefix is gone and it could never run.
#[test]
fn loses_its_prefix() {
    let sessions =
        vec![session(0, &[turn(1, 4, 1)]), session(10, &[turn(0, 1, 16)]), session(80, &[turn(1, 12, 1)])];
    compare(&example(1, LoadCase::Schedule, sessions)).unwrap();
}
