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

#[test]
fn stats() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::*;
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let strategy = case();
    let long = crate::history::End::Rejected(wavetank_model::RejectReason::PromptExceedsPass);
    let mut table = std::collections::BTreeMap::<(bool, bool, bool), [u32; 6]>::new();
    for _ in 0..20000 {
        let case = strategy.new_tree(&mut runner).unwrap().current();
        let set = |r: &str| crate::driver::RULE.with(|x| *x.borrow_mut() = r.to_owned());
        set("R");
        let (want, twice) = crate::driver::run(&case);
        if want.values().any(|h| h.ends.iter().any(|e| e.2 == long)) { continue; }
        let zero = match case.engine.timing { TimingCase::Fixed { prefill_ms, decode_ms } => prefill_ms == 0.0 || decode_ms == 0.0, _ => false } || case.engine.speedup > 1e6 || case.engine.speedup * case.engine.decode_speedup > 1e6;
        let got = crate::history::simulated(&case);
        let row = table.entry((case.load != LoadCase::Schedule, zero, twice)).or_default();
        row[0] += 1;
        for (i, r) in ["R", "Q", "Q1", "P"].iter().enumerate() { set(r); row[1 + i] += u32::from(crate::driver::run(&case).0 != got); }
    }
    println!("(closed, zero, twice): cases, differ from R Q Q1 P");
    for (k, v) in table { println!("{k:?} {v:?}"); }
}

#[test]
fn passes() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::*;
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let strategy = case();
    let long = crate::history::End::Rejected(wavetank_model::RejectReason::PromptExceedsPass);
    let mut table = std::collections::BTreeMap::<(bool, bool), [u32; 6]>::new();
    for _ in 0..60000 {
        let mut case = strategy.new_tree(&mut runner).unwrap().current();
        case.engine.chunked_prefill = false;
        let (want, twice) = crate::driver::run(&case);
        let any = want.values().any(|h| h.ends.iter().any(|e| e.2 == long));
        if twice || !any { continue; }
        let got = crate::history::simulated(&case);
        let row = table.entry((case.engine.prefix_caching, case.load != LoadCase::Schedule)).or_default();
        row[0] += 1;
        row[1] += u32::from(got != want);
        if got != want && !case.engine.prefix_caching { println!("{case:#?}"); for (k, w) in &want { if w != &got[k] { println!("{k:?}\n  sim    {:?}\n  oracle {:?}", got[k], w); } } panic!(); }
    }
    println!("(caching, closed): cases, differ");
    for (k, v) in table { println!("{k:?} {v:?}"); }
}
