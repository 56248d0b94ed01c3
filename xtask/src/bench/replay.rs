//! `bench replay`: the Mooncake conversation trace on simulated vLLM workers, the same ten times over, behind
//! the KV router on small and large fleets, and one request alone, which is the cost of starting.

use super::cases::{Case, Suite};
use super::peer::Peer;
use super::trace;

pub(super) const SUITE: Suite = Suite {
    verb: "replay",
    report_flag: "--report-json",
    peer: Peer {
        name: "ai-dynamo",
        variable: "WAVETANK_PEER_DYNAMO",
        folder: "dynamo",
        module: "dynamo.replay",
    },
    cases,
};

fn cases() -> Result<Vec<Case>, String> {
    let whole = trace::conversation()?;
    let tenfold = trace::repeated(&whole, 10)?;
    let first = trace::first_line(&whole)?;
    Ok(vec![
        Case { name: "trace, 1 worker", args: replay(&whole, "1"), against: None, peer_reps: 1 },
        Case { name: "trace, 8 workers", args: replay(&whole, "8"), against: None, peer_reps: 1 },
        Case {
            name: "trace x10, 1 worker",
            args: replay(&tenfold, "1"),
            against: Some("trace, 1 worker"),
            peer_reps: 0,
        },
        Case {
            name: "trace x10, 8 workers",
            args: replay(&tenfold, "8"),
            against: Some("trace, 8 workers"),
            peer_reps: 0,
        },
        Case { name: ROUTED, args: routed(&whole, "8"), against: None, peer_reps: 1 },
        Case {
            name: "kv_router, 64 workers",
            args: routed(&whole, "64"),
            against: Some(ROUTED),
            peer_reps: 0,
        },
        Case {
            name: "kv_router, 512 workers",
            args: routed(&whole, "512"),
            against: Some(ROUTED),
            peer_reps: 0,
        },
        Case { name: "round_robin, 512 workers", args: replay(&whole, "512"), against: None, peer_reps: 0 },
        Case { name: "sglang, 4 workers", args: sglang(&whole), against: None, peer_reps: 1 },
        Case {
            name: "2 prefill + 2 decode workers",
            args: disaggregated(&whole, "vllm"),
            against: None,
            peer_reps: 0,
        },
        Case {
            name: "sglang, 2 prefill + 2 decode workers",
            args: disaggregated(&whole, "sglang"),
            against: None,
            peer_reps: 0,
        },
        Case {
            name: "measured grid, 8 workers",
            args: measured(&whole),
            against: Some("trace, 8 workers"),
            peer_reps: 0,
        },
        Case { name: "start-up, 1 request", args: replay(&first, "1"), against: None, peer_reps: 3 },
    ])
}

const ROUTED: &str = "kv_router, 8 workers";

fn routed(trace: &str, workers: &str) -> Vec<String> {
    let mut args = replay(trace, workers);
    args.extend(["--router-mode", "kv_router"].map(str::to_owned));
    args
}

fn sglang(trace: &str) -> Vec<String> {
    let engine = r#"{"engine_type":"sglang","block_size":64}"#;
    let args = [trace, "--num-workers", "4", "--trace-block-size", "512", "--extra-engine-args", engine];
    args.map(str::to_owned).to_vec()
}

/// Eight workers by measured step times.
fn measured(trace: &str) -> Vec<String> {
    let mut args = replay(trace, "8");
    args.extend(["--timing", "grid:llama31-8b-h200-tp1-bf16"].map(str::to_owned));
    args
}

fn disaggregated(trace: &str, engine: &str) -> Vec<String> {
    let pool = |role: &str| format!(r#"{{"engine_type":"{engine}","block_size":64,"worker_type":"{role}"}}"#);
    let (prefill, decode) = (&pool("prefill")[..], &pool("decode")[..]);
    let workers = ["--num-prefill-workers", "2", "--num-decode-workers", "2", "--router-mode", "kv_router"];
    let engines = ["--prefill-engine-args", prefill, "--decode-engine-args", decode];
    let all = [trace, "--trace-block-size", "512"].into_iter().chain(workers).chain(engines);
    all.map(str::to_owned).collect()
}

/// The engine's blocks hold 64 tokens.
fn replay(trace: &str, workers: &str) -> Vec<String> {
    on_vllm(trace, workers, r#"{"block_size":64}"#)
}

/// The trace's hash ids stand for 512 tokens each.
pub(super) fn on_vllm(trace: &str, workers: &str, engine: &str) -> Vec<String> {
    let args = [trace, "--num-workers", workers, "--trace-block-size", "512", "--extra-engine-args", engine];
    args.map(str::to_owned).to_vec()
}
