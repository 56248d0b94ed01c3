//! The flags of `wavetank replay` by their names and with JSON values: what files write them as.
//!
//! A name is the flag's without its dashes in front, with dashes or underscores inside. Flags that take JSON
//! are objects here, and a path such as `extra_engine_args.num_gpu_blocks` names a key inside.

use std::path::Path;

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result, nearest};
use wavetank_sim::{ConcurrencyUnit, LinkScope};
use wavetank_trace::Fill;

use crate::args::ReplayArgs;
use crate::json_arg;
use crate::keys::{self, Key, boolean, expected, may_set, text, uint};
use crate::tiers;

impl ReplayArgs {
    /// The names of all flags.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FLAGS.iter().map(|flag| flag.name).chain(JSON.iter().map(|flag| flag.name))
    }

    /// The name of a flag or of a key inside one as it is written here: with underscores.
    pub fn canonical(name: &str) -> String {
        let (flag, key) = name.split_once('.').map_or((name, None), |(flag, key)| (flag, Some(key)));
        let flag = flag.replace('-', "_");
        let flag = match &*flag {
            "trace_file" | "trace_files" => "trace".to_owned(),
            "tiers" => "tier".to_owned(),
            _ => flag,
        };
        key.map_or(flag.clone(), |key| format!("{flag}.{key}"))
    }

    /// The files that hold the JSON of flags, and the media of tiers.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let typed = [
            &self.extra_engine_args,
            &self.prefill_engine_args,
            &self.decode_engine_args,
            &self.router_config,
            &self.autoscale_config,
        ];
        let named = typed.into_iter().flatten().filter_map(|typed| typed.strip_prefix('@')).map(Path::new);
        named.chain(tiers::files(&self.tiers))
    }

    /// Enters `value` under a name, or under a path inside a flag that takes JSON.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        let name = Self::canonical(name);
        let wrong = |finding: String| Error::usage(format!("\"{name}\": {finding}"));
        let (flag, path) = name.split_once('.').map_or((&*name, None), |(flag, path)| (flag, Some(path)));
        if let Some(flag) = JSON.iter().find(|row| row.name == flag) {
            return flag.set(self, path, value).map_err(|error| error.within(format!("\"{name}\"")));
        }
        if !FLAGS.iter().any(|row| row.name == flag) {
            return Err(unknown(flag));
        }
        if let ("tier", Some(path)) = (flag, path) {
            return tiers::set_inside(&mut self.tiers, path, value)
                .map_err(|error| error.within(format!("\"{name}\"")));
        }
        if path.is_some() {
            let takers: Vec<&str> = JSON.iter().map(|row| row.name).collect();
            return Err(wrong("there is nothing inside it".to_owned())
                .hint(format!("these have keys inside: {}", takers.join(", "))));
        }
        let object = Map::from_iter([(flag.to_owned(), value.clone())]);
        match keys::enter(FLAGS, &object, self).0.pop() {
            None => Ok(()),
            Some(finding) => Err(Error::usage(finding)),
        }
    }
}

fn unknown(name: &str) -> Error {
    let error = Error::usage(format!("unknown field \"{name}\""));
    if name == "plan" {
        return error
            .hint("--plan runs a plan as it is: name the flags it was made from, they can be varied");
    }
    if matches!(name, "advise" | "price") {
        return error.hint("advice is about one replay: `wavetank replay --advise`; a sweep takes [cost]");
    }
    match nearest(name, ReplayArgs::names()) {
        Some(known) => error.hint(format!("did you mean {known}?")),
        None => error.hint("fields are the flags of `wavetank replay --help`, with underscores: num_workers"),
    }
}

/// A flag whose value is a JSON object.
struct JsonFlag {
    name: &'static str,
    /// What was typed.
    typed: fn(&mut ReplayArgs) -> &mut Option<String>,
}

/// Every flag that takes JSON.
const JSON: &[JsonFlag] = &[
    JsonFlag { name: "extra_engine_args", typed: |args| &mut args.extra_engine_args },
    JsonFlag { name: "prefill_engine_args", typed: |args| &mut args.prefill_engine_args },
    JsonFlag { name: "decode_engine_args", typed: |args| &mut args.decode_engine_args },
    JsonFlag { name: "router_config", typed: |args| &mut args.router_config },
    JsonFlag { name: "autoscale_config", typed: |args| &mut args.autoscale_config },
];

