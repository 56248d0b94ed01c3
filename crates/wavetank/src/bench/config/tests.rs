//! Every key of the configuration changes the plan, and what is wrong is said with its place.
//!
//! Breaks when a key is read and not used, or a row of the table has no value here.

use std::fs;

use insta::assert_snapshot;
use tempfile::TempDir;
use wavetank_bench::ScaleMode;

use super::keys::KEYS;
use crate::bench::args::{BenchArgs, GenerationMode, GpuTier};
use crate::bench::plan::BenchPlan;
use crate::bench::testing::without_gpu;

/// A value for every key that is not its default.
const VALUES: &[(&str, &str)] = &[
    ("user_templates.*.context_range", "[7, 9]"),
    ("user_templates.*.generation_range", "[7, 9]"),
    ("user_templates.*.think_time_range", "[0.25, 0.26]"),
    ("generation_timing.none", "0.001"),
    ("generation_timing.fast", "0.001"),
    ("generation_timing.realistic", "0.001"),
    ("qos_profiles.*.target_latency_p95_ms", "77"),
    ("qos_profiles.*.target_latency_p99_ms", "77"),
    ("qos_profiles.*.target_latency_p999_ms", "77.5"),
    ("qos_profiles.*.target_latency_p9999_ms", "77"),
    ("qos_profiles.*.priority", "9"),
    ("qos_distribution.interactive_probability", "0.3"),
    ("qos_distribution.responsive_threshold", "0.3"),
    ("eviction.max_recursion_depth", "3"),
    ("eviction.target_usage_ratio", "0.5"),
    ("eviction.large_entry_limit_ratio", "0.5"),
    ("eviction.max_evictions_hard_cap", "2000"),
    ("eviction.max_evictions_min", "10"),
    ("gpu_backend.memory_fraction", "0.5"),
    ("gpu_backend.max_eviction_attempts", "7"),
    ("gpu_backend.free_memory_threshold", "0.5"),
    ("prefix_cache.min_prefix_length", "7"),
    ("prefix_cache.max_prefix_entries", "2"),
    ("prefix_cache.system_prompt_hit_probability", "0.5"),
    ("rag.chunk_size_tokens", "64"),
    ("rag.top_k_chunks", "2"),
    ("rag.max_chunk_bytes", "1000000"),
    ("rag.request_probability", "0.5"),
    ("rag.retrieval_distribution", "uniform"),
    ("rag.max_documents", "3"),
    ("rag.large_model_doc_tokens_min", "2000"),
    ("rag.large_model_doc_tokens_max", "2000"),
    ("rag.small_model_doc_tokens_min", "5000"),
    ("rag.small_model_doc_tokens_max", "5000"),
    ("conversation.max_conversations", "7"),
    ("conversation.max_turns_per_conv", "7"),
    ("conversation.end_conversation_probability", "0.7"),
    ("autoscaler.min_users", "2"),
    ("autoscaler.max_users", "200"),
    ("autoscaler.scale_up_factor", "2"),
    ("autoscaler.scale_down_factor", "0.5"),
    ("autoscaler.consecutive_samples_required", "4"),
    ("decode.batch_size", "16"),
    ("sharegpt.max_context_tokens", "8192"),
    ("sharegpt.max_generation_tokens", "100"),
    ("sharegpt.chars_per_token_estimate", "3.5"),
    ("saturation_detection.read_latency_p95_threshold_ms", "10"),
    ("saturation_detection.write_latency_p95_threshold_ms", "10"),
    ("saturation_detection.queue_depth_threshold", "10"),
    ("saturation_detection.history_window_size", "4"),
    ("validation_limits.max_users", "50"),
    ("validation_limits.max_duration_seconds", "30"),
    ("validation_limits.max_gpu_memory_gb", "8"),
    ("validation_limits.max_cpu_memory_gb", "8"),
    ("model_configs.*.name", "Own"),
    ("model_configs.*.num_layers", "13"),
    ("model_configs.*.hidden_dim", "1536"),
    ("model_configs.*.num_heads", "64"),
    ("model_configs.*.kv_heads", "2"),
    ("model_configs.*.dtype", "float32"),
    ("model_configs.*.kv_dim_per_head", "32"),
    ("model_configs.*.attention_type", "mqa"),
    ("model_configs.*.kv_lora_rank", "256"),
    ("model_configs.*.qk_rope_head_dim", "32"),
];

/// What has to be typed for a key to matter.
fn typed(path: &str, dataset: &str) -> BenchArgs {
    let mut args = BenchArgs {
        cpu_mem_gb: Some(16.0),
        gpu_mem_gb: Some(16.0),
        gpu_tier: Some(GpuTier::Sim),
        storage_capacity_gb: Some(1.0),
        model: Some("tiny-1b".to_owned()),
        ..BenchArgs::default()
    };
    match path.split('.').next().unwrap() {
        "autoscaler" | "saturation_detection" => {
            args.enable_autoscaling = true;
            args.autoscaler_mode = Some(ScaleMode::Qos);
        }
        "rag" => args.enable_rag = true,
        "sharegpt" => args.dataset_path = Some(dataset.to_owned()),
        "generation_timing" => {
            args.generation_mode = Some(match path.rsplit('.').next().unwrap() {
                "none" => GenerationMode::None,
                "fast" => GenerationMode::Fast,
                _ => GenerationMode::Realistic,
            });
        }
        _ => {}
    }
    if path.starts_with("rag.large") {
        args.model = Some("llama3.1-70b-instruct".to_owned());
    }
    if path.ends_with("kv_lora_rank") || path.ends_with("qk_rope_head_dim") {
        args.model = Some("deepseek-v3".to_owned());
    }
    args
}

