//! The keys of the configuration, one row each.

use wavetank_bench::{Persona, Popularity, Target, Template};
use wavetank_model::Class;

use super::node::{Entry, Node};
use super::{Config, Findings};
use crate::bench::model::ModelKeys;

/// A key: its path, in which `*` is any name its section takes, and what it sets.
pub(super) struct Key {
    pub(super) path: &'static str,
    set: fn(&mut Config, &str, &Node) -> Result<(), String>,
}

const fn key(path: &'static str, set: fn(&mut Config, &str, &Node) -> Result<(), String>) -> Key {
    Key { path, set }
}

/// Counts are what 32 bits hold.
const MANY: u64 = u32::MAX as u64;
/// Latencies up to a day.
const DAY_MS: f64 = 86_400_000.0;
/// Tokens of one text.
const TOKENS: u64 = 1 << 24;

/// Every key, section by section.
pub(super) const KEYS: &[Key] = &[
    key("user_templates.*.context_range", |c, who, v| {
        put(&mut template(c, who).context_range, v.range(|end| end.whole(1, TOKENS)))
    }),
    key("user_templates.*.generation_range", |c, who, v| {
        put(&mut template(c, who).generation_range, v.range(|end| end.whole(1, TOKENS)))
    }),
    key("user_templates.*.think_time_range", |c, who, v| {
        put(&mut template(c, who).think_time_range, v.range(|end| end.number(0.0, 86_400.0)))
    }),
    key("generation_timing.none", |c, _, v| put(&mut c.seconds_per_token[0], v.number(0.0, 60.0))),
    key("generation_timing.fast", |c, _, v| put(&mut c.seconds_per_token[1], v.number(0.0, 60.0))),
    key("generation_timing.realistic", |c, _, v| put(&mut c.seconds_per_token[2], v.number(0.0, 60.0))),
    key("qos_profiles.*.target_latency_p95_ms", |c, class, v| {
        put(&mut target(c, class).target_latency_p95_ms, v.number(0.0, DAY_MS))
    }),
    key("qos_profiles.*.target_latency_p99_ms", |c, class, v| {
        put(&mut target(c, class).target_latency_p99_ms, v.number(0.0, DAY_MS))
    }),
    key("qos_profiles.*.target_latency_p999_ms", |c, class, v| {
        put(&mut target(c, class).target_latency_p999_ms, v.number(0.0, DAY_MS))
    }),
    key("qos_profiles.*.target_latency_p9999_ms", |c, class, v| {
        put(&mut target(c, class).target_latency_p9999_ms, v.number(0.0, DAY_MS))
    }),
    key("qos_profiles.*.priority", |c, class, v| put(&mut target(c, class).priority, v.whole(0, 1000))),
    key("qos_distribution.interactive_probability", |c, _, v| {
        put(&mut c.classes.interactive_probability, v.share())
    }),
    key("qos_distribution.responsive_threshold", |c, _, v| {
        put(&mut c.classes.responsive_threshold, v.share())
    }),
    key("eviction.max_recursion_depth", |c, _, v| put(&mut c.room.depth_max, v.whole(0, 255))),
    key("eviction.target_usage_ratio", |c, _, v| put(&mut c.room.target_share, v.share())),
    key("eviction.large_entry_limit_ratio", |c, _, v| put(&mut c.room.largest_share, v.share())),
    key("eviction.max_evictions_hard_cap", |c, _, v| put(&mut c.room.evictions_max, v.whole(1, MANY))),
    key("eviction.max_evictions_min", |c, _, v| put(&mut c.room.evictions_min, v.whole(1, MANY))),
    key("gpu_backend.memory_fraction", |c, _, v| {
        put(&mut c.gpu.memory_fraction, v.number(0.01, 1.0).map(Some))
    }),
    key("gpu_backend.max_eviction_attempts", |_, _, v| no_attempts(v)),
    key("gpu_backend.free_memory_threshold", |c, _, v| {
        put(&mut c.gpu.free_memory_threshold, v.number(0.0, 0.99).map(Some))
    }),
    key("prefix_cache.min_prefix_length", |c, _, v| put(&mut c.prompt_tokens_min, v.whole(0, TOKENS))),
    key("prefix_cache.max_prefix_entries", |c, _, v| put(&mut c.prompts_max, v.whole(0, MANY))),
    key("prefix_cache.system_prompt_hit_probability", |c, _, v| put(&mut c.prompt_probability, v.share())),
    key("rag.chunk_size_tokens", |c, _, v| put(&mut c.rag.documents.chunk_tokens, v.whole(1, TOKENS))),
    key("rag.top_k_chunks", |c, _, v| put(&mut c.rag.documents.top_k, v.whole(1, MANY))),
    key("rag.max_chunk_bytes", |c, _, v| put(&mut c.rag.documents.chunk_bytes_max, v.whole(1, 1 << 50))),
    key("rag.request_probability", |c, _, v| put(&mut c.rag.documents.request_probability, v.share())),
    key("rag.retrieval_distribution", |c, _, v| put(&mut c.rag.documents.popularity, popularity(v))),
    key("rag.max_documents", |c, _, v| put(&mut c.rag.documents_max, v.whole(0, MANY))),
    key("rag.large_model_doc_tokens_min", |c, _, v| put(&mut c.rag.large_tokens[0], v.whole(1, TOKENS))),
    key("rag.large_model_doc_tokens_max", |c, _, v| put(&mut c.rag.large_tokens[1], v.whole(1, TOKENS))),
    key("rag.small_model_doc_tokens_min", |c, _, v| put(&mut c.rag.small_tokens[0], v.whole(1, TOKENS))),
    key("rag.small_model_doc_tokens_max", |c, _, v| put(&mut c.rag.small_tokens[1], v.whole(1, TOKENS))),
    key("conversation.max_conversations", |c, _, v| put(&mut c.conversations_max, v.whole(1, MANY))),
    key("conversation.max_turns_per_conv", |c, _, v| put(&mut c.turns_max, v.whole(1, MANY))),
    key("conversation.end_conversation_probability", |c, _, v| put(&mut c.end_probability, v.share())),
    key("autoscaler.min_users", |c, _, v| put(&mut c.scaling.users_min, v.whole(1, MANY))),
    key("autoscaler.max_users", |c, _, v| put(&mut c.scaling.users_max, v.whole(1, MANY))),
    key("autoscaler.scale_up_factor", |c, _, v| put(&mut c.scaling.up_factor, v.number(1.0, 100.0))),
    key("autoscaler.scale_down_factor", |c, _, v| put(&mut c.scaling.down_factor, v.number(0.01, 1.0))),
    key("autoscaler.consecutive_samples_required", |c, _, v| {
        put(&mut c.scaling.consecutive, v.whole(1, 1000))
    }),
    key("decode.batch_size", |c, _, v| put(&mut c.decode_batch, v.whole(1, MANY))),
    key("sharegpt.max_context_tokens", |c, _, v| put(&mut c.sharegpt.context_tokens_max, v.whole(1, TOKENS))),
    key("sharegpt.max_generation_tokens", |c, _, v| {
        put(&mut c.sharegpt.generate_tokens_max, v.whole(1, TOKENS))
    }),
    key("sharegpt.chars_per_token_estimate", |c, _, v| {
        put(&mut c.sharegpt.chars_per_token, v.number(0.1, 1000.0))
    }),
    key("saturation_detection.read_latency_p95_threshold_ms", |c, _, v| {
        put(&mut c.scaling.read_p95_ms, v.number(0.001, DAY_MS))
    }),
    key("saturation_detection.write_latency_p95_threshold_ms", |c, _, v| {
        put(&mut c.scaling.write_p95_ms, v.number(0.001, DAY_MS))
    }),
    key("saturation_detection.queue_depth_threshold", |c, _, v| {
        put(&mut c.scaling.queue_depth, v.whole(1, MANY))
    }),
    key("saturation_detection.history_window_size", |c, _, v| put(&mut c.scaling.history, v.whole(2, 1000))),
    key("validation_limits.max_users", |c, _, v| put(&mut c.limits.users, v.whole(1, MANY))),
    key("validation_limits.max_duration_seconds", |c, _, v| {
        put(&mut c.limits.duration_seconds, v.number(1.0, 1e9))
    }),
    key("validation_limits.max_gpu_memory_gb", |c, _, v| {
        put(&mut c.limits.gpu_memory_gb, v.number(0.0, 1e6))
    }),
    key("validation_limits.max_cpu_memory_gb", |c, _, v| {
        put(&mut c.limits.cpu_memory_gb, v.number(0.0, 1e6))
    }),
    key("model_configs.*.name", |c, name, v| put(&mut model(c, name).title, v.text().map(Some))),
    key("model_configs.*.num_layers", |c, name, v| put(&mut model(c, name).layers, shape(v))),
    key("model_configs.*.hidden_dim", |c, name, v| put(&mut model(c, name).hidden_dim, shape(v))),
    key("model_configs.*.num_heads", |c, name, v| put(&mut model(c, name).heads, shape(v))),
    key("model_configs.*.kv_heads", |c, name, v| put(&mut model(c, name).kv_heads, shape(v))),
    key("model_configs.*.dtype", |c, name, v| put(&mut model(c, name).dtype, v.text().map(Some))),
    key("model_configs.*.kv_dim_per_head", |c, name, v| put(&mut model(c, name).head_dim, absent(v))),
    key("model_configs.*.attention_type", |c, name, v| {
        put(&mut model(c, name).attention_type, v.text().map(Some))
    }),
    key("model_configs.*.kv_lora_rank", |c, name, v| put(&mut model(c, name).kv_lora_rank, absent(v))),
    key("model_configs.*.qk_rope_head_dim", |c, name, v| {
        put(&mut model(c, name).qk_rope_head_dim, absent(v))
    }),
];