impl JsonFlag {
    /// Replaces all of it, or the key at `path`.
    fn set(&self, args: &mut ReplayArgs, path: Option<&str>, value: &Value) -> Result<()> {
        let typed = (self.typed)(args);
        let Some(path) = path else {
            *typed = match value {
                Value::String(text) => Some(text.clone()),
                Value::Object(_) => Some(value.to_string()),
                other => {
                    return Err(Error::usage(format!("must be a table, or \"@file.json\", not {other}")));
                }
            };
            return Ok(());
        };
        let flag = format!("--{}", self.name.replace('_', "-"));
        let mut object = Value::Object(json_arg::read(&flag, typed.as_deref())?.object);
        let mut place = &mut object;
        for key in path.split('.') {
            if place.is_null() {
                *place = json!({});
            }
            let Value::Object(inside) = place else {
                return Err(Error::usage(format!("\"{key}\" is inside something that is no table")));
            };
            place = inside.entry(key).or_insert(Value::Null);
        }
        *place = value.clone();
        *typed = Some(object.to_string());
        Ok(())
    }
}

fn number(value: &Value) -> Result<f64, String> {
    expected(value, value.as_f64(), "a number")
}

fn seed(value: &Value) -> Result<u64, String> {
    expected(value, value.as_u64(), "a whole number from 0 to 2^64-1")
}

fn owned(value: &Value) -> Result<String, String> {
    text(value).map(str::to_owned)
}

/// One path, or several of one trace.
fn paths(value: &Value) -> Result<Vec<String>, String> {
    match value.as_array() {
        Some(paths) => paths.iter().map(owned).collect(),
        None => owned(value).map(|path| vec![path]),
    }
}

fn fill(value: &Value) -> Result<Fill, String> {
    text(value)?.parse().map_err(|error: Error| error.to_string())
}

/// A flag with a value of its own kind.
macro_rules! flag {
    ($name:ident, $read:expr) => {
        may_set(stringify!($name), "", |args, value| $read(value).map(|value| args.$name = Some(value)))
    };
}

/// A flag of the router's prefill load model.
macro_rules! aic {
    ($name:literal, $flag:literal) => {
        may_set($name, "", |args, value| {
            let typed = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            args.aic.retain(|(flag, _)| *flag != $flag);
            args.aic.push(($flag, typed));
            Ok(())
        })
    };
}

/// Every other flag, in the order of `ReplayArgs`.
const FLAGS: &[Key<ReplayArgs>] = &[
    may_set("trace", "", |args, value| paths(value).map(|paths| args.trace_files = paths)),
    flag!(input_tokens, uint),
    flag!(output_tokens, uint),
    flag!(request_count, uint),
    flag!(arrival_interval_ms, number),
    flag!(request_rate, number),
    flag!(arrival_seed, seed),
    flag!(turns_per_session, uint),
    flag!(shared_prefix_ratio, number),
    flag!(num_prefix_groups, uint),
    flag!(inter_turn_delay_ms, number),
    flag!(num_workers, uint),
    flag!(num_prefill_workers, uint),
    flag!(num_decode_workers, uint),
    flag!(kv_link_gbps, number),
    flag!(kv_link_scope, scope),
    flag!(kv_link_latency_us, number),
    flag!(replay_concurrency, uint),
    flag!(concurrency_unit, unit),
    flag!(replay_mode, owned),
    flag!(router_mode, owned),
    flag!(arrival_speedup_ratio, number),
    flag!(trace_format, owned),
    flag!(trace_block_size, uint),
    flag!(fill, fill),
    flag!(trace_shared_prefix_ratio, number),
    flag!(trace_num_prefix_groups, uint),
    may_set("clamp_input", "", |args, value| boolean(value).map(|clamp| args.clamp_input = clamp)),
    may_set("tier", "", |args, value| tiers::typed_list(value).map(|tiers| args.tiers = tiers)),
    flag!(timing, owned),
    flag!(router_policy_config, |value| owned(value).map(Into::into)),
    flag!(model_name, owned),
    flag!(autoscale, owned),
    flag!(planner_config, owned),
    flag!(benchmark_granularity, uint),
    flag!(max_sim_time_seconds, number),
    flag!(sla_ttft_ms, number),
    flag!(sla_itl_ms, number),
    flag!(sla_e2e_ms, number),
    flag!(seed, seed),
    aic!("aic_backend", "--aic-backend"),
    aic!("aic_system", "--aic-system"),
    aic!("aic_model_path", "--aic-model-path"),
    aic!("aic_backend_version", "--aic-backend-version"),
    aic!("aic_tp_size", "--aic-tp-size"),
    aic!("aic_moe_tp_size", "--aic-moe-tp-size"),
    aic!("aic_moe_ep_size", "--aic-moe-ep-size"),
    aic!("aic_attention_dp_size", "--aic-attention-dp-size"),
    aic!("aic_gemm_dtype", "--aic-gemm-dtype"),
    aic!("aic_moe_dtype", "--aic-moe-dtype"),
    aic!("aic_fmha_dtype", "--aic-fmha-dtype"),
    aic!("aic_kv_cache_dtype", "--aic-kv-cache-dtype"),
    aic!("aic_comm_dtype", "--aic-comm-dtype"),
    aic!("aic_nextn", "--aic-nextn"),
    aic!("aic_nextn_accept_rates", "--aic-nextn-accept-rates"),
];

