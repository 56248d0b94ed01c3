//! The shapes of models: what decides the size of their weights and of their KV. `profiles/models.csv` is the
//! built-in table.

use std::sync::OnceLock;

use crate::{Error, Result};

/// The shape of a model, as its `config.json` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Architecture {
    /// Its name on Hugging Face.
    pub name: String,
    /// Transformer layers.
    pub layers: u32,
    /// Width between layers.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Width inside a dense feed-forward part.
    pub intermediate: u32,
    /// Tokens it knows.
    pub vocab: u32,
    /// Whether input and output share one embedding.
    pub tied_embeddings: bool,
    /// Matrices of a feed-forward part: 3 with a gate, else 2.
    pub mlp_matrices: u32,
    /// Its experts; `None` for a dense model.
    pub experts: Option<Experts>,
    /// Compressed KV (MLA); `None` where keys and values are kept by head.
    pub latent: Option<Latent>,
    /// Longest context it was made for.
    pub max_position: u32,
    about: String,
}

/// The experts of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How many a layer has.
    pub count: u32,
    /// How many see a token.
    pub per_token: u32,
    /// Width inside one.
    pub intermediate: u32,
    /// Width inside the one that sees every token; 0 if there is none.
    pub shared_intermediate: u32,
    /// Layers without experts.
    pub dense_layers: u32,
}

/// The ranks of compressed KV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latent {
    /// Rank of the queries; 0 if they are not compressed.
    pub q_rank: u32,
    /// Rank of keys and values together.
    pub kv_rank: u32,
    /// Part of a head without position.
    pub nope_dim: u32,
    /// Part of a head with position, shared by the heads.
    pub rope_dim: u32,
    /// Width of a value head.
    pub value_dim: u32,
}

impl Architecture {
    /// One line for `wavetank list`.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Numbers kept for a token in all layers.
    pub fn kv_numbers_per_token(&self) -> u32 {
        let per_layer = match self.latent {
            Some(latent) => latent.kv_rank + latent.rope_dim,
            None => 2 * self.kv_heads * self.head_dim,
        };
        self.layers * per_layer
    }

    /// Weights of the attention of one layer.
    pub fn attention_parameters(&self) -> u64 {
        let [hidden, heads, kv_heads, head_dim] =
            [self.hidden, self.heads, self.kv_heads, self.head_dim].map(u64::from);
        let Some(Latent { q_rank, kv_rank, nope_dim, rope_dim, value_dim }) = self.latent else {
            return hidden * head_dim * (2 * heads + 2 * kv_heads);
        };
        let [q_rank, kv_rank, nope, rope, value] =
            [q_rank, kv_rank, nope_dim, rope_dim, value_dim].map(u64::from);
        let queries = match q_rank {
            0 => hidden * heads * (nope + rope),
            rank => hidden * rank + rank * heads * (nope + rope),
        };
        queries + hidden * (kv_rank + rope) + kv_rank * heads * (nope + value) + heads * value * hidden
    }

    /// Weights of one expert, or of a feed-forward part `intermediate` wide.
    pub fn mlp_parameters(&self, intermediate: u32) -> u64 {
        u64::from(self.mlp_matrices) * u64::from(self.hidden) * u64::from(intermediate)
    }

    /// All weights, norms and biases left out.
    pub fn parameters(&self) -> u64 {
        let embedding = u64::from(self.vocab) * u64::from(self.hidden);
        let embeddings = if self.tied_embeddings { embedding } else { 2 * embedding };
        let dense = self.mlp_parameters(self.intermediate);
        let mlps = match self.experts {
            None => u64::from(self.layers) * dense,
            Some(experts) => {
                let mixture = u64::from(experts.count) * self.mlp_parameters(experts.intermediate)
                    + self.mlp_parameters(experts.shared_intermediate)
                    + u64::from(experts.count) * u64::from(self.hidden);
                let dense_layers = u64::from(experts.dense_layers);
                dense_layers * dense + (u64::from(self.layers) - dense_layers) * mixture
            }
        };
        embeddings + u64::from(self.layers) * self.attention_parameters() + mlps
    }

