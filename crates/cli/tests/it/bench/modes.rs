//! The flags that change what is done.

use serde_json::Value;

use super::{SCALED, SMALL, Stand, TOKEN_BYTES, invariants, list, number};

/// A few requests that take no time, all of them measured.
const FEW: &str = "--cpu-mem-gb 0 --num-users 4 --generation-mode none --max-requests 30 --duration 30";

fn small(stand: &Stand, flags: &str) -> Value {
    let line = SMALL.replace(" --duration 1", "");
    let report = stand.bench(&format!("{line} {flags}")).json();
    invariants::check(&report, flags);
    report
}

#[test]
fn so_many_requests_and_no_more() {
    let report = small(&Stand::new(), FEW);
    assert_eq!((&report["requests_completed"], &report["ended"]), (&30.into(), &"drained".into()));
    assert_eq!(number(&report, "/summary/in_flight") + number(&report, "/summary/queued_at_end"), 0.0);
    assert_eq!(number(&report, "/plan/run/warmup"), 0.0, "all of them count");
}

/// Breaks when the order of operations depends on a device, or a draw on the order.
#[test]
fn one_seed_gives_one_set_of_counts_on_real_tiers() {
    let stand = Stand::new();
    let counts = |seed: u32| {
        let line = format!(
            "--gpu-mem-gb 0.02 --gpu-tier sim --cpu-mem-gb 0.05 --num-users 4 --duration 3 --seed {seed} \
             --generation-mode deterministic"
        );
        let line = format!("{} {line}", SMALL.replace(" --duration 1", "").replace(" --gpu-mem-gb 0", ""));
        let report = stand.bench(&line).json();
        invariants::check(&report, &line);
        let rows = list(&report, "/summary/tiers").iter();
        let moved = rows.map(|row| ["reads", "writes", "demotions_in"].map(|way| row[way]["bytes"].clone()));
        let counts =
            ["/requests_completed", "/total_tokens_generated", "/summary/touches", "/summary/in_flight"];
        let counts = counts.map(|pointer| report.pointer(pointer).expect("a number").clone());
        assert!(number(&report, "/requests_completed") > 3.0, "{report:#}");
        (counts, moved.collect::<Vec<_>>())
    };
    let first = counts(1);
    assert_eq!(first, counts(1));
    assert_ne!(first, counts(2));
}

#[test]
fn one_machine_computes_and_another_generates() {
    let stand = Stand::new();
    let prefill = small(&stand, &format!("{FEW} --prefill-only"));
    let touches =
        |report: &Value, why: &str, key: &str| number(report, &format!("/summary/touches/{why}/{key}"));
    assert_eq!(touches(&prefill, "decode", "hits") + touches(&prefill, "decode", "misses"), 0.0);
    assert_eq!(touches(&prefill, "prefill", "stored"), 30.0);
    let decode = small(&stand, &format!("{FEW} --decode-only").replace("--num-users 4", "--num-users 1"));
    assert_eq!(touches(&decode, "prefill", "stored") + touches(&decode, "decode", "stored"), 0.0);
    assert_eq!(touches(&decode, "decode", "misses"), 0.0);
    assert!(touches(&decode, "decode", "hits") >= 60.0, "each entry is read once and once more");
    let prepared = &decode["filled"]["prepared"];
    // Ten entries, and the three shared prompts of 50 tokens.
    assert_eq!((number(prepared, "/entries"), number(prepared, "/failed")), (13.0, 0.0));
    assert_eq!(number(prepared, "/bytes"), ((10 * 2048 + 3 * 50) * TOKEN_BYTES) as f64);
}

#[test]
fn a_drive_is_filled_before_it_is_measured() {
    let report = small(&Stand::new(), &format!("{FEW} --precondition --precondition-size-gb 0.05"));
    let ballast = &report["filled"]["preconditioned"];
    assert_eq!(
        (number(ballast, "/entries"), number(ballast, "/bytes")),
        (2.0, (2 * 2048 * TOKEN_BYTES) as f64)
    );
    let counted = number(&report, "/summary/cache_stats/prefill_writes");
    assert_eq!(counted, number(&report, "/summary/tiers/0/writes/operations"), "and does not count");
    assert!(number(&report, "/summary/cache_stats/storage_entries") >= counted, "but stays");
}