fn scope(value: &Value) -> Result<LinkScope, String> {
    match &*text(value)?.replace('_', "-") {
        "prefill-worker" => Ok(LinkScope::PrefillWorker),
        "decode-worker" => Ok(LinkScope::DecodeWorker),
        "pool" => Ok(LinkScope::Pool),
        _ => Err(format!("must be prefill-worker, decode-worker or pool, not {value}")),
    }
}

fn unit(value: &Value) -> Result<ConcurrencyUnit, String> {
    match text(value)? {
        "requests" => Ok(ConcurrencyUnit::Requests),
        "sessions" => Ok(ConcurrencyUnit::Sessions),
        _ => Err(format!("must be requests or sessions, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, Value)]) -> Result<ReplayArgs> {
        let mut args = ReplayArgs::default();
        pairs.iter().try_for_each(|(name, value)| args.set(name, value))?;
        Ok(args)
    }

    #[test]
    fn a_value_lands_in_its_flag() {
        let args = set(&[
            ("num-workers", json!(4)),
            ("trace", json!("a.jsonl")),
            ("kv_link_scope", json!("pool")),
            ("aic_tp_size", json!(2)),
            ("extra_engine_args", json!({ "block_size": 16 })),
            ("extra-engine-args.num_gpu_blocks", json!(512)),
            ("extra_engine_args.sglang.schedule_policy", json!("fcfs")),
            ("tiers", json!(["cpu=1GiB:32GB/s", { "name": "disk" }])),
            ("tier.cpu.medium.gbps", json!(16)),
            ("tier.disk.capacity", json!("2TiB")),
        ])
        .unwrap();
        assert_eq!((args.num_workers, &*args.trace_files[0]), (Some(4), "a.jsonl"));
        assert_eq!(
            (args.kv_link_scope, args.aic),
            (Some(LinkScope::Pool), vec![("--aic-tp-size", "2".into())])
        );
        assert_eq!(args.tiers[0]["medium"], json!({ "name": "queued", "gbps": 16 }));
        assert_eq!(args.tiers[1], json!({ "name": "disk", "capacity": "2TiB" }));
        let json: Value = serde_json::from_str(&args.extra_engine_args.unwrap()).unwrap();
        let expected =
            json!({ "block_size": 16, "num_gpu_blocks": 512, "sglang": { "schedule_policy": "fcfs" } });
        assert_eq!(json, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (name, value, expected) in [
            ("num_wrokers", json!(1), "unknown field \"num_wrokers\"\nhint: did you mean num_workers?"),
            (
                "num_workers",
                json!(-1),
                "\"num_workers\": must be a whole number from 0 to 4294967295, not -1",
            ),
            (
                "num_workers",
                json!("4"),
                "\"num_workers\": must be a whole number from 0 to 4294967295, not \"4\"",
            ),
            ("seed.x", json!(1), "\"seed.x\": there is nothing inside it\nhint: "),
            (
                "extra_engine_args",
                json!(3),
                "\"extra_engine_args\": must be a table, or \"@file.json\", not 3",
            ),
            (
                "colour_of_the_sea",
                json!(3),
                "unknown field \"colour_of_the_sea\"\nhint: fields are the flags",
            ),
            ("plan", json!("report.json"), "unknown field \"plan\"\nhint: --plan runs a plan as it is"),
            ("tier", json!(3), "\"tier\": must be texts or tables, one for each tier, not 3"),
            ("tier.ram.capacity", json!("1GiB"), "\"tier.ram.capacity\": there is no tier \"ram\""),
            ("tier.ram", json!("1GiB"), "\"tier.ram\": \"ram\" names no key of a tier"),
            ("concurrency_unit", json!("x"), "\"concurrency_unit\": must be requests or sessions, not \"x\""),
        ] {
            let message = set(&[(name, value)]).expect_err(name).to_string();
            assert!(message.starts_with(expected), "{message}");
        }
        let inside = [("router_config.a", json!(1)), ("router_config.a.b", json!(1))];
        assert!(set(&inside).unwrap_err().to_string().contains("inside something that is no table"));
    }
}
