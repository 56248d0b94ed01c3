//! Recordings are played to their end.

use std::path::Path;

use serde_json::Value;

use super::{BURSTS, Stand, TALKS, invariants, number};

const PLAYED: &str = "--model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0 --storage-capacity-gb 1 \
    --cache-dir cache --generation-mode none --duration 30 --num-users 4";

fn played(stand: &Stand, flags: &str) -> Value {
    let report = stand.bench(&format!("{PLAYED} {flags}")).json();
    invariants::check(&report, flags);
    report
}

/// Breaks when what is queued at the end of a recording is dropped, or a turn gets lost.
#[test]
fn every_row_is_served() {
    let stand = Stand::new();
    let (talks, turns) = TALKS;
    for (flags, requests) in [
        ("--use-burst-trace --burst-trace-path bursts.csv --replay-cycles 1", BURSTS),
        ("--use-burst-trace --burst-trace-path bursts.csv --replay-cycles 2 --trace-speedup 10", 2 * BURSTS),
        ("--use-burst-trace --burst-trace-path bursts.csv --replay-cycles 1 --trace-speedup 0", BURSTS),
        ("--dataset-path talks.json --replay-cycles 1", talks * turns),
        ("--dataset-path talks.json --replay-cycles 3", 3 * talks * turns),
        ("--dataset-path talks.json --replay-cycles 1 --request-rate 200", talks * turns),
        ("--dataset-path talks.json --replay-cycles 1 --max-conversations 5", 5 * turns),
        ("--dataset-path talks.json --replay-cycles 1 --disable-multi-turn", talks * turns),
        ("--dataset-path talks.json --replay-cycles 1 --tokenizer characters", talks * turns),
        ("--trace bursts.csv --trace-format burstgpt --replay-cycles 1", BURSTS),
    ] {
        let report = played(&stand, flags);
        assert_eq!(report["requests_completed"], requests, "{flags}");
        assert_eq!(report["ended"], "drained", "{flags}");
    }
}

/// Turns of a conversation read the turns before them, and are not written again in the next pass.
#[test]
fn conversations_have_a_history() {
    let stand = Stand::new();
    let (talks, turns) = TALKS;
    let flags = "--dataset-path talks.json --disable-prefix-caching";
    let once = played(&stand, &format!("{flags} --replay-cycles 1"));
    let reads = talks * (turns - 1) * turns / 2;
    assert_eq!(number(&once, "/multi_turn_cache_hits"), reads as f64);
    assert_eq!(number(&once, "/multi_turn_cache_misses"), 0.0);
    let touches = |report: &Value, key: &str| number(report, &format!("/summary/touches/prefill/{key}"));
    assert_eq!(touches(&once, "stored"), (talks * turns) as f64);
    let twice = played(&stand, &format!("{flags} --replay-cycles 2"));
    assert_eq!([touches(&twice, "stored"), touches(&twice, "existed")], [(talks * turns) as f64; 2]);
    let alone = played(&stand, &format!("{flags} --replay-cycles 1 --disable-multi-turn"));
    assert_eq!(number(&alone, "/multi_turn_cache_hits") + number(&alone, "/multi_turn_cache_misses"), 0.0);
}

#[test]
fn samples_of_the_real_ones_are_played() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let stand = Stand::new();
    for (name, flags) in [
        ("sharegpt_small.json.gz", "--dataset-path sharegpt_small.json.gz --replay-cycles 1"),
        (
            "burstgpt_small.csv",
            "--use-burst-trace --burst-trace-path burstgpt_small.csv --replay-cycles 1 --trace-speedup 100",
        ),
    ] {
        let Ok(content) = std::fs::read(traces.join(name)) else { continue };
        stand.sandbox.write(name, without_the_bad_row(content));
        let report = played(&stand, flags);
        assert!(number(&report, "/requests_completed") > 50.0 && report["ended"] == "drained", "{name}");
    }
}

/// The sample of BurstGPT has a row that no reader accepts.
fn without_the_bad_row(content: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(content) {
        Ok(text) => {
            text.split_inclusive('\n').filter(|row| !row.starts_with("bad,")).collect::<String>().into()
        }
        Err(compressed) => compressed.into_bytes(),
    }
}
