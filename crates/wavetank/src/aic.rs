//! The reference's silicon timing: what its `aic_*` keys and `--aic-*` flags describe, as a timing model of
//! ours.
//!
//! A built-in profile of the same model, machine, parallelism and number types is used where there is one;
//! else a grid that the user's own AISimulate gives (`aic_export`).

use serde_json::{Map, Value};
use wavetank_model::{Architecture, Error, Result, model};
use wavetank_sim::timing::{BuiltIn, TimingConfig, profiles};

use crate::aic_export::{Exporter, grid_of};
use crate::args::ReplayArgs;
use crate::deployment::{Deployment, Dtype};
use crate::json_arg::JsonArg;

/// The timing model that the `aic_*` keys of `object` describe; warnings go to `notes`.
pub(crate) fn timing(object: &Map<String, Value>, notes: &mut Vec<String>) -> Result<TimingConfig> {
    timing_through(&Exporter::of_environment(), object, notes)
}

fn timing_through(
    exporter: &Exporter,
    object: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<TimingConfig> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    for key in ["aic_backend", "aic_system", "aic_model_path"] {
        if text(key).is_none() {
            return Err(Error::usage(format!("\"{key}\" is missing"))
                .hint("\"aic\" timing needs aic_backend, aic_system and aic_model_path"));
        }
    }
    let backend = text("aic_backend").unwrap_or_default();
    let split = ["aic_attention_dp_size", "aic_moe_tp_size", "aic_moe_ep_size"]
        .into_iter()
        .find(|key| object.get(*key).and_then(Value::as_u64).unwrap_or(1) > 1);
    let asked = Deployment::of(object).ok().filter(|_| backend == "vllm" && split.is_none());
    let found = asked.and_then(|asked| profiles().iter().find(|built_in| is_of(built_in, &asked)));
    let Some(found) = found else { return exported(exporter, object, notes) };
    for key in ["aic_comm_dtype", "aic_fmha_dtype", "aic_moe_dtype"] {
        if text(key).is_some() {
            notes.push(format!("\"{key}\" has no effect: {PROFILE_TYPES}"));
        }
    }
    let version = text("aic_backend_version").filter(|version| !found.profile.engine.contains(version));
    if let Some(version) = version {
        notes.push(format!(
            "\"aic_backend_version\" {version} has no effect: {} was measured with {}",
            found.name, found.profile.engine
        ));
    }
    let parameters = Map::from_iter([("profile".to_owned(), Value::from(found.name))]);
    Ok(TimingConfig { name: "grid".to_owned(), parameters })
}

const PROFILE_TYPES: &str = "built-in profiles differ in the types of weights and KV only";

/// Engines that the exporting package knows.
const BACKENDS: [&str; 3] = ["sglang", "trtllm", "vllm"];

