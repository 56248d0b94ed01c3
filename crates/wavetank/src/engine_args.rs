//! The JSON of `--extra-engine-args` (spec/engine.md 2): every key is a row of [`KEYS`].

use serde_json::{Map, Value};
use wavetank_model::{Error, Result, find, model};
use wavetank_sim::timing::{self, Pricing, TimingConfig};
use wavetank_sim::{EngineConfig, PreemptionMode, TransferMode, WorkerRole, engines, queues};

use crate::json_arg::JsonArg;
use crate::keys::{
    self, Table, at_least_one, boolean, bound, fraction, inert, limit, not_negative, object, only, port,
    sets, text, uint, unavailable,
};
use crate::sglang_args;

type Key = keys::Key<EngineConfig>;

const TABLE: Table<EngineConfig> = Table { kind: "engine-args", keys: KEYS };

/// Builds the engine from typed arguments; warnings go to `notes`.
pub(crate) fn engine(typed: &JsonArg, notes: &mut Vec<String>) -> Result<EngineConfig> {
    let mut config = EngineConfig::default();
    TABLE.read(typed, &mut config, notes)?;
    let given = |key: &str| typed.object.get(key).is_some_and(|value| !value.is_null());
    if config.engine_type == "sglang" {
        sglang_args::settle(&mut config, typed)?;
    }
    if !given("async_scheduling") {
        let measured = config.timing.pricing()? == Pricing::Fused;
        config.async_scheduling = measured && config.engine_type == "vllm";
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
        config.transfer.kv_bytes_per_token = BF16_BYTES * model(name)?.kv_numbers_per_token();
    }
    let transfer = ["kv_bytes_per_token", "kv_transfer_bandwidth", "kv_transfer_timing_mode", "model"];
    let stays = config.worker_type == WorkerRole::Aggregated;
    for key in transfer.iter().filter(|key| stays && given(key)) {
        notes.push(format!("{}: \"{key}\" has no effect: {DISAGGREGATED}", typed.place));
    }
    Ok(config)
}