#[test]
fn documents_are_written_and_hit() {
    let stand = Stand::new();
    let short = "rag: {small_model_doc_tokens_min: 400, small_model_doc_tokens_max: 1200}";
    stand.sandbox.write("scaled.yaml", format!("{SCALED}{short}\n"));
    let line = FEW.replace("--max-requests 30", "--max-requests 60");
    let report = small(&stand, &format!("{line} --enable-rag --rag-num-docs 4"));
    let documents = &report["filled"]["documents"];
    assert!(number(documents, "/entries") >= 4.0 && number(documents, "/failed") == 0.0, "{documents}");
    assert!(number(&report, "/summary/rag/cache_hits") > 0.0, "{:#}", report["summary"]["rag"]);
    assert_eq!(number(&report, "/summary/rag/cache_misses"), 0.0);
    assert_eq!(report["summary"]["rag"]["cache_hits"], report["summary"]["cache_stats"]["rag_hits"]);
}

#[test]
fn what_is_read_is_what_was_written() {
    let stand = Stand::new();
    let report = small(&stand, &format!("{FEW} --verify").replace("--cpu-mem-gb 0", "--cpu-mem-gb 0.1"));
    assert_eq!(number(&report, "/summary/cache_stats/failed_reads"), 0.0);
    assert!(number(&report, "/summary/cache_stats/cache_hits") > 30.0);
}

#[test]
fn an_entry_is_split_over_gpus() {
    let stand = Stand::new();
    let report = small(&stand, &format!("{FEW} --num-gpus 4 --tensor-parallel 4"));
    assert_eq!(number(&report, "/plan/run/bytes_per_token"), (TOKEN_BYTES / 4) as f64);
    let whole = small(&stand, FEW);
    let bytes = |report: &Value| number(report, "/summary/read_amplification/context_bytes");
    assert_eq!(bytes(&whole), 4.0 * bytes(&report), "the same requests on a quarter of the bytes");
}

/// Keys of the configuration that change what is done, and a model that only it knows.
#[test]
fn the_configuration_is_used() {
    let stand = Stand::new();
    stand.sandbox.write(
        "mine.yaml",
        "user_templates:
  chatbot: {context_range: [100, 100], generation_range: [64, 64], think_time_range: [0.01, 0.01]}
decode: {batch_size: 16}
prefix_cache: {system_prompt_hit_probability: 0.0}
conversation: {end_conversation_probability: 1.0}
qos_distribution: {interactive_probability: 1.0, responsive_threshold: 1.0}
qos_profiles: {interactive: {target_latency_p95_ms: 12345.0}}
model_configs:
  mine: {name: Mine, num_layers: 2, hidden_dim: 64, num_heads: 4, kv_heads: 2, dtype: float16}
",
    );
    let line = "--config mine.yaml --model mine --gpu-mem-gb 0 --persona-mix chatbot=1 --cache-dir cache \
        --storage-capacity-gb 1";
    let report = stand.bench(&format!("{line} {FEW}")).json();
    invariants::check(&report, line);
    // 2 layers × 2 heads × 16 values × key and value × 2 bytes.
    assert_eq!(number(&report, "/plan/run/bytes_per_token"), 256.0);
    assert_eq!(number(&report, "/summary/prefix_cache_stats/prefix_hits"), 0.0);
    assert_eq!(number(&report, "/multi_turn_cache_hits"), 0.0, "every conversation has one turn");
    assert_eq!(number(&report, "/summary/qos_metrics/interactive/total_requests"), 30.0);
    assert_eq!(number(&report, "/summary/qos_metrics/interactive/sla/target_p95_ms"), 12345.0);
    let reads = number(&report, "/summary/touches/decode/hits") / 30.0;
    assert!((2.0..=5.0).contains(&reads), "16 to 64 tokens are 1 to 4 batches of 16, and one read: {reads}");
}

#[test]
fn a_recorded_hit_rate_is_compared() {
    let stand = Stand::new();
    let recorded = |hits: usize| {
        let rows = (0..100).map(|row| format!("{{\"cache_hit\": {}, \"context_tokens\": 5}}", row < hits));
        stand.sandbox.write("recorded.json", format!("[{}]", rows.collect::<Vec<_>>().join(",")));
        let line = FEW.replace("--generation-mode none", "--generation-mode deterministic");
        small(&stand, &format!("{line} --validation-trace recorded.json"))
    };
    let report = recorded(10);
    let validation = &report["validation"];
    assert_eq!(validation["passed"], false);
    assert_eq!(number(validation, "/comparison/cache_hit_rate/trace"), 0.1);
    let rate = number(&report, "/summary/cache_stats/cache_hit_rate");
    assert_eq!(number(validation, "/comparison/cache_hit_rate/benchmark"), rate);
    assert_eq!(recorded((rate * 100.0).round() as usize)["validation"]["passed"], true);
}
