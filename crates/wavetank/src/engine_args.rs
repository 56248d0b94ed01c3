//! The JSON of `--extra-engine-args` (spec/engine.md 2): every key is a row of [`KEYS`].

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result, accelerator, find, model};
use wavetank_sim::timing::{self, Pricing, TimingConfig};
use wavetank_sim::{EngineConfig, PreemptionMode, TransferMode, WorkerRole, engines, queues};

use crate::deployment::{Deployment, Dtype};
use crate::json_arg::JsonArg;
use crate::keys::{
    self, Table, at_least_one, boolean, bound, expected, fraction, inert, limit, may_set, not_negative,
    object, only, port, sets, text, uint, unavailable,
};
use crate::{aic, sglang_args, tiers, timing_arg};

type Key = keys::Key<EngineConfig>;

const TABLE: Table<EngineConfig> = Table { kind: "engine-args", keys: KEYS };

/// Builds the engine from typed arguments and the `tiers` of flags; warnings go to `notes`.
pub(crate) fn engine(typed: &JsonArg, tiers: &[Value], notes: &mut Vec<String>) -> Result<EngineConfig> {
    let mut config = EngineConfig::default();
    TABLE.read(typed, &mut config, notes)?;
    let given = |key: &str| typed.object.get(key).is_some_and(|value| !value.is_null());
    if config.engine_type == "sglang" {
        sglang_args::settle(&mut config, typed)?;
        if config.block_size == 1 && !given("num_gpu_blocks") {
            notes.push(format!(
                "{}: pages of one token, so the cache holds {} tokens; \"block_size\" or \"num_gpu_blocks\" \
                 make it larger",
                typed.place, config.num_gpu_blocks
            ));
        }
    }
    let idle: &[&str] = match config.engine_type.as_str() {
        "sglang" => {
            &["async_scheduling", "enable_chunked_prefill", "max_num_batched_tokens", "preemption_mode"]
        }
        _ => &["sglang"],
    };
    for key in idle.iter().filter(|key| given(key)) {
        notes.push(format!("{}: \"{key}\" has no effect: the engine is {}", typed.place, config.engine_type));
    }
    if let Some(name) = typed.object.get("model").and_then(Value::as_str)
        && !given("kv_bytes_per_token")
    {
        let dtype = typed.object.get("kv_dtype").and_then(Value::as_str).unwrap_or("bf16");
        let bytes = Dtype::of(dtype).map_err(Error::usage)?.bytes();
        config.transfer.kv_bytes_per_token = bytes * model(name)?.kv_numbers_per_token();
    }
    config.tiers = tiers::of(typed, tiers, &config, notes)?;
    settle_timing(&mut config, typed, notes)?;
    settle_capacity(&mut config, typed, notes)?;
    let transfer = ["kv_bytes_per_token", "kv_transfer_bandwidth", "kv_transfer_timing_mode", "model"];
    let stays = config.worker_type == WorkerRole::Aggregated;
    let (sized, tiered) = (is_estimated(typed), !config.tiers.is_empty());
    let used = |key: &str| match key {
        "model" => sized || tiered,
        "kv_bytes_per_token" => tiered,
        _ => false,
    };
    for key in transfer.iter().filter(|key| stays && given(key) && !used(key)) {
        notes.push(format!("{}: \"{key}\" has no effect: {DISAGGREGATED}", typed.place));
    }
    let receives = config.worker_type == WorkerRole::Decode;
    for key in transfer.iter().filter(|key| receives && given(key) && !(sized && **key == "model")) {
        notes.push(format!("{}: \"{key}\" has no effect: prefill workers send", typed.place));
    }
    Ok(config)
}

/// Measured models are of engines that schedule ahead: so do theirs, unless the user says otherwise.
pub(crate) fn settle_scheduling(
    config: &mut EngineConfig,
    typed: &JsonArg,
    notes: &mut Vec<String>,
) -> Result<()> {
    if typed.object.get("async_scheduling").is_none_or(Value::is_null) {
        let ahead = config.timing.pricing()? == Pricing::Fused
            && engines::entry(&config.engine_type).is_ok_and(|engine| engine.schedules_ahead);
        config.async_scheduling = ahead && config.tiers.is_empty();
        if ahead && !config.tiers.is_empty() {
            let note = "with tiers no pass is scheduled ahead, as engines of measured timing models do";
            notes.push(format!("{}: {note}", typed.place));
        }
    }
    Ok(())
}