/// A grid through the user's Python, which knows more models and machines than are built in.
fn exported(
    exporter: &Exporter,
    object: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<TimingConfig> {
    if !BACKENDS.iter().any(|backend| object["aic_backend"] == *backend) {
        return Err(not_built_in(object, &format!("known backends: {}", BACKENDS.join(", "))));
    }
    if object.get("aic_attention_dp_size").and_then(Value::as_u64).is_some_and(|ranks| ranks > 1) {
        return Err(not_built_in(object, "ranks of attention are not simulated"));
    }
    let mut keys: Map<String, Value> =
        given(object).map(|(key, value)| (key.clone(), value.clone())).collect();
    // As in the estimate of the memory, KV is as wide as activations unless the keys say otherwise.
    let kv = keys.entry("aic_kv_cache_dtype").or_insert(Value::from("auto"));
    if kv.as_str() == Some("auto") {
        *kv = Value::from("bf16");
    }
    let found = exporter.grid(&keys).map_err(|why| not_built_in(object, &why))?;
    let (origin, path) = (found.origin, found.path);
    notes.push(format!("timing of {} from {}: {}", origin.engine, origin.package, path.display()));
    let mut config = grid_of(&path);
    // The tables hold kernels only, as those of the built-in profiles, which are all of vLLM.
    let vllm = profiles().first().filter(|_| keys["aic_backend"] == "vllm");
    if let Some(built_in) = vllm {
        config.parameters.insert("host_ms".to_owned(), Value::from(built_in.profile.host_ms));
    }
    Ok(config)
}

fn given(object: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.iter().filter(|(key, value)| key.starts_with("aic_") && !value.is_null())
}

fn is_of(built_in: &BuiltIn, asked: &Deployment) -> bool {
    let profile = &built_in.profile;
    let dtype = |name: &str, asked: Dtype| name == asked.name();
    model(&profile.model).is_ok_and(|measured| same_shape(measured, asked.model))
        && profile.gpu == asked.gpu.name
        && profile.tp == asked.tp
        && dtype(&profile.weight_dtype, asked.weights)
        && dtype(&profile.kv_dtype, asked.kv)
}

/// Models that cost the same, such as two trainings of one size.
fn same_shape(a: &Architecture, b: &Architecture) -> bool {
    let shape = |m: &Architecture| {
        ([m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.intermediate, m.vocab], m.experts, m.latent)
    };
    shape(a) == shape(b)
}

fn not_built_in(object: &Map<String, Value>, why: &str) -> Error {
    let asked: Vec<String> =
        given(object).map(|(key, value)| format!("{key} {}", value.to_string().replace('"', ""))).collect();
    let known: Vec<_> = profiles().iter().map(|built_in| built_in.name).collect();
    let message = format!("no built-in profile of {}, and none could be exported: {why}", asked.join(", "));
    Error::unsupported(message).hint(format!(
        "built in: {}; others: AISimulate (pip install aisimulate) in the Python that WAVETANK_PYTHON names, \
         or python3; or a CSV of passes, --timing grid:FILE.csv; or estimate, --timing \
         roofline:model=M,gpu=G,tp=N",
        known.join(", ")
    ))
}

/// The router's prefill load model: the `--aic-*` flags and `"router_prefill_load_model": "aic"` of
/// `kv_router` need each other.
pub(crate) fn router_model(
    args: &ReplayArgs,
    router_mode: &str,
    router: &JsonArg,
    notes: &mut Vec<String>,
) -> Result<Option<TimingConfig>> {
    let model = router.object.get("router_prefill_load_model").and_then(Value::as_str);
    let asked = model == Some("aic") && router_mode == "kv_router";
    match (asked, args.aic.first()) {
        (false, None) => return Ok(None),
        (false, Some((flag, _))) => {
            return Err(Error::usage("belongs to the \"aic\" prefill load model")
                .at(*flag)
                .hint("--router-mode kv_router --router-config '{\"router_prefill_load_model\": \"aic\"}'"));
        }
        (true, _) => {}
    }
    for needed in ["--aic-backend", "--aic-system", "--aic-model-path"] {
        if !args.aic.iter().any(|(flag, _)| *flag == needed) {
            return Err(Error::usage("is missing").at(needed).hint(
                "the \"aic\" prefill load model needs --aic-backend, --aic-system and --aic-model-path",
            ));
        }
    }
    if let Some((flag, _)) = args.aic.iter().find(|(flag, _)| flag.starts_with("--aic-nextn")) {
        return Err(Error::unsupported("speculative decoding is not available in this release").at(*flag));
    }
    timing(&keys(&args.aic)?, notes).map(Some)
}

/// Flags as the keys of the same names.
fn keys(flags: &[(&'static str, String)]) -> Result<Map<String, Value>> {
    let key = |(flag, typed): &(&'static str, String)| {
        let name = flag.trim_start_matches('-').replace('-', "_");
        let value = if name.ends_with("_size") {
            let wrong = |_| Error::usage(format!("must be a whole number, not \"{typed}\"")).at(*flag);
            Value::from(typed.parse::<u32>().map_err(wrong)?)
        } else {
            Value::from(typed.as_str())
        };
        Ok((name, value))
    };
    flags.iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(json: &str) -> Result<String> {
        let object: Map<String, Value> = serde_json::from_str(json).unwrap();
        timing_through(&Exporter::absent(), &object, &mut Vec::new())
            .map(|found| found.parameters["profile"].as_str().unwrap().to_owned())
    }

    #[test]
    fn keys_lead_to_built_in_profiles() {
        for (model, more, name) in [
            ("meta-llama/Llama-3.1-8B-Instruct", "", "llama31-8b-h200-tp1-bf16"),
            ("nvidia/Llama-3.1-8B-Instruct-FP8", "", "llama31-8b-h200-tp1-fp8-kv-bf16"),
            (
                "meta-llama/Llama-3.3-70B-Instruct",
                r#","aic_tp_size":8,"aic_gemm_dtype":"fp8","aic_kv_cache_dtype":"fp8""#,
                "llama31-70b-h200-tp8-fp8",
            ),
        ] {
            let json = format!(
                r#"{{"aic_backend":"vllm","aic_system":"h200_sxm","aic_model_path":"{model}"{more}}}"#
            );
            assert_eq!(resolved(&json).unwrap(), name);
        }
    }

    #[test]
    fn what_is_not_built_in_is_said_with_what_is() {
        let json = r#"{"aic_backend":"sglang","aic_system":"h200_sxm","aic_model_path":"llama-3.1-8b"}"#;
        let message = resolved(json).unwrap_err().to_string();
        for part in [
            "aic_backend sglang",
            "llama31-8b-h200-tp1-bf16",
            "pip install aisimulate",
            "roofline",
            "no python3",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert!(resolved(r#"{"aic_backend":"vllm"}"#).unwrap_err().to_string().contains("\"aic_system\""));
    }
}
