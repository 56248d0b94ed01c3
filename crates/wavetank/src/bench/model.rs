//! Models by name: how many bytes of KV a token takes.
//!
//! Three sources, in this order: `model_configs` of the configuration, the keys of spec/kv-bench.md 4
//! (`profiles/bench_models.csv`), and the models of the simulation by their names on Hugging Face.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use wavetank_model::{Architecture, Error, Result, models, nearest};

/// A model as far as its KV goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPlan {
    /// As typed.
    pub name: String,
    /// As people call it.
    pub title: String,
    /// The KV of one token, on all GPUs together.
    pub bytes_per_token: u64,
    /// The GPUs it is split over.
    pub tensor_parallel: u32,
    /// Transformer layers.
    pub layers: u32,
    /// Width between layers.
    pub hidden_dim: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Width of a head; 0 where KV is compressed.
    pub head_dim: u32,
    /// The type of a number.
    pub dtype: Dtype,
    /// How keys and values are kept.
    pub attention_type: AttentionType,
    /// Rank of keys and values together; 0 where they are kept by head.
    pub kv_lora_rank: u32,
    /// Part of a head with position; 0 where keys and values are kept by head.
    pub qk_rope_head_dim: u32,
}

/// The type of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dtype {
    /// 4 bytes.
    Float32,
    /// 2 bytes.
    #[default]
    Float16,
    /// 2 bytes.
    Bfloat16,
    /// 1 byte.
    Int8,
    /// 1 byte.
    Fp8,
}

impl Dtype {
    /// How many bytes a number takes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Float32 => 4,
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Int8 | Self::Fp8 => 1,
        }
    }
}

/// How keys and values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionType {
    /// For every query head.
    Mha,
    /// For groups of query heads.
    Gqa,
    /// Once for all query heads.
    Mqa,
    /// Compressed.
    Mla,
}

/// What the configuration says of a model; `None` is not given.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelKeys {
    pub(super) title: Option<String>,
    pub(super) layers: Option<u32>,
    pub(super) hidden_dim: Option<u32>,
    pub(super) heads: Option<u32>,
    pub(super) kv_heads: Option<u32>,
    pub(super) dtype: Option<String>,
    pub(super) head_dim: Option<u32>,
    pub(super) attention_type: Option<String>,
    pub(super) kv_lora_rank: Option<u32>,
    pub(super) qk_rope_head_dim: Option<u32>,
}

/// A model from here on is large: its documents are short, because each of their tokens takes much.
const LARGE_HIDDEN_DIM: u32 = 8192;

impl ModelPlan {
    /// Whether documents are made for a large model.
    pub(super) fn is_large(&self) -> bool {
        self.hidden_dim >= LARGE_HIDDEN_DIM
    }

    fn of_row(row: &str) -> Self {
        let mut cells = row.split(',');
        let name = cells.next().unwrap_or_default();
        let mut cell = || cells.next().and_then(|cell| cell.parse::<u32>().ok()).expect("a number");
        let [layers, hidden_dim, heads, kv_heads] = [(); 4].map(|()| cell());
        let [head_dim, kv_lora_rank, qk_rope_head_dim] = [(); 3].map(|()| cell());
        let shape = [layers, hidden_dim, heads, kv_heads, head_dim];
        Self::new(name, shape, [kv_lora_rank, qk_rope_head_dim], Dtype::Float16)
    }

    fn of_architecture(model: &Architecture) -> Self {
        let ranks = model.latent.map_or([0; 2], |latent| [latent.kv_rank, latent.rope_dim]);
        let head_dim = if ranks == [0; 2] { model.head_dim } else { 0 };
        let shape = [model.layers, model.hidden, model.heads, model.kv_heads, head_dim];
        Self::new(&model.name, shape, ranks, Dtype::Bfloat16)
    }

    fn new(name: &str, shape: [u32; 5], ranks: [u32; 2], dtype: Dtype) -> Self {
        let [layers, hidden_dim, heads, kv_heads, head_dim] = shape;
        let [kv_lora_rank, qk_rope_head_dim] = ranks;
        let attention_type = match kv_heads {
            _ if kv_lora_rank > 0 => AttentionType::Mla,
            _ if kv_heads == heads => AttentionType::Mha,
            1 => AttentionType::Mqa,
            _ => AttentionType::Gqa,
        };
        let numbers = match attention_type {
            AttentionType::Mla => u64::from(kv_lora_rank) + u64::from(qk_rope_head_dim),
            _ => 2 * u64::from(kv_heads) * u64::from(head_dim),
        };
        Self {
            name: name.to_owned(),
            title: name.to_owned(),
            bytes_per_token: u64::from(layers) * numbers * dtype.bytes(),
            tensor_parallel: 1,
            layers,
            hidden_dim,
            heads,
            kv_heads,
            head_dim,
            dtype,
            attention_type,
            kv_lora_rank,
            qk_rope_head_dim,
        }
    }

