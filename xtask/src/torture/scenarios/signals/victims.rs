//! Commands that go on until they are ended, and what shows that they were ended well.

use serde_json::Value;

/// Interrupted with Ctrl-C, as README has it.
pub(super) const INTERRUPTED: i32 = 130;

/// A command that goes on until it is ended.
pub(super) struct Victim {
    pub(super) name: &'static str,
    pub(super) line: &'static str,
    /// The same, over in a moment.
    pub(super) brief: &'static str,
    /// How it ends when it is asked to once.
    pub(super) asked: i32,
    /// The report it writes, if it writes one.
    pub(super) report: Option<Report>,
    /// What goes on with it if this file is there.
    pub(super) resumed: Option<(&'static str, &'static str)>,
}

/// A report, and whether it says that it is partial.
#[derive(Clone, Copy)]
pub(super) struct Report {
    pub(super) file: &'static str,
    pub(super) is_partial: fn(&Value) -> bool,
}

/// Most have a report that says it in one word.
const REPORT: Option<Report> =
    Some(Report { file: "r.json", is_partial: |report| report["partial"] == true });

/// A suite says it of a scenario.
fn is_cut(summary: &Value) -> bool {
    let scenarios = summary["scenarios"].as_array().map_or(&[][..], Vec::as_slice);
    scenarios.iter().any(|scenario| ["interrupted", "not_run"].iter().any(|cut| scenario["status"] == *cut))
}

/// What victims write, besides what is in the cache directory.
pub(super) const WRITTEN: [&str; 7] =
    ["r.json", "r.csv", "r.points.jsonl", "r.io.csv", "r.profile.toml", "suite", "kv"];

pub(super) const VICTIMS: [Victim; 11] = [
    Victim {
        name: "replay",
        line: "replay --input-tokens 2000 --output-tokens 200 --request-count 100000000 \
            --replay-concurrency 64 --extra-engine-args {\"num_gpu_blocks\":200} --report-json r.json",
        brief: "replay --input-tokens 10 --output-tokens 2 --request-count 5 --report-json r.json",
        asked: INTERRUPTED,
        report: REPORT,
        resumed: None,
    },
    Victim {
        name: "live replay",
        line: "replay --input-tokens 500 --output-tokens 20 --request-count 100000 --request-rate 20 \
            --replay-mode online --report-json r.json",
        brief: "replay --input-tokens 10 --output-tokens 2 --request-count 5 --replay-mode online \
            --report-json r.json",
        asked: INTERRUPTED,
        report: REPORT,
        resumed: None,
    },
    Victim {
        name: "sweep",
        line: "sweep long.toml -o r.json -o r.csv",
        brief: "sweep short.toml --fresh -o r.json",
        asked: INTERRUPTED,
        report: REPORT,
        resumed: None,
    },
    Victim {
        name: "bench",
        line: "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.05 --backend buffered --cache-dir cache \
            --storage-capacity-gb 0.5 --generation-mode none --num-users 4 --duration 300 --warmup 0 \
            --output r.json",
        brief: "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0 --backend buffered --cache-dir cache \
            --storage-capacity-gb 0.5 --generation-mode none --num-users 1 --duration 30 --max-requests 2 \
            --warmup 0 --output r.json",
        asked: INTERRUPTED,
        report: REPORT,
        resumed: None,
    },
    Victim {
        name: "trace replay",
        line: "trace replay calls.lct --loop 100000 --output r.json",
        brief: "trace replay calls.lct --output r.json",
        asked: INTERRUPTED,
        report: REPORT,
        resumed: None,
    },
    Victim {
        name: "serve",
        line: "serve --port 0 --http-port 0 --l1-size-gb 0.1 --l2 buffered:kv:100MiB",
        brief: "serve --check --l1-size-gb 0.1 --l2 buffered:kv:100MiB",
        asked: 0,
        report: None,
        resumed: None,
    },
    Victim {
        name: "mock",
        line: "mock --port 0 --num-workers 2",
        brief: "mock --check --num-workers 2",
        asked: 0,
        report: None,
        resumed: None,
    },
    Victim {
        name: "bench suite",
        line: "bench suite --quick --gpu-tier off --only cpu-only,storage-only,cpu-storage --tier-duration 2 \
            --cache-dir cache --output suite",
        brief: "bench suite --quick --gpu-tier off --only cpu-storage --tier-duration 1 --cache-dir cache \
            --output suite",
        asked: INTERRUPTED,
        report: Some(Report { file: "suite/summary.json", is_partial: is_cut }),
        resumed: Some(("suite/suite.json", "bench suite --resume suite --quiet")),
    },
    Victim {
        name: "profile tier",
        line: "profile tier cache --backend buffered --sizes 64KiB,1MiB --depths 1,8 --seconds-per-point 5 \
            --size-gb 0.1 --threads 2 -o r.json",
        brief: "profile tier cache --backend buffered --sizes 64KiB --depths 1 --seconds-per-point 0.01 \
            --sustained-seconds 0 --size-gb 0.01 --threads 1 -o r.json",
        asked: INTERRUPTED,
        report: REPORT,
        resumed: None,
    },
    Victim {
        name: "loop that measures",
        line: "loop cache --backend buffered --capacity 1GiB --input-tokens 2048 --output-tokens 16 \
            --request-count 60 --extra-engine-args {\"num_gpu_blocks\":80,\"kv_bytes_per_token\":512} \
            --report-json r.json",
        brief: LOOP,
        asked: INTERRUPTED,
        report: REPORT,
        resumed: None,
    },
    Victim {
        name: "loop that plays",
        line: "loop cache --backend buffered --capacity 1GiB --profile drive.toml --input-tokens 2048 \
            --output-tokens 16 --request-count 20000 --shared-prefix-ratio 0.9 --num-prefix-groups 8 \
            --arrival-interval-ms 20 --num-workers 2 --report-json r.json \
            --extra-engine-args {\"num_gpu_blocks\":80,\"kv_bytes_per_token\":512}",
        brief: LOOP,
        asked: INTERRUPTED,
        report: REPORT,
        resumed: None,
    },
];

/// A loop over in a moment.
const LOOP: &str = "loop cache --backend buffered --capacity 1GiB --profile drive.toml --input-tokens 2048 \
    --output-tokens 16 --request-count 20 --shared-prefix-ratio 0.9 --num-prefix-groups 4 --num-workers 2 \
    --arrival-interval-ms 5 --report-json r.json \
    --extra-engine-args {\"num_gpu_blocks\":80,\"kv_bytes_per_token\":512}";
/// What devices are like, for loops that do not measure.
pub(super) const PROFILE: &str = "profile tier cache --backend buffered --sizes 64KiB,1MiB --depths 1,8 \
    --seconds-per-point 0.01 --sustained-seconds 0 --size-gb 0.1 --threads 1 -o drive.toml";
