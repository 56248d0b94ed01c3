//! The shape of a model from its Hugging Face `config.json`.

use std::path::Path;

use serde_json::{Map, Value};
use wavetank_model::{Architecture, Error, Experts, Latent, Result};

/// Families whose feed-forward part has no gate.
const WITHOUT_GATE: [&str; 8] =
    ["bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "opt", "phi", "starcoder2"];

/// Reads the file; errors name it and the key.
pub(super) fn read(path: &Path) -> Result<Architecture> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::io(path, error).hint("\"config\" is the path of a model's config.json"))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| {
        Error::input(format!("not JSON: {error}")).at(format!("{place}:{}", error.line()))
    })?;
    // Models that also see images keep the shape of their text part inside.
    let keys = json.get("text_config").unwrap_or(&json).as_object();
    let keys = keys.ok_or_else(|| Error::input("not an object").at(place.clone()))?;
    architecture(&place, keys).map_err(|message| {
        Error::input(message).at(place.clone()).hint("the file must be a model's own config.json")
    })
}

fn architecture(name: &str, keys: &Map<String, Value>) -> Result<Architecture, String> {
    let optional = |key: &str| match keys.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            number
                .filter(|&number| number < 1 << 24)
                .map(Some)
                .ok_or_else(|| format!("\"{key}\" must be a whole number below 16777216, not {value}"))
        }
    };
    let or = |key: &str, other: u32| Ok::<u32, String>(optional(key)?.unwrap_or(other));
    let needed = |key: &str| match optional(key)? {
        Some(number) if number > 0 => Ok(number),
        _ => Err(format!("\"{key}\" is missing or 0")),
    };
    let family = keys.get("model_type").and_then(Value::as_str).unwrap_or_default();
    let mut model = Architecture::default();
    model.name = name.to_owned();
    model.layers = needed("num_hidden_layers")?;
    model.hidden = needed("hidden_size")?;
    model.heads = needed("num_attention_heads")?;
    model.kv_heads = or("num_key_value_heads", model.heads)?.max(1);
    model.head_dim = or("head_dim", model.hidden / model.heads)?;
    model.intermediate = or("intermediate_size", 4 * model.hidden)?;
    model.vocab = needed("vocab_size")?;
    model.tied_embeddings = keys.get("tie_word_embeddings").and_then(Value::as_bool).unwrap_or(false);
    model.mlp_matrices = if WITHOUT_GATE.contains(&family) { 2 } else { 3 };
    model.max_position = or("max_position_embeddings", 0)?;
    let mut count = 0;
    for key in ["num_local_experts", "n_routed_experts", "num_experts"] {
        count = count.max(or(key, 0)?);
    }
    if count > 0 {
        let intermediate = or("moe_intermediate_size", model.intermediate)?;
        let shared = or("n_shared_experts", 0)? * intermediate;
        model.experts = Some(Experts {
            count,
            per_token: needed("num_experts_per_tok")?.min(count),
            intermediate,
            shared_intermediate: or("shared_expert_intermediate_size", shared)?,
            dense_layers: or("first_k_dense_replace", 0)?.min(model.layers),
        });
    }
    if let Some(kv_rank) = optional("kv_lora_rank")? {
        model.latent = Some(Latent {
            q_rank: or("q_lora_rank", 0)?,
            kv_rank,
            nope_dim: needed("qk_nope_head_dim")?,
            rope_dim: needed("qk_rope_head_dim")?,
            value_dim: needed("v_head_dim")?,
        });
    }
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<Architecture, String> {
        architecture("m", serde_json::from_str::<Value>(json).unwrap().as_object().unwrap())
    }

    #[test]
    fn a_config_has_the_shape_of_the_built_in_row() {
        let model = parsed(
            r#"{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 128256,
            "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336}"#,
        )
        .unwrap();
        let row = wavetank_model::model("llama-3.1-8b").unwrap();
        assert_eq!(model.parameters(), row.parameters());
        assert_eq!(model.kv_numbers_per_token(), row.kv_numbers_per_token());
        let mixture = parsed(
            r#"{"num_hidden_layers": 61, "hidden_size": 7168, "vocab_size": 129280,
            "num_attention_heads": 128,
            "intermediate_size": 18432, "n_routed_experts": 256, "num_experts_per_tok": 8,
            "moe_intermediate_size": 2048, "n_shared_experts": 1, "first_k_dense_replace": 3,
            "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "v_head_dim": 128}"#,
        )
        .unwrap();
        assert_eq!(mixture.parameters(), wavetank_model::model("DeepSeek-V3").unwrap().parameters());
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        assert_eq!(parsed("{}").unwrap_err(), "\"num_hidden_layers\" is missing or 0");
        let error = parsed(r#"{"num_hidden_layers": -3}"#).unwrap_err();
        assert!(error.starts_with("\"num_hidden_layers\" must be a whole number"), "{error}");
    }
}