    fn of_row(row: &str) -> Self {
        let mut cells = row.split(',');
        let name = cells.next().unwrap_or_default().to_owned();
        let mut cell = || cells.next().and_then(|cell| cell.parse::<u32>().ok()).expect("a number");
        let [layers, hidden, heads, kv_heads] = [(); 4].map(|()| cell());
        let [head_dim, intermediate, vocab, tied, mlp_matrices] = [(); 5].map(|()| cell());
        let [count, per_token, expert_width, shared_intermediate, dense_layers] = [(); 5].map(|()| cell());
        let [q_rank, kv_rank, nope_dim, rope_dim, value_dim] = [(); 5].map(|()| cell());
        let experts =
            Experts { count, per_token, intermediate: expert_width, shared_intermediate, dense_layers };
        let mut model = Self {
            name,
            layers,
            hidden,
            heads,
            kv_heads,
            head_dim,
            intermediate,
            vocab,
            tied_embeddings: tied == 1,
            mlp_matrices,
            experts: (count > 0).then_some(experts),
            latent: (kv_rank > 0).then_some(Latent { q_rank, kv_rank, nope_dim, rope_dim, value_dim }),
            max_position: cell(),
            about: String::new(),
        };
        let (billions, kv) = (model.parameters() as f64 / 1e9, 2 * model.kv_numbers_per_token());
        model.about =
            format!("{billions:.1} B parameters, {layers} layers, {kv} bytes of KV per token in bf16");
        model
    }
}

const TABLE: &str = include_str!("../../../profiles/models.csv");

/// Every model of the built-in table, alphabetical.
pub fn models() -> &'static [Architecture] {
    static MODELS: OnceLock<Vec<Architecture>> = OnceLock::new();
    MODELS.get_or_init(|| TABLE.lines().skip(1).map(Architecture::of_row).collect())
}

/// The model called `name`: as on Hugging Face, with or without its owner, and whatever it was tuned for.
pub fn model(name: &str) -> Result<&'static Architecture> {
    let asked = plain(name);
    models().iter().find(|model| plain(&model.name) == asked).ok_or_else(|| {
        Error::usage(format!("unknown model \"{name}\"")).hint("known: see `wavetank list models`")
    })
}

/// A name without what does not change a model's shape.
fn plain(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default().to_lowercase();
    let mut name = name.strip_prefix("meta-").unwrap_or(&name);
    while let Some(shorter) = ["-instruct", "-chat", "-it", "-hf", "-fp8", "-base", "-bf16"]
        .iter()
        .find_map(|tail| name.strip_suffix(tail))
    {
        name = shorter;
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_give_the_published_sizes() {
        for (model, row) in models().iter().zip(TABLE.lines().skip(1)) {
            let published: f64 = row.split(',').nth(21).unwrap().parse().unwrap();
            let computed = model.parameters() as f64 / 1e9;
            assert!((computed / published - 1.0).abs() < 0.025, "{}: {computed} {published}", model.name);
        }
        assert!(models().is_sorted_by_key(|model| &model.name));
    }

    #[test]
    fn names_are_found_as_people_write_them() {
        let kv = |name: &str| 2 * model(name).unwrap().kv_numbers_per_token();
        assert_eq!(kv("meta-llama/Llama-3.1-8B-Instruct"), 131_072);
        assert_eq!(kv("llama-3.1-70b"), 327_680);
        assert_eq!(kv("deepseek-ai/DeepSeek-V3"), 70_272);
        assert_eq!(kv("Qwen3-30B-A3B-Instruct-FP8"), 98_304);
        assert!(model("gpt-9").unwrap_err().to_string().contains("wavetank list models"));
        let mut names: Vec<String> = models().iter().map(|model| plain(&model.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), models().len());
    }
}
