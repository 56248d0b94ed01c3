//! scratch
use crate::case::*;
use wavetank_sim::*;
fn t(stem: u64, shared: u32, tail: u64, prompt: u32, output: u32) -> TurnCase {
    TurnCase { stem, shared, tail, prompt, output, think: 0 }
}
fn show(case: &Case) {
    let (want, twice) = crate::driver::run(case);
    let got = crate::history::simulated(case);
    println!("twice {twice}");
    for (k, w) in &want {
        println!("{k:?}\n  sim    {:?}\n  oracle {:?}", got[k], w);
    }
}
#[test]
fn d4() {
    let engine = EngineCase {
        num_gpu_blocks: 10,
        block_size: 6,
        max_num_seqs: None,
        max_num_batched_tokens: Some(39),
        max_model_len: None,
        prefix_caching: true,
        chunked_prefill: false,
        speedup: 1.0,
        decode_speedup: 1.0,
        preemption: PreemptionMode::Lifo,
        timing: TimingCase::Polynomial,
    };
    let s = |turns: Vec<TurnCase>| SessionCase { start: 0, turns };
    let sessions = vec![
        s(vec![t(0, 0, 0, 1, 3), t(1, 1, 0, 1, 55)]),
        s(vec![t(0, 0, 0, 1, 0)]),
        s(vec![t(0, 6, 0, 6, 4), t(0, 0, 0, 12, 2)]),
        s(vec![t(0, 0, 0, 1, 0)]),
        s(vec![t(0, 0, 0, 1, 2), t(0, 6, 1, 41, 9)]),
    ];
    show(&Case {
        workers: 1,
        engine,
        load: LoadCase::Closed { concurrency: 4, unit: ConcurrencyUnit::Requests },
        tokens_per_id: 1,
        sessions,
    });
}