    /// A model of the configuration, which may change one that is built in.
    fn of_keys(name: &str, keys: &ModelKeys) -> Result<Self> {
        let base = built_in(name);
        let wrong = |what: String| Error::usage(what).at(format!("model_configs.{name}"));
        let needed = |key: &str, given: Option<u32>, based: fn(&Self) -> u32| {
            given
                .or(base.map(based))
                .ok_or_else(|| wrong(format!("\"{key}\" is missing")).hint("the model is not built in"))
        };
        let layers = needed("num_layers", keys.layers, |model| model.layers)?;
        let hidden = needed("hidden_dim", keys.hidden_dim, |model| model.hidden_dim)?;
        let heads = needed("num_heads", keys.heads, |model| model.heads)?;
        let kv_heads = needed("kv_heads", keys.kv_heads, |model| model.kv_heads)?;
        let dtype = match keys.dtype.as_deref() {
            Some(dtype) => {
                super::args::choice(dtype).map_err(|error| wrong(format!("\"dtype\": {error}")))?
            }
            None => base.map_or_else(Dtype::default, |model| model.dtype),
        };
        let asked: Option<AttentionType> = match keys.attention_type.as_deref() {
            Some(word) => {
                let asked = super::args::choice(word);
                Some(asked.map_err(|error| wrong(format!("\"attention_type\": {error}")))?)
            }
            None => None,
        };
        let ranks = keys.ranks(base, asked).map_err(wrong)?;
        let is_reshaped = keys.hidden_dim.is_some() || keys.heads.is_some();
        let based = base.filter(|model| !is_reshaped && model.head_dim > 0).map(|model| model.head_dim);
        let head_dim = match keys.head_dim.or(based) {
            _ if ranks != [0; 2] => 0,
            Some(given) => given,
            None if hidden.is_multiple_of(heads) => hidden / heads,
            None => {
                return Err(wrong(format!("{heads} heads do not divide a hidden_dim of {hidden}"))
                    .hint("give kv_dim_per_head"));
            }
        };
        let mut model = Self::new(name, [layers, hidden, heads, kv_heads, head_dim], ranks, dtype);
        if kv_heads > heads {
            return Err(wrong(format!("{kv_heads} kv_heads are more than {heads} num_heads")));
        }
        model.title = keys.title.clone().unwrap_or(model.title);
        model.attention_type = asked.unwrap_or(model.attention_type);
        Ok(model)
    }
}

impl ModelKeys {
    /// The ranks of compressed KV; zero where it is not compressed.
    fn ranks(&self, base: Option<&ModelPlan>, asked: Option<AttentionType>) -> Result<[u32; 2], String> {
        let is_based = base.is_some_and(|model| model.attention_type == AttentionType::Mla);
        let is_latent = asked.map_or(is_based, |asked| asked == AttentionType::Mla);
        if !is_latent {
            return match (self.kv_lora_rank, self.qk_rope_head_dim) {
                (None, None) => Ok([0; 2]),
                _ => Err("\"kv_lora_rank\" and \"qk_rope_head_dim\" need attention_type: mla".to_owned()),
            };
        }
        let base = base.filter(|_| is_based);
        let rank = self.kv_lora_rank.or(base.map(|model| model.kv_lora_rank));
        let rope = self.qk_rope_head_dim.or(base.map(|model| model.qk_rope_head_dim));
        rank.zip(rope)
            .map(|(rank, rope)| [rank, rope])
            .ok_or_else(|| "mla needs \"kv_lora_rank\" and \"qk_rope_head_dim\"".to_owned())
    }
}

const TABLE: &str = include_str!("../../../../profiles/bench_models.csv");

/// The models of the benchmark by their keys, in the reference's order.
pub(crate) fn bench_models() -> &'static [ModelPlan] {
    static MODELS: OnceLock<Vec<ModelPlan>> = OnceLock::new();
    MODELS.get_or_init(|| TABLE.lines().skip(1).map(ModelPlan::of_row).collect())
}

/// One line for `wavetank list` of each of them.
pub(crate) fn bench_abouts() -> &'static [String] {
    static ABOUTS: OnceLock<Vec<String>> = OnceLock::new();
    ABOUTS.get_or_init(|| {
        let about = |model: &ModelPlan| {
            let ModelPlan { layers, bytes_per_token, .. } = model;
            format!("for bench: {layers} layers, {bytes_per_token} bytes of KV per token in float16")
        };
        bench_models().iter().map(about).collect()
    })
}

fn built_in(name: &str) -> Option<&'static ModelPlan> {
    bench_models().iter().find(|model| model.name == name)
}

/// Every model of the configuration that is wrong.
pub(super) fn unsound(given: &BTreeMap<String, ModelKeys>) -> Vec<Error> {
    given.iter().filter_map(|(name, keys)| ModelPlan::of_keys(name, keys).err()).collect()
}

