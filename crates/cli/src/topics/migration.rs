//! `wavetank help migration`.

use super::{Topic, columns};

pub(super) const ENTRY: Topic =
    Topic { name: "migration", about: "which command takes the place of which tool", text };

/// What people type elsewhere, and here.
const TOOLS: &[(&str, &str)] = &[
    (
        "python -m dynamo.replay TRACE",
        "wavetank replay TRACE; the same flags, JSON keys, defaults and report keys",
    ),
    ("dynamo.replay from Python", "import wavetank: run_trace_replay and run_synthetic_trace_replay"),
    (
        "kv-cache.py (MLPerf Storage)",
        "wavetank bench; the same flags, YAML configuration, defaults and report keys",
    ),
    ("kv-cache-wrapper.sh", "wavetank bench suite"),
    ("lmcache server", "wavetank serve; its flags by name, for Redis clients and LMCache's resp adapter"),
    (
        "lmcache trace info, replay",
        "wavetank trace info, wavetank trace replay; .lct of LMCache 0.4.4 to 0.5.6",
    ),
    (
        "vllm bench serve, AIPerf",
        "stay: point them at wavetank mock, and compare their results with wavetank compare",
    ),
    ("fio", "stays: wavetank bench --fio-job writes a job of what went to the drive"),
];

fn text() -> String {
    format!(
        "\
Coming from another tool

{}
What a tool has and this release has not is refused with exit code 2, never ignored. Numbers that are defined
otherwise are in METHODOLOGY.md: \"Agreement with the reference\", \"The storage benchmark\", \"The cache
server\". Traces of others are read as they are (wavetank help traces).
",
        columns(TOOLS.iter().copied())
    )
}