/// A cache that the GPU of the profile could not hold is worth a word.
pub(crate) fn note_capacity(config: &EngineConfig, place: &str, notes: &mut Vec<String>) {
    let name = config.timing.parameters.get("profile").and_then(Value::as_str);
    let built_in =
        timing::profiles().iter().find(|row| config.timing.name == "grid" && name == Some(row.name));
    let Some(timing::BuiltIn { profile, .. }) = built_in else { return };
    let object = json!({
        "model": profile.model, "gpu": profile.gpu, "tp": profile.tp,
        "weight_dtype": profile.weight_dtype, "kv_dtype": profile.kv_dtype,
    });
    let fits = object
        .as_object()
        .and_then(|object| Deployment::of(object).ok())
        .and_then(|deployment| deployment.num_gpu_blocks(USUAL_SHARE, config.block_size).ok());
    if let Some(fits) = fits.filter(|&fits| fits < config.num_gpu_blocks) {
        notes.push(format!(
            "{place}: {} blocks of {} tokens are more KV than the GPUs of the profile hold (about {fits})",
            config.num_gpu_blocks, config.block_size
        ));
    }
}

/// The part of a GPU's memory an engine takes.
const USUAL_SHARE: f64 = 0.9;

/// The keys that choose a timing model.
pub(crate) const TIMING: [&str; 3] = ["aic_backend", "planner_profile_data", "timing"];

/// The timing model under its three names.
fn settle_timing(config: &mut EngineConfig, typed: &JsonArg, notes: &mut Vec<String>) -> Result<()> {
    let given = |key: &&str| typed.object.get(*key).is_some_and(|value| !value.is_null());
    let chosen: Vec<&str> = TIMING.into_iter().filter(given).collect();
    if let [first, second, ..] = chosen[..] {
        return Err(
            Error::usage(format!("\"{first}\" cannot be combined with \"{second}\"")).at(typed.place.clone())
        );
    }
    let described = typed.object.iter().find(|(key, value)| key.starts_with("aic_") && !value.is_null());
    match (given(&"aic_backend"), described) {
        (true, _) => {
            let mut said = Vec::new();
            config.timing = aic::timing(&typed.object, &mut said).map_err(|error| placed(error, typed))?;
            notes.extend(said.into_iter().map(|note| format!("{}: {note}", typed.place)));
            Ok(())
        }
        (false, Some((key, _))) => {
            notes.push(format!("{}: \"{key}\" has no effect without \"aic_backend\"", typed.place));
            Ok(())
        }
        (false, None) => Ok(()),
    }
}

/// Whether the number of blocks comes from the memory of the GPU.
fn is_estimated(typed: &JsonArg) -> bool {
    let given = |key: &str| typed.object.get(key).filter(|value| !value.is_null());
    match given("num_gpu_blocks") {
        Some(value) => value == AUTO,
        None => given("aic_backend").is_some(),
    }
}

fn settle_capacity(config: &mut EngineConfig, typed: &JsonArg, notes: &mut Vec<String>) -> Result<()> {
    let (used, other, usual) = match config.engine_type.as_str() {
        "sglang" => ("mem_fraction_static", "gpu_memory_utilization", 0.88),
        _ => ("gpu_memory_utilization", "mem_fraction_static", USUAL_SHARE),
    };
    let estimated = is_estimated(typed);
    for (key, idle) in [(used, !estimated), (other, true), ("gpu", !estimated), ("tp", !estimated)] {
        if idle && typed.object.contains_key(key) {
            notes.push(format!("{}: \"{key}\" has no effect: {CAPACITY}", typed.place));
        }
    }
    if !estimated {
        return Ok(());
    }
    let share = typed.object.get(used).and_then(Value::as_f64).unwrap_or(usual);
    let blocks = Deployment::of(&typed.object)
        .and_then(|deployment| deployment.num_gpu_blocks(share, config.block_size))
        .map_err(|error| {
            let message = format!("\"num_gpu_blocks\" cannot be estimated: {error}");
            let hint =
                "it takes \"gpu\", \"model\", \"tp\", \"weight_dtype\", \"kv_dtype\"; or give a number";
            Error::usage(message.replace("\nhint", "; hint")).at(typed.place.clone()).hint(hint)
        })?;
    notes.push(format!(
        "{}: \"num_gpu_blocks\" is {blocks}, estimated from {share} of the memory",
        typed.place
    ));
    config.num_gpu_blocks = blocks;
    Ok(())
}