/// The model called `name`.
pub(super) fn find(name: &str, given: &BTreeMap<String, ModelKeys>) -> Result<ModelPlan> {
    if let Some(keys) = given.get(name) {
        return ModelPlan::of_keys(name, keys);
    }
    if let Some(model) = built_in(name) {
        return Ok(model.clone());
    }
    if let Ok(model) = wavetank_model::model(name) {
        return Ok(ModelPlan { name: name.to_owned(), ..ModelPlan::of_architecture(model) });
    }
    let known: Vec<&str> =
        bench_models().iter().map(|model| &*model.name).chain(given.keys().map(String::as_str)).collect();
    let all = known.iter().copied().chain(models().iter().map(|model| &*model.name));
    let meant = nearest(name, all).map(|other| format!("did you mean {other}? ")).unwrap_or_default();
    let known = known.join(", ");
    Err(Error::usage(format!("unknown model \"{name}\"")).at("--model").hint(format!(
        "{meant}known: {known}; names of Hugging Face: see `wavetank list models`; add one in --config"
    )))
}

/// What a context of so many tokens takes with every model: those of the benchmark, then those of the
/// simulation.
pub fn memory_table(context_tokens: u64) -> String {
    let simulated = models().iter().map(ModelPlan::of_architecture);
    let all: Vec<ModelPlan> = bench_models().iter().cloned().chain(simulated).collect();
    let head = ["Model".to_owned(), "Bytes per Token".to_owned()];
    let size = format!("Cache Size for {} Tokens", grouped(context_tokens));
    let rows = all.iter().map(|model| {
        let bytes = u128::from(model.bytes_per_token) * u128::from(context_tokens);
        ([model.name.clone(), grouped(model.bytes_per_token)], cache_size(bytes))
    });
    let rows: Vec<([String; 2], String)> = std::iter::once((head, size)).chain(rows).collect();
    let width = |i: usize| rows.iter().map(|(cells, _)| cells[i].len()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let line = |([name, bytes], size): &([String; 2], String)| {
        format!("{name:first$} | {bytes:>second$} | {size}\n")
    };
    rows.iter().map(line).collect()
}

/// Mebibytes, and gibibytes from one up, in the words of the product text.
fn cache_size(bytes: u128) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    let megabytes = format!("~{} MB", grouped(mib.round() as u64));
    if mib < 1024.0 {
        return megabytes;
    }
    let gigabytes = format!("{:.2}", mib / 1024.0);
    let gigabytes = gigabytes.trim_end_matches('0').trim_end_matches('.');
    format!("{megabytes} ({gigabytes} GB)")
}

/// A number with a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_per_token_are_those_of_the_reference() {
        let expected = [24_576, 131_072, 524_288, 131_072, 327_680, 70_272, 262_144, 73_728, 49_152];
        let found: Vec<u64> = bench_models().iter().map(|model| model.bytes_per_token).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn models_are_found_under_every_name() {
        let none = BTreeMap::new();
        let bytes = |name: &str| find(name, &none).unwrap().bytes_per_token;
        assert_eq!(bytes("meta-llama/Meta-Llama-3.1-8B"), 131_072);
        assert_eq!(bytes("deepseek-ai/DeepSeek-R1"), 70_272);
        assert_eq!(bytes("tiny-1b"), 24_576);
        let unknown = find("llama3.1-7b", &none).unwrap_err().to_string();
        assert!(unknown.contains("did you mean llama3.1-8b? known: tiny-1b, "), "{unknown}");
        assert!(!find("zzz", &none).unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn a_configuration_adds_models_and_changes_them() {
        let own = ModelKeys {
            layers: Some(2),
            hidden_dim: Some(100),
            heads: Some(8),
            kv_heads: Some(2),
            ..ModelKeys::default()
        };
        let refusal = |keys: &ModelKeys| ModelPlan::of_keys("own", keys).unwrap_err().to_string();
        assert_eq!(
            refusal(&own),
            "model_configs.own: 8 heads do not divide a hidden_dim of 100\nhint: give kv_dim_per_head"
        );
        let given = ModelKeys { head_dim: Some(16), dtype: Some("fp8".to_owned()), ..own.clone() };
        assert_eq!(ModelPlan::of_keys("own", &given).unwrap().bytes_per_token, 2 * 2 * 2 * 16);
        let typed = ModelKeys { dtype: Some("int4".to_owned()), ..given.clone() };
        assert!(refusal(&typed).contains("unknown variant `int4`, expected one of `float32`"));
        let latent = ModelKeys { attention_type: Some("mla".to_owned()), ..given.clone() };
        assert!(refusal(&latent).ends_with("mla needs \"kv_lora_rank\" and \"qk_rope_head_dim\""));
        let missing = ModelKeys { kv_heads: None, ..given };
        assert!(refusal(&missing).contains("\"kv_heads\" is missing"));
        let deeper = ModelKeys { layers: Some(62), ..ModelKeys::default() };
        let deeper = ModelPlan::of_keys("deepseek-v3", &deeper).unwrap();
        assert_eq!(deeper.bytes_per_token, 62 * 576 * 2);
    }

    #[test]
    fn sizes_read_like_the_product_text() {
        let of = |name: &str| cache_size(u128::from(built_in(name).unwrap().bytes_per_token) * 8192);
        assert_eq!(of("tiny-1b"), "~192 MB");
        assert_eq!(of("llama3.1-8b"), "~1,024 MB (1 GB)");
        assert_eq!(of("llama3.1-70b-instruct"), "~2,560 MB (2.5 GB)");
        assert_eq!(of("llama2-7b"), "~4,096 MB (4 GB)");
    }
}