fn put<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

/// What takes the place of `*` in a section; any name where there are none.
fn names(section: &str) -> &'static [&'static str] {
    match section {
        "user_templates" => &["chatbot", "coding", "document"],
        "qos_profiles" => &["interactive", "responsive", "batch"],
        _ => &[],
    }
}

fn template<'a>(config: &'a mut Config, name: &str) -> &'a mut Template {
    let place = Persona::ALL.iter().position(|persona| persona.name() == name);
    &mut config.templates[place.expect("the section takes these names only")]
}

fn target<'a>(config: &'a mut Config, name: &str) -> &'a mut Target {
    let place = Class::ALL.iter().position(|class| class.name() == name);
    &mut config.targets[place.expect("the section takes these names only")]
}

fn model<'a>(config: &'a mut Config, name: &str) -> &'a mut ModelKeys {
    config.models.entry(name.to_owned()).or_default()
}

/// A number of a model's shape.
fn shape(value: &Node) -> Result<Option<u32>, String> {
    value.whole(1, 1 << 20).map(Some)
}

/// The same, where `null` is as good as absent.
fn absent(value: &Node) -> Result<Option<u32>, String> {
    if *value == Node::Null { Ok(None) } else { shape(value) }
}

fn popularity(value: &Node) -> Result<Popularity, String> {
    match value.text()?.as_str() {
        "zipfian" => Ok(Popularity::Zipfian),
        "uniform" => Ok(Popularity::Uniform),
        other => Err(format!("must be zipfian or uniform, not \"{other}\"")),
    }
}