fn placed(error: Error, typed: &JsonArg) -> Error {
    Error::new(error.kind(), error.to_string()).at(typed.place.clone())
}

const AUTO: &str = "auto";
const LIVE: &str = "it concerns live workers, not replay";
const DISAGGREGATED: &str = "it concerns disaggregated workers";
const CAPACITY: &str = "it is for num_gpu_blocks \"auto\"";

/// Every key, alphabetical within its kind. `wavetank list engine-args` prints this table.
pub(crate) const KEYS: &[Key] = &[
    sets(
        "async_scheduling",
        "whether vllm schedules a pass while the one before it runs (as the timing model: measured ones do)",
        |config, value| {
            config.async_scheduling = boolean(value)?;
            Ok(())
        },
    ),
    sets("block_size", "tokens per KV block; default and 0: 64 for vllm, 1 for sglang", |config, value| {
        config.block_size = match uint(value)? {
            0 => EngineConfig::default().block_size,
            tokens => tokens,
        };
        Ok(())
    }),
    sets("decode_speedup_ratio", "divides decode time further (1.0)", |config, value| {
        config.decode_speedup_ratio = not_negative(value)?;
        Ok(())
    }),
    only("dp_size", "data-parallel ranks; must be 1", |value| match uint(value)? {
        1 => Ok(()),
        ranks => Err(format!("must be 1 in replay, not {ranks}")),
    }),
    sets("enable_chunked_prefill", "whether a prompt may span passes (true)", |config, value| {
        config.enable_chunked_prefill = boolean(value)?;
        Ok(())
    }),
    sets("enable_prefix_caching", "whether requests share computed blocks (true)", |config, value| {
        config.enable_prefix_caching = boolean(value)?;
        Ok(())
    }),
    sets("engine_type", "a row of `wavetank list engines` (vllm)", |config, value| {
        config.engine_type = engine_type(text(value)?)?;
        Ok(())
    }),
    sets("gpu", "a row of `wavetank list gpus`, for num_gpu_blocks \"auto\"", |_, value| {
        accelerator(text(value)?).map(drop).map_err(flat)
    }),
    may_set(
        "gpu_memory_utilization",
        "share of the memory, for num_gpu_blocks \"auto\" (0.9)",
        |_, value| fraction(value),
    ),
    sets("is_decode", "older form of worker_type decode", |config, value| {
        role_flag(config, value, WorkerRole::Decode)
    }),
    sets("is_prefill", "older form of worker_type prefill", |config, value| {
        role_flag(config, value, WorkerRole::Prefill)
    }),
    sets(
        "kv_bytes_per_token",
        "bytes of KV that move to a decode worker or a tier, per token (that of model, in bf16, or 0)",
        |config, value| {
            config.transfer.kv_bytes_per_token = uint(value)?;
            Ok(())
        },
    ),
    sets("kv_dtype", "bf16 or fp8 (bf16)", |_, value| Dtype::of(text(value)?).map(drop)),
    sets("kv_transfer_bandwidth", "gigabytes per second from prefill to decode workers", |config, value| {
        config.transfer.kv_transfer_bandwidth = not_negative(value)?;
        Ok(())
    }),
    sets("kv_transfer_timing_mode", "what moves: full_prompt or destination_missing", |config, value| {
        config.transfer.kv_transfer_timing_mode = match text(value)? {
            "full_prompt" => TransferMode::FullPrompt,
            "destination_missing" => TransferMode::DestinationMissing,
            other => {
                return Err(format!("unknown mode \"{other}\"; known: destination_missing, full_prompt"));
            }
        };
        Ok(())
    }),
    limit(
        "max_model_len",
        "prompts this long are rejected, outputs end there (no limit)",
        |config, value| {
            config.max_model_len = bound(value)?;
            Ok(())
        },
    ),
    limit("max_num_batched_tokens", "tokens per pass (8192); null: no limit", |config, value| {
        config.max_num_batched_tokens = bound(value)?;
        Ok(())
    }),
    limit("max_num_seqs", "running requests (256); null: no limit", |config, value| {
        config.max_num_seqs = bound(value)?;
        Ok(())
    }),
    may_set("mem_fraction_static", "share of the memory, for num_gpu_blocks \"auto\" (0.88)", |_, value| {
        fraction(value)
    }),
    sets("model", "a row of `wavetank list models`; gives kv_bytes_per_token", |_, value| {
        model(text(value)?).map(drop).map_err(flat)
    }),
    sets(
        "num_gpu_blocks",
        "KV blocks of a worker (16384); \"auto\": what fits, from gpu, model, tp and types",
        |config, value| {
            if value != AUTO {
                config.num_gpu_blocks = at_least_one(value)?;
            }
            Ok(())
        },
    ),
    may_set("planner_profile_data", "path of an .npz profile: the timing model npz", |config, value| {
        let parameters = Map::from_iter([("path".to_owned(), Value::from(text(value)?))]);
        config.timing = TimingConfig { name: "npz".to_owned(), parameters };
        config.timing.build().map(drop).map_err(flat)
    }),
    sets("preemption_mode", "who gives up its blocks: lifo or fifo (lifo)", |config, value| {
        config.preemption_mode = match text(value)? {
            "lifo" => PreemptionMode::Lifo,
            "fifo" => PreemptionMode::Fifo,
            other => return Err(format!("unknown mode \"{other}\"; known: fifo, lifo")),
        };
        Ok(())
    }),
    sets("speedup_ratio", "divides all pass times; 0 leaves them as they are (1.0)", |config, value| {
        config.speedup_ratio = not_negative(value)?;
        Ok(())
    }),
    may_set(
        tiers::KEY,
        "tiers behind the GPU's memory, from the fastest: texts as of --tier, or tables",
        |_, value| expected(value, value.as_array(), "a list of texts and tables").map(drop),
    ),
    sets(
        "timing",
        "a row of `wavetank list timing`, or {\"name\": row, parameters} (polynomial)",
        |config, value| {
            config.timing = timing_arg::of_json(value)?;
            Ok(())
        },
    ),
    sets("tp", "GPUs of a worker, for num_gpu_blocks \"auto\" (1)", |_, value| at_least_one(value).map(drop)),
    sets("weight_dtype", "bf16 or fp8, for num_gpu_blocks \"auto\" (bf16)", |_, value| {
        Dtype::of(text(value)?).map(drop)
    }),
    sets("worker_type", "aggregated, or prefill and decode for a pair of pools", |config, value| {
        config.worker_type = match text(value)? {
            "aggregated" => WorkerRole::Aggregated,
            "prefill" => WorkerRole::Prefill,
            "decode" => WorkerRole::Decode,
            other => return Err(format!("unknown role \"{other}\"; known: aggregated, decode, prefill")),
        };
        Ok(())
    }),
    inert("bootstrap_port", port, LIVE),
    inert("enable_local_indexer", |value| boolean(value).map(drop), LIVE),
    inert("free_gpu_memory_fraction", fraction, CAPACITY),
    inert("handoff_session_timeout_ms", |value| uint(value).map(drop), DISAGGREGATED),
    inert("has_perf_model", |_| Ok(()), "it is a mark of the reference's own round trips"),
    inert("reasoning", |value| object(value).map(drop), "it changes token ids of live output, not time"),
    sets("router_queue_policy", "overrides the key of the same name in --router-config", |_, value| {
        queues::policy(text(value)?).map(drop).map_err(flat)
    }),
    sets("sglang", "settings of SGLang: a row of `wavetank list sglang-args` each", |config, value| {
        sglang_args::set(&mut config.sglang, object(value)?)
    }),
    sets("startup_time", "seconds until a worker that --autoscale adds is ready (0)", |_, value| {
        not_negative(value).map(drop)
    }),
    inert("zmq_kv_events_port", port, LIVE),
    inert("zmq_replay_port", port, LIVE),
    may_set("aic_attention_dp_size", "ranks of attention", |_, value| at_least_one(value).map(drop)),
    may_set(
        "aic_backend",
        "engine whose silicon timing is used: a built-in profile, or exported by AISimulate",
        |_, value| text(value).map(drop),
    ),
    may_set("aic_backend_version", "its version", |_, value| text(value).map(drop)),
    may_set("aic_comm_dtype", "type of communication, in an exported grid", |_, value| text(value).map(drop)),
    may_set("aic_fmha_dtype", "type of attention, in an exported grid", |_, value| text(value).map(drop)),
    may_set("aic_gemm_dtype", "type of the weights (that of the model)", |_, value| text(value).map(drop)),
    may_set("aic_kv_cache_dtype", "type of the KV (bf16)", |_, value| text(value).map(drop)),
    may_set("aic_model_path", "model, by its name on Hugging Face", |_, value| text(value).map(drop)),
    may_set("aic_moe_dtype", "type of the experts, in an exported grid", |_, value| text(value).map(drop)),
    may_set("aic_moe_ep_size", "ranks that split experts", |_, value| at_least_one(value).map(drop)),
    may_set("aic_moe_tp_size", "GPUs that split an expert", |_, value| at_least_one(value).map(drop)),
    unavailable("aic_mtp_seed", "speculative decoding"),
    unavailable("aic_nextn", "speculative decoding"),
    unavailable("aic_nextn_accept_rates", "speculative decoding"),
    may_set("aic_system", "GPU, a row of `wavetank list gpus`", |_, value| text(value).map(drop)),
    may_set("aic_tp_size", "GPUs of a worker (1)", |_, value| at_least_one(value).map(drop)),
    speed("bandwidth_g1_to_g2_gbps", "gigabytes per second to the tier g2 (32); 0: no limit"),
    speed("bandwidth_g2_to_g1_gbps", "gigabytes per second from the tier g2 (32); 0: no limit"),
    speed("bandwidth_g2_to_g3_gbps", "gigabytes per second to the tier g3 (10); 0: no limit"),
    speed("bandwidth_g2_to_g4_gbps", "gigabytes per second to the tier g4 (4); 0: no limit"),
    speed("bandwidth_g3_to_g2_gbps", "gigabytes per second from the tier g3 (10); 0: no limit"),
    speed("bandwidth_g4_to_g2_gbps", "gigabytes per second from the tier g4 (4); 0: no limit"),
    may_set("enable_g4_storage", "a tier g4 behind all, shared and without end (false)", |_, value| {
        boolean(value).map(drop)
    }),
    may_set("num_g2_blocks", "blocks of a tier g2 in each worker's host memory (none)", |_, value| {
        at_least_one(value).map(drop)
    }),
    may_set("num_g3_blocks", "blocks of a tier g3 on each worker's disk, behind g2 (none)", |_, value| {
        at_least_one(value).map(drop)
    }),
    may_set(
        "offload_batch_size",
        "blocks of g2 that move at once: up to 8, or more as one (32)",
        |_, value| at_least_one(value).map(drop),
    ),
    unavailable("response_replay_trace_path", "scripted output"),
    unavailable("trtllm", "the TensorRT-LLM engine"),
];

