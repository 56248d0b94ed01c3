//! The YAML configuration: what a benchmark does beyond its flags. Every key is a row of [`keys::KEYS`].
//!
//! Sections, keys and defaults are those of spec/kv-bench.md 3, where some of them have no effect; here every
//! key changes the plan. A key that is not known or of the wrong type is an error with its path and line.

mod keys;
mod node;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use wavetank_bench::{ClassShare, Documents, Persona, ScaleMode, Scaling, Target, Template};
use wavetank_cache::Room;
use wavetank_model::{Class, Error, Result};

use self::node::Node;
use super::findings::Findings;
use super::model::ModelKeys;

/// Everything the configuration says.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) templates: [Template; 3],
    /// Seconds a token of `none`, `fast` and `realistic`.
    pub(super) seconds_per_token: [f64; 3],
    pub(super) targets: [Target; 3],
    pub(super) classes: ClassShare,
    pub(super) room: Room,
    pub(super) gpu: GpuKeys,
    pub(super) prompt_tokens_min: u32,
    pub(super) prompts_max: u32,
    pub(super) prompt_probability: f64,
    pub(super) rag: RagKeys,
    pub(super) conversations_max: u32,
    pub(super) turns_max: u32,
    pub(super) end_probability: f64,
    /// Its mode, target and interval come from flags.
    pub(super) scaling: Scaling,
    pub(super) decode_batch: u32,
    pub(super) sharegpt: ShareGptKeys,
    pub(super) limits: LimitKeys,
    pub(super) models: BTreeMap<String, ModelKeys>,
}

/// How much of a GPU's memory holds KV; absent where the kind of tier decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GpuKeys {
    pub(super) memory_fraction: Option<f64>,
    pub(super) free_memory_threshold: Option<f64>,
}

/// Retrieval.
#[derive(Clone, Copy, Debug)]
pub(super) struct RagKeys {
    pub(super) documents: Documents,
    /// No more documents than this; 0 is no limit.
    pub(super) documents_max: u32,
    pub(super) large_tokens: [u32; 2],
    pub(super) small_tokens: [u32; 2],
}

/// What of a conversation's texts is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShareGptKeys {
    pub(super) context_tokens_max: u32,
    pub(super) generate_tokens_max: u32,
    pub(super) chars_per_token: f64,
}

/// The most that flags may ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitKeys {
    pub(super) users: u32,
    pub(super) duration_seconds: f64,
    pub(super) gpu_memory_gb: f64,
    pub(super) cpu_memory_gb: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            templates: Persona::ALL.map(Persona::template),
            seconds_per_token: [0.0, 0.002, 0.030],
            targets: Class::ALL.map(Target::of),
            classes: ClassShare::default(),
            room: Room::REFERENCE,
            gpu: GpuKeys::default(),
            prompt_tokens_min: 50,
            prompts_max: 1000,
            prompt_probability: 0.2,
            rag: RagKeys {
                documents: Documents::default(),
                documents_max: 0,
                large_tokens: [1024, 4096],
                small_tokens: [4000, 12_000],
            },
            conversations_max: 1000,
            turns_max: 50,
            end_probability: 0.2,
            scaling: Scaling::new(ScaleMode::Qos),
            decode_batch: 32,
            // What the reference really does; its file says 8192 and is ignored.
            sharegpt: ShareGptKeys {
                context_tokens_max: 16_384,
                generate_tokens_max: 2048,
                chars_per_token: 4.0,
            },
            limits: LimitKeys {
                users: 100_000,
                duration_seconds: 86_400.0,
                gpu_memory_gb: 65_536.0,
                cpu_memory_gb: 131_072.0,
            },
            models: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Reads the file, if there is one; what is wrong with it goes to `findings`.
    pub(super) fn read(path: Option<&Path>, findings: &mut Findings) -> Self {
        let mut config = Self::default();
        let Some(path) = path else { return config };
        let place = path.display().to_string();
        match document(path, &place) {
            Err(error) => findings.note(&error),
            Ok(Node::Null) => {}
            Ok(Node::Map(entries)) => {
                let mut walk = keys::Walk { file: &place, config: &mut config, findings };
                walk.section(&keys::Spot::default(), &entries);
                config.check(&place, findings);
            }
            Ok(_) => findings.wrong(&place, "must be a map of sections"),
        }
        config
    }

    /// What single keys cannot tell.
    fn check(&self, place: &str, findings: &mut Findings) {
        let mut order = |what: [&str; 2], sound: bool| {
            if !sound {
                findings.wrong(place, format!("\"{}\" must not be above \"{}\"", what[0], what[1]));
            }
        };
        let classes = ["qos_distribution.interactive_probability", "qos_distribution.responsive_threshold"];
        order(classes, self.classes.interactive_probability <= self.classes.responsive_threshold);
        let evictions = ["eviction.max_evictions_min", "eviction.max_evictions_hard_cap"];
        order(evictions, self.room.evictions_min <= self.room.evictions_max);
        let [low, high] = self.rag.large_tokens;
        order(["rag.large_model_doc_tokens_min", "rag.large_model_doc_tokens_max"], low <= high);
        let [low, high] = self.rag.small_tokens;
        order(["rag.small_model_doc_tokens_min", "rag.small_model_doc_tokens_max"], low <= high);
        let users = ["autoscaler.min_users", "autoscaler.max_users"];
        order(users, self.scaling.users_min <= self.scaling.users_max);
    }
}

fn document(path: &Path, place: &str) -> Result<Node> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::io(path, error).hint("--config takes a YAML file"))?;
    serde_saphyr::from_str(&text).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().map(|location| format!(":{}", location.line())).unwrap_or_default();
        // What only a programmer can set.
        let text = error.to_string().replace(", set DuplicateKeyPolicy in Options if acceptable", "");
        Error::input(format!("not YAML: {text}")).at(format!("{place}{line}"))
    })
}