/// The reference's number of tries to allocate device memory. Ours is allocated once, before the run.
fn no_attempts(value: &Node) -> Result<(), String> {
    match value.whole::<u32>(0, MANY)? {
        100 => Ok(()),
        _ => Err("is not supported: device memory is allocated at once and no allocation is tried again \
                  (100, the default, is accepted); eviction.max_evictions_hard_cap bounds evictions"
            .to_owned()),
    }
}

/// Enters a document into a configuration.
pub(super) struct Walk<'a> {
    pub(super) file: &'a str,
    pub(super) config: &'a mut Config,
    pub(super) findings: &'a mut Findings,
}

/// Where in a document.
#[derive(Clone, Default)]
pub(super) struct Spot {
    /// The path in the table.
    pattern: String,
    /// The path in the file.
    path: String,
    /// What stands in the place of `*`.
    name: String,
}

impl Spot {
    fn below(&self, key: &str, is_name: bool) -> Self {
        let (segment, name) = if is_name { ("*", key) } else { (key, self.name.as_str()) };
        Self { pattern: join(&self.pattern, segment), path: join(&self.path, key), name: name.to_owned() }
    }
}

impl Walk<'_> {
    /// Enters one section.
    pub(super) fn section(&mut self, at: &Spot, entries: &[Entry]) {
        let (known, are_names) = known(&at.pattern);
        for Entry { key, line, value } in entries {
            let spot = at.below(key, are_names);
            let (path, place) = (&spot.path, format!("{}:{line}", self.file));
            let takes_any = are_names && known.is_empty();
            if !takes_any && !known.contains(&key.as_str()) {
                let section = if at.path.is_empty() { "the file" } else { &at.path };
                let hint = format!("{section} takes {}", known.join(", "));
                self.findings.wrong(&place, format!("unknown key \"{path}\" — hint: {hint}"));
                continue;
            }
            match (KEYS.iter().find(|key| key.path == spot.pattern), value) {
                (Some(row), _) => {
                    if let Err(what) = (row.set)(self.config, &spot.name, value) {
                        self.findings.wrong(&place, format!("\"{path}\" {what}"));
                    }
                }
                (None, Node::Map(entries)) => self.section(&spot, entries),
                (None, Node::Null) => {}
                (None, _) => {
                    self.findings.wrong(&place, format!("\"{path}\" must be a section, not {value}"))
                }
            }
        }
    }
}

/// What a section takes, and whether that stands in the place of `*`.
fn known(pattern: &str) -> (Vec<&'static str>, bool) {
    let mut segments: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let rest = match pattern {
            "" => Some(key.path),
            _ => key.path.strip_prefix(pattern).and_then(|rest| rest.strip_prefix('.')),
        };
        let segment = rest.and_then(|rest| rest.split('.').next());
        segments.extend(segment.filter(|segment| !segments.contains(segment)));
    }
    if segments == ["*"] { (names(pattern).to_vec(), true) } else { (segments, false) }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