/// A bandwidth of a tier; what is not above 0 is no limit.
const fn speed(name: &'static str, about: &'static str) -> Key {
    may_set(name, about, |_, value| {
        expected(value, value.as_f64().filter(|gbps| gbps.is_finite()), "a number").map(drop)
    })
}

fn engine_type(name: &str) -> Result<String, String> {
    if name == "trtllm" {
        return Err(format!("the \"{name}\" engine is not available in this release"));
    }
    let entry = find("engine", engines::ALL, name).map_err(flat)?;
    Ok(entry.name.to_owned())
}

/// An error on one line.
fn flat(error: Error) -> String {
    error.to_string().replace('\n', "; ")
}

fn role_flag(config: &mut EngineConfig, value: &Value, role: WorkerRole) -> Result<(), String> {
    match (boolean(value)?, config.worker_type) {
        (false, _) => Ok(()),
        (true, WorkerRole::Aggregated) => {
            config.worker_type = role;
            Ok(())
        }
        (true, other) if other == role => Ok(()),
        (true, _) => Err("a worker has one role".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_arg;

    fn parse(json: &str) -> (Result<EngineConfig>, Vec<String>) {
        let mut notes = Vec::new();
        let typed = json_arg::read("--extra-engine-args", Some(json)).unwrap();
        (engine(&typed, &[], &mut notes), notes)
    }

    fn message(json: &str) -> String {
        parse(json).0.expect_err(json).to_string()
    }

    #[test]
    fn every_offender_is_listed() {
        let error = message(r#"{"blok_size":64,"num_gpu_blocks":0,"speedup_ratio":"fast","max_num_seqs":8}"#);
        for part in [
            "unknown key \"blok_size\"",
            "\"num_gpu_blocks\": must be at least 1",
            "\"speedup_ratio\": must be a number",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("max_num_seqs"), "{error}");
    }

    #[test]
    fn values_reach_the_engine() {
        let json = r#"{"block_size":16,"max_num_seqs":null,"preemption_mode":"fifo",
            "enable_chunked_prefill":false,"timing":{"name":"fixed","prefill_ms":2,"decode_ms":1}}"#;
        let config = parse(json).0.unwrap();
        assert_eq!((config.block_size, config.max_num_seqs), (16, None));
        assert_eq!(config.preemption_mode, PreemptionMode::Fifo);
        assert_eq!(config.timing.name, "fixed");
        assert!(!config.enable_chunked_prefill);
        assert_eq!(parse(r#"{"block_size":0}"#).0.unwrap().block_size, 64);
    }

    #[test]
    fn what_changes_nothing_is_said() {
        let (config, notes) =
            parse(r#"{"enable_local_indexer":true,"planner_profile_data":null,"bootstrap_port":null}"#);
        assert_eq!(config.unwrap(), EngineConfig::default());
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("\"enable_local_indexer\" has no effect"));
        let (_, notes) = parse(r#"{"kv_bytes_per_token":1000}"#);
        assert!(notes[0].contains("\"kv_bytes_per_token\" has no effect"), "{notes:?}");
        assert!(parse(r#"{"kv_bytes_per_token":1000,"worker_type":"prefill"}"#).1.is_empty());
    }

    #[test]
    fn what_is_missing_is_refused() {
        let trtllm = message(r#"{"engine_type":"trtllm"}"#);
        assert!(trtllm.contains("not available in this release"), "{trtllm}");
        assert!(message(r#"{"engine_type":"tgi"}"#).contains("known: sglang, vllm"));
        assert!(message(r#"{"dp_size":2}"#).contains("must be 1"));
        assert!(message(r#"{"worker_type":"router"}"#).contains("known: aggregated, decode, prefill"));
        assert!(message(r#"{"timing":"guess"}"#).contains("known: fixed, grid"));
        assert!(message(r#"{"speedup_ratio":null}"#).contains("must not be null"));
        assert!(message(r#"{"max_model_len":0}"#).contains("at least 1"));
    }

    #[test]
    fn timing_has_one_source() {
        let missing = message(r#"{"planner_profile_data":"x.npz"}"#);
        assert!(missing.contains("x.npz: cannot open"), "{missing}");
        assert!(message(r#"{"aic_backend":"vllm"}"#).contains("\"aic_system\" is missing"));
        let both = message(r#"{"aic_backend":"vllm","timing":"polynomial"}"#);
        assert!(both.contains("\"aic_backend\" cannot be combined with \"timing\""), "{both}");
        let json = r#"{"aic_backend":"vllm","aic_system":"h200_sxm","aic_model_path":"llama-3.1-8b"}"#;
        let (config, notes) = parse(json);
        let config = config.unwrap();
        assert_eq!(config.timing.parameters["profile"], "llama31-8b-h200-tp1-bf16");
        assert!(config.num_gpu_blocks > 13_000 && notes[0].contains("\"num_gpu_blocks\" is 1"), "{notes:?}");
        let (_, notes) = parse(r#"{"aic_system":"h200_sxm"}"#);
        assert!(notes[0].contains("\"aic_system\" has no effect"), "{notes:?}");
    }

    #[test]
    fn blocks_are_estimated_when_asked() {
        let json = r#"{"num_gpu_blocks":"auto","gpu":"h100","model":"llama-3.1-70b","tp":4,"block_size":16}"#;
        let few = parse(json).0.unwrap().num_gpu_blocks;
        let more = parse(&json.replace("\"tp\":4", "\"tp\":8")).0.unwrap().num_gpu_blocks;
        assert!(few > 10_000 && more > 2 * few, "{few} {more}");
        let error = message(r#"{"num_gpu_blocks":"auto","model":"llama-3.1-8b"}"#);
        assert!(error.contains("cannot be estimated") && error.contains("\"gpu\""), "{error}");
        let (_, notes) = parse(r#"{"gpu":"h100"}"#);
        assert!(notes[0].contains("\"gpu\" has no effect"), "{notes:?}");
    }

    #[test]
    fn keys_are_unique() {
        let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }
}