/// The paths a row stands for.
fn paths(row: &str, model: &str) -> Vec<Vec<String>> {
    let names: &[&str] = match row.split('.').next().unwrap() {
        "user_templates" => &["chatbot", "coding", "document"],
        "qos_profiles" => &["interactive", "responsive", "batch"],
        _ => &[model],
    };
    let path = |name: &&str| row.split('.').map(|part| part.replace('*', name)).collect();
    names.iter().take(if row.contains('*') { 3 } else { 1 }).map(path).collect()
}

fn yaml(path: &[String], value: &str) -> String {
    let mut text = String::new();
    for (depth, part) in path.iter().enumerate() {
        let value = if depth + 1 == path.len() { value } else { "" };
        text += &format!("{}{part}: {value}\n", "  ".repeat(depth));
    }
    text
}

#[test]
fn every_key_changes_the_plan() {
    let folder = TempDir::new().unwrap();
    let [dataset, file] = ["dataset.json", "config.yaml"].map(|name| folder.path().join(name));
    fs::write(&dataset, "[]").unwrap();
    let rows: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
    assert_eq!(rows, VALUES.iter().map(|(path, _)| *path).collect::<Vec<_>>(), "a value for every row");
    for (row, value) in VALUES {
        let args = typed(row, dataset.to_str().unwrap());
        let before = BenchPlan::on(&without_gpu(), &args).unwrap();
        for path in paths(row, args.model.as_deref().unwrap()) {
            fs::write(&file, yaml(&path, value)).unwrap();
            let args = BenchArgs { config: Some(file.clone()), ..args.clone() };
            let after = BenchPlan::on(&without_gpu(), &args);
            let refused = row.starts_with("validation_limits") || row.ends_with("max_eviction_attempts");
            assert_eq!(after.is_err(), refused, "{path:?}: {after:?}");
            assert!(after.is_err() || after.is_ok_and(|after| after != before), "{path:?} is ignored");
        }
    }
}

/// What the configuration says is wrong with `text`, with the file called F.
fn refusal(text: &str) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config.yaml");
    fs::write(&file, text).unwrap();
    let args = BenchArgs { config: Some(file.clone()), ..typed("", "") };
    let error = BenchPlan::on(&without_gpu(), &args).expect_err(text);
    error.to_string().replace(file.to_str().unwrap(), "F")
}

#[test]
fn what_is_wrong_is_said_with_its_path_and_line() {
    let text = "eviction:
  max_recursion_dept: 3
  target_usage_ratio: 1.5
user_templates:
  chatbott: {context_range: [1, 2]}
  coding:
    context_range: [9, 2]
    think_time_range: 3
rag:
  top_k_chunks: many
  retrieval_distribution: even
qos_distribution: 5
decode: {batch_size: 2.5}
gpu_backend: {max_eviction_attempts: 50}
colour: red
autoscaler:
  min_users: 10
  max_users: 5
model_configs:
  own.model: {num_layers: 2, dtype: int4}
";
    assert_snapshot!(refusal(text));
}

#[test]
fn what_is_no_configuration_is_refused() {
    let said = |text: &str| refusal(text).replace("the benchmark cannot be run as asked: ", "");
    assert_eq!(said("decode: [1"), "F:1: not YAML: unclosed bracket '[' at line 1, column 9");
    assert_eq!(said("- 1"), "F: must be a map of sections");
    let twice = "decode: {batch_size: 1}\ndecode: {batch_size: 2}";
    assert_eq!(said(twice), "F:2: not YAML: duplicate mapping key: decode at line 2, column 1");
}

#[test]
fn an_empty_file_and_empty_sections_change_nothing() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config.yaml");
    let plan = |args: &BenchArgs| BenchPlan::on(&without_gpu(), args).unwrap();
    for text in ["", "# nothing\n", "rag:\neviction:\n"] {
        fs::write(&file, text).unwrap();
        let args = BenchArgs { config: Some(file.clone()), ..typed("", "") };
        assert_eq!(plan(&args), plan(&typed("", "")), "{text:?}");
    }
}

#[test]
fn a_model_of_the_file_can_be_chosen_by_a_name_with_dots() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config.yaml");
    let text = "model_configs:\n  own-1.5b: {num_layers: 4, hidden_dim: 64, num_heads: 4, kv_heads: 2}\n";
    fs::write(&file, text).unwrap();
    let args = BenchArgs { config: Some(file), model: Some("own-1.5b".to_owned()), ..typed("", "") };
    assert_eq!(BenchPlan::on(&without_gpu(), &args).unwrap().run.bytes_per_token, 4 * 2 * 2 * 16 * 2);
}
