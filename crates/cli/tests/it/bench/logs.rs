//! `--io-trace-log`: one seed, one file; what is in it obeys the rules.

use std::path::Path;

use wavetank_trace::Input;
use wavetank_trace::calls::{self, Call, Operation, TierCall};

use super::log_rules::Checker;
use super::{SCALED, Stand, TOKEN_BYTES, number};

const LOGGED: &str = "--model tiny-1b --config scaled.yaml --generation-mode none";
const GIB: f64 = (1u64 << 30) as f64;

fn read(path: &Path) -> Vec<TierCall> {
    let input = Input::named(path.to_str().expect("a name in UTF-8"));
    let calls = calls::read("mlperf-csv", &input).expect("a log");
    let row = |call| match call {
        Ok(Call::Tier(call)) => call,
        other => panic!("no row: {other:?}"),
    };
    calls.map(row).collect()
}

/// Breaks when a row depends on the wall clock, on a thread, or on the order of a hash map.
#[test]
fn one_seed_gives_one_file() {
    let stand = Stand::new();
    let line = format!(
        "{LOGGED} --gpu-mem-gb 0.02 --cpu-mem-gb 0.1 --storage-capacity-gb 0.3 --num-users 20 --duration 5 \
         --enable-rag --rag-num-docs 2"
    );
    let log = |seed: u32, name: &str| {
        stand.bench(&format!("{line} --seed {seed} --io-trace-log {name}"));
        std::fs::read(stand.sandbox.path(name)).expect("a log")
    };
    for name in ["log.csv", "log.csv.zst"] {
        let first = log(1, name);
        assert!(first.len() > 1000 && first == log(1, name), "{name}");
        assert!(first != log(2, name), "{name}");
    }
    let plain = log(1, "log.csv");
    let packed = log(1, "log.csv.zst");
    assert_eq!(zstd::decode_all(&packed[..]).expect("zstd"), plain);
    assert_eq!(read(&stand.sandbox.path("log.csv")), read(&stand.sandbox.path("log.csv.zst")));
    assert!(plain.starts_with(b"Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n"));
}

/// A log of minutes takes a moment.
#[test]
fn virtual_time_passes_quickly() {
    let stand = Stand::new();
    let line = "--model llama3.1-8b --gpu-mem-gb 16 --cpu-mem-gb 32 --num-users 50 --duration 300";
    let report = stand.bench(&format!("{line} --io-trace-log log.csv.zst")).json();
    assert_eq!(number(&report, "/summary/elapsed_time"), 300.0);
    assert!(number(&report, "/wall/run_seconds") < 30.0);
    let rows = read(&stand.sandbox.path("log.csv.zst"));
    assert!(rows.len() > 1000 && rows.iter().any(|row| row.tier == 0), "{}", rows.len());
}

#[test]
fn one_user_follows_the_rules() {
    let stand = Stand::new();
    let (mut demotions, mut deletes) = (0, 0);
    for seed in 1..=8 {
        for [gpu, cpu, storage] in [[0.0, 0.0, 0.3], [0.0, 0.1, 0.2], [0.03, 0.08, 0.15]] {
            let line = format!(
                "{LOGGED} --gpu-mem-gb {gpu} --cpu-mem-gb {cpu} --storage-capacity-gb {storage} \
                 --seed {seed}                  --num-users 1 --duration 20 --io-trace-log log.csv"
            );
            let report = stand.bench(&line).json();
            let mut checker = Checker::new([gpu, cpu, storage].map(|gb| (gb * GIB) as u64));
            let rows = read(&stand.sandbox.path("log.csv"));
            assert!(rows.windows(2).all(|pair| pair[0].at <= pair[1].at), "{line}");
            rows.iter().for_each(|row| checker.check(row));
            checker.begins();
            let served = number(&report, "/requests_completed") as usize;
            assert_eq!(checker.own_reads.len(), served, "{line}");
            assert!(checker.own_reads.iter().all(|reads| (2..=4).contains(reads)), "{:?}", checker.own_reads);
            (demotions, deletes) = (demotions + checker.demotions, deletes + checker.deletes);
        }
    }
    assert!(demotions > 100 && deletes > 100, "{demotions} {deletes}");
}

/// One read, and one for every batch of tokens: with batches of one token they can be counted.
#[test]
fn an_entry_is_read_once_and_for_every_batch() {
    let stand = Stand::new();
    stand.sandbox.write("scaled.yaml", format!("{SCALED}decode: {{batch_size: 1}}\n"));
    let line =
        format!("{LOGGED} --gpu-mem-gb 0 --cpu-mem-gb 0 --num-users 1 --duration 5 --io-trace-log log.csv");
    let reads = |flags: &str| {
        let report = stand.bench(&format!("{line} {flags}")).json();
        let mut checker = Checker::new([0, 0, u64::MAX]);
        read(&stand.sandbox.path("log.csv")).iter().for_each(|row| checker.check(row));
        checker.begins();
        let [served, tokens] =
            ["/requests_completed", "/total_tokens_generated"].map(|key| number(&report, key) as u64);
        assert!(served > 10 && checker.own_reads.len() as u64 == served);
        (checker.own_reads.iter().sum::<u64>(), served, tokens)
    };
    let (own, served, tokens) = reads("");
    assert_eq!(own, served + tokens);
    let (own, served, _) = reads("--read-policy once");
    assert_eq!(own, served);
}

/// The smallest case, by hand: one user, one tier that holds one entry.
#[test]
fn a_small_log_reads_like_this() {
    let stand = Stand::new();
    stand.sandbox.write(
        "hand.yaml",
        "user_templates:
  chatbot: {context_range: [100, 100], generation_range: [40, 40], think_time_range: [1.0, 1.0]}
prefix_cache: {system_prompt_hit_probability: 0.0}
conversation: {end_conversation_probability: 0.0}
",
    );
    let line = "--model tiny-1b --config hand.yaml --persona-mix chatbot=1 --num-users 1 --gpu-mem-gb 0 \
        --cpu-mem-gb 0.002 --storage-capacity-gb 0.004 --max-requests 4 --generation-mode fast --seed 5";
    stand.bench(&format!("{line} --io-trace-log log.csv"));
    insta::assert_snapshot!(stand.sandbox.read("log.csv"));
    let rows = read(&stand.sandbox.path("log.csv"));
    assert!(rows.iter().any(|row| row.operation == Operation::Delete));
    assert!(rows.iter().all(|row| row.bytes <= 100 * TOKEN_BYTES));
}

#[test]
fn what_moves_no_bytes_has_no_directory() {
    let stand = Stand::new();
    let line = format!("{LOGGED} --gpu-mem-gb 0 --num-users 2 --duration 5 --io-trace-log made/here/log.csv");
    let report = stand.bench(&line).json();
    assert!(report["accounting"]["kernel"].is_null());
    assert!(stand.sandbox.path("made/here/log.csv").exists(), "directories are made");
}