const BF16_BYTES: u32 = 2;
const LIVE: &str = "it concerns live workers, not replay";
const DISAGGREGATED: &str = "it concerns disaggregated workers";
const CAPACITY: &str = "num_gpu_blocks is not estimated from memory";
const AIC: &str = "the \"aic\" timing model";
const TIERS: &str = "a host or storage tier below the GPU cache";

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
    sets("is_decode", "older form of worker_type decode", |config, value| {
        role_flag(config, value, WorkerRole::Decode)
    }),
    sets("is_prefill", "older form of worker_type prefill", |config, value| {
        role_flag(config, value, WorkerRole::Prefill)
    }),
    sets(
        "kv_bytes_per_token",
        "bytes of KV that move to a decode worker, per token (that of model, in bf16, or 0)",
        |config, value| {
            config.transfer.kv_bytes_per_token = uint(value)?;
            Ok(())
        },
    ),
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
    sets("model", "a row of `wavetank list models`; gives kv_bytes_per_token", |_, value| {
        model(text(value)?).map(drop).map_err(|error| error.to_string().replace('\n', "; "))
    }),
    sets("num_gpu_blocks", "KV blocks of a worker (16384)", |config, value| {
        config.num_gpu_blocks = at_least_one(value)?;
        Ok(())
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
    sets(
        "timing",
        "a row of `wavetank list timing`, or {\"name\": row, parameters} (polynomial)",
        |config, value| {
            config.timing = timing_model(value)?;
            Ok(())
        },
    ),
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
    inert("gpu_memory_utilization", fraction, CAPACITY),
    inert("handoff_session_timeout_ms", |value| uint(value).map(drop), DISAGGREGATED),
    inert("has_perf_model", |_| Ok(()), "it is a mark of the reference's own round trips"),
    inert("mem_fraction_static", fraction, CAPACITY),
    inert("reasoning", |value| object(value).map(drop), "it changes token ids of live output, not time"),
    sets("router_queue_policy", "overrides the key of the same name in --router-config", |_, value| {
        queues::policy(text(value)?).map(drop).map_err(|error| error.to_string().replace('\n', "; "))
    }),
    sets("sglang", "settings of SGLang: a row of `wavetank list sglang-args` each", |config, value| {
        sglang_args::set(&mut config.sglang, object(value)?)
    }),
    inert("startup_time", |value| not_negative(value).map(drop), "no worker is added during the run"),
    inert("zmq_kv_events_port", port, LIVE),
    inert("zmq_replay_port", port, LIVE),
    unavailable("aic_attention_dp_size", AIC),
    unavailable("aic_backend", AIC),
    unavailable("aic_backend_version", AIC),
    unavailable("aic_comm_dtype", AIC),
    unavailable("aic_fmha_dtype", AIC),
    unavailable("aic_gemm_dtype", AIC),
    unavailable("aic_kv_cache_dtype", AIC),
    unavailable("aic_model_path", AIC),
    unavailable("aic_moe_dtype", AIC),
    unavailable("aic_moe_ep_size", AIC),
    unavailable("aic_moe_tp_size", AIC),
    unavailable("aic_mtp_seed", "speculative decoding"),
    unavailable("aic_nextn", "speculative decoding"),
    unavailable("aic_nextn_accept_rates", "speculative decoding"),
    unavailable("aic_system", AIC),
    unavailable("aic_tp_size", AIC),
    unavailable("bandwidth_g1_to_g2_gbps", TIERS),
    unavailable("bandwidth_g2_to_g1_gbps", TIERS),
    unavailable("bandwidth_g2_to_g3_gbps", TIERS),
    unavailable("bandwidth_g2_to_g4_gbps", TIERS),
    unavailable("bandwidth_g3_to_g2_gbps", TIERS),
    unavailable("bandwidth_g4_to_g2_gbps", TIERS),
    unavailable("enable_g4_storage", TIERS),
    unavailable("num_g2_blocks", TIERS),
    unavailable("num_g3_blocks", TIERS),
    unavailable("offload_batch_size", TIERS),
    unavailable("planner_profile_data", "the \"npz\" timing model"),
    unavailable("response_replay_trace_path", "scripted output"),
    unavailable("trtllm", "the TensorRT-LLM engine"),
];

fn engine_type(name: &str) -> Result<String, String> {
    if name == "trtllm" {
        return Err(format!("the \"{name}\" engine is not available in this release"));
    }
    let entry = find("engine", engines::ALL, name).map_err(|error| error.to_string().replace('\n', "; "))?;
    Ok(entry.name.to_owned())
}

pub(crate) fn timing_model(value: &Value) -> Result<TimingConfig, String> {
    let flat = |error: Error| error.to_string().replace('\n', "; ");
    let config = match value {
        Value::String(name) => TimingConfig { name: name.clone(), parameters: Map::new() },
        Value::Object(object) => {
            let mut parameters = object.clone();
            let Some(Value::String(name)) = parameters.remove("name") else {
                return Err("an object needs a \"name\"; known: see `wavetank list timing`".to_owned());
            };
            TimingConfig { name, parameters }
        }
        _ => return Err("must be a name or an object with a \"name\"".to_owned()),
    };
    find("timing model", timing::ALL, &config.name).map_err(flat)?;
    config.build().map_err(flat)?;
    Ok(config)
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
        (engine(&typed, &mut notes), notes)
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
            parse(r#"{"startup_time":3,"planner_profile_data":null,"bootstrap_port":null}"#);
        assert_eq!(config.unwrap(), EngineConfig::default());
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("\"startup_time\" has no effect"));
        let (_, notes) = parse(r#"{"kv_bytes_per_token":1000}"#);
        assert!(notes[0].contains("\"kv_bytes_per_token\" has no effect"), "{notes:?}");
        assert!(parse(r#"{"kv_bytes_per_token":1000,"worker_type":"prefill"}"#).1.is_empty());
    }

    #[test]
    fn what_is_missing_is_refused() {
        for json in [
            r#"{"engine_type":"trtllm"}"#,
            r#"{"aic_backend":"vllm"}"#,
            r#"{"num_g2_blocks":5}"#,
            r#"{"planner_profile_data":"x.npz"}"#,
        ] {
            assert!(message(json).contains("not available in this release"), "{}", message(json));
        }
        assert!(message(r#"{"engine_type":"tgi"}"#).contains("known: sglang, vllm"));
        assert!(message(r#"{"dp_size":2}"#).contains("must be 1"));
        assert!(message(r#"{"worker_type":"router"}"#).contains("known: aggregated, decode, prefill"));
        assert!(message(r#"{"timing":"guess"}"#).contains("known: fixed, polynomial"));
        assert!(message(r#"{"speedup_ratio":null}"#).contains("must not be null"));
        assert!(message(r#"{"max_model_len":0}"#).contains("at least 1"));
    }

    #[test]
    fn keys_are_unique() {
        let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }
}
