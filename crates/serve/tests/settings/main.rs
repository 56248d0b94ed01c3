//! Every key of the configuration file has an effect.
#![forbid(unsafe_code)]

use std::fs;

use wavetank_serve::{Args, Plan};

/// What a key needs around it, and a value that is not its default.
const ROWS: &[(&str, &str, &str)] = &[
    ("host", "", "\"127.0.0.2\""),
    ("port", "", "1"),
    ("http_port", "", "1"),
    ("user", "password_file = \"PASSWORD\"", "\"alice\""),
    ("password_file", "", "\"PASSWORD\""),
    ("l1_size_gb", "", "2"),
    ("l1_align_bytes", "", "1"),
    ("l1_write_ttl_seconds", "", "1"),
    ("l1_read_ttl_seconds", "", "1"),
    ("eviction_policy", "", "\"arc\""),
    ("eviction_trigger_watermark", "", "0.5"),
    ("eviction_ratio", "", "0.5"),
    ("l2", "", "[\"memory:1GiB\"]"),
    ("l2_adapter", "", "[{ type = \"mock\" }, '{\"type\": \"mock\"}']"),
    ("l2_store_policy", "l2 = [\"memory:1GiB\"]", "\"skip_l1\""),
    ("l2_prefetch_policy", "l2 = [\"memory:1GiB\"]", "\"default\""),
    ("l2_prefetch_max_in_flight", "l2 = [\"memory:1GiB\"]", "1"),
    ("l2_timeout_ms", "l2 = [\"memory:1GiB\"]", "1"),
    ("quota", "eviction_policy = \"isolated_lru\"", "{ a = \"1MiB\" }"),
    ("default_quota", "eviction_policy = \"isolated_lru\"", "\"1MiB\""),
    ("chunk_size", "", "16"),
    ("session_ttl_seconds", "", "1"),
    ("lease_seconds", "", "1"),
    ("lease_share", "", "0.5"),
    ("resp_threads", "", "7"),
    ("http_threads", "", "7"),
    ("max_connections", "", "1"),
    ("http_max_connections", "", "1"),
    ("max_memory", "", "\"1MiB\""),
    ("max_connection_memory", "", "\"1MiB\""),
    ("max_value", "", "\"1MiB\""),
    ("client_timeout_seconds", "", "1"),
    ("idle_timeout_seconds", "", "1"),
    ("resp_idle_timeout_seconds", "", "1"),
    ("drain_seconds", "", "1"),
    ("enable_flushall", "", "true"),
    ("metrics_names", "", "\"reference\""),
    ("enable_tracing", "", "true\notlp_file = \"spans\""),
    ("otlp_endpoint", "enable_tracing = true\notlp_file = \"spans\"", "\"http://a:1\""),
    ("otlp_protocol", "enable_tracing = true\notlp_endpoint = \"http://a:1\"", "\"http\""),
    ("otlp_header", "enable_tracing = true\notlp_endpoint = \"http://a:1\"", "[\"a=b\"]"),
    ("otlp_certificate", "enable_tracing = true\notlp_endpoint = \"http://a:1\"", "\"pem\""),
    ("otlp_file", "enable_tracing = true\notlp_endpoint = \"http://a:1\"", "\"spans\""),
    ("trace_sample_ratio", "enable_tracing = true\notlp_file = \"spans\"", "0.5"),
    ("command_sample_ratio", "enable_tracing = true\notlp_file = \"spans\"", "0.123"),
    ("event_bus_queue_size", "enable_tracing = true\notlp_file = \"spans\"", "7"),
];

/// Checked with the flags that all verbs share, before there is a plan.
const SHARED: &[&str] = &["trace_level", "trace_output", "trace_rotate_mb", "trace_cap_mb"];

/// Broken by: a key that is read and forgotten on the way to the plan, or a new one without a row here.
#[test]
fn every_key_changes_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    fs::write(&password, "open sesame\n").unwrap();
    let plan = |text: &str| {
        let text = text.replace("PASSWORD", password.to_str().unwrap());
        let args = Args::from_toml(&text, "kv.toml").unwrap_or_else(|error| panic!("{text}: {error}"));
        Plan::of(&args, None).unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    for (key, around, value) in ROWS {
        let size = if *key == "l1_size_gb" { "" } else { "l1_size_gb = 1" };
        let before = plan(&format!("{}\n{around}", if size.is_empty() { "l1_size_gb = 1" } else { size }));
        let after = plan(&format!("{size}\n{around}\n{key} = {value}"));
        assert!(before != after, "{key} has no effect");
    }
    let known: Vec<&str> = ROWS.iter().map(|(key, ..)| *key).chain(SHARED.iter().copied()).collect();
    assert!(known.iter().all(|key| Args::NAMES.contains(key)));
    let missing: Vec<_> = Args::NAMES.iter().filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
}
