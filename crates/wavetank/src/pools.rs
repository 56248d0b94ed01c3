//! Which workers there are: one pool that does everything, or one that prefills and one that decodes.

use serde_json::Value;
use wavetank_model::{Error, Nanos, Result};
use wavetank_sim::{DecodePool, EngineConfig, Link, LinkScope, SharedLink, WorkerRole};

use crate::args::ReplayArgs;
use crate::verdict::{above_zero, not_negative};
use crate::{engine_args, json_arg, scaling_args, timing_arg};

/// The workers of a plan.
pub(crate) struct Pools {
    pub(crate) engine: EngineConfig,
    pub(crate) num_workers: u32,
    pub(crate) decode: Option<DecodePool>,
    /// `router_queue_policy` of the engine arguments.
    pub(crate) queue_policy: Option<String>,
}

const DECODE: &str = "--decode-engine-args";

/// Reads the engine arguments of one pool or two.
pub(crate) fn of(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<Pools> {
    let staged = [
        ("--prefill-engine-args", args.prefill_engine_args.as_deref()),
        (DECODE, args.decode_engine_args.as_deref()),
    ];
    match staged {
        [(_, None), (_, None)] => aggregated(args, warnings),
        [(flag, Some(_)), _] | [_, (flag, Some(_))] if args.extra_engine_args.is_some() => {
            Err(Error::usage("cannot be combined with --extra-engine-args").at(flag))
        }
        [(flag, Some(_)), (_, None)] | [(_, None), (flag, Some(_))] => {
            Err(Error::usage("prefill and decode engine arguments come as a pair").at(flag))
        }
        [_, _] => disaggregated(args, warnings),
    }
}

fn aggregated(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<Pools> {
    for (flag, count) in [
        ("--num-prefill-workers", args.num_prefill_workers),
        ("--num-decode-workers", args.num_decode_workers),
    ] {
        if count.unwrap_or(1) != 1 {
            return Err(Error::usage("belongs to disaggregated replay")
                .at(flag)
                .hint("use --num-workers, or give --prefill-engine-args and --decode-engine-args"));
        }
    }
    for (flag, typed) in [
        ("--kv-link-gbps", args.kv_link_gbps.is_some()),
        ("--kv-link-scope", args.kv_link_scope.is_some()),
        ("--kv-link-latency-us", args.kv_link_latency_us.is_some()),
    ] {
        if typed {
            return Err(Error::usage("belongs to disaggregated replay")
                .at(flag)
                .hint("aggregated workers move no KV between each other"));
        }
    }
    let (engine, queue_policy) =
        pool(args, "--extra-engine-args", args.extra_engine_args.as_deref(), warnings)?;
    Ok(Pools { engine, num_workers: args.num_workers.unwrap_or(1), decode: None, queue_policy })
}

fn disaggregated(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<Pools> {
    if args.num_workers.unwrap_or(1) != 1 {
        return Err(Error::usage("belongs to aggregated replay")
            .at("--num-workers")
            .hint("use --num-prefill-workers and --num-decode-workers"));
    }
    if args.kv_link_scope.is_some() && args.kv_link_gbps.is_none() {
        return Err(Error::usage("needs --kv-link-gbps").at("--kv-link-scope"));
    }
    not_negative("--kv-link-latency-us", args.kv_link_latency_us.unwrap_or(0.0))?;
    let (engine, queue_policy) =
        pool(args, "--prefill-engine-args", args.prefill_engine_args.as_deref(), warnings)?;
    let (decode, _) = pool(args, DECODE, args.decode_engine_args.as_deref(), warnings)?;
    let decode =
        DecodePool { engine: decode, num_workers: args.num_decode_workers.unwrap_or(1), link: link(args) };
    let num_workers = args.num_prefill_workers.unwrap_or(1);
    Ok(Pools { engine, num_workers, decode: Some(decode), queue_policy })
}

/// What KV transfers share.
fn link(args: &ReplayArgs) -> Link {
    let shared = args.kv_link_gbps.map(|gigabytes_per_second| SharedLink {
        gigabytes_per_second,
        scope: args.kv_link_scope.unwrap_or(LinkScope::PrefillWorker),
    });
    Link { shared, latency: Nanos::from_ms(args.kv_link_latency_us.unwrap_or(0.0) / 1e3) }
}

fn pool(
    args: &ReplayArgs,
    flag: &str,
    typed: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<(EngineConfig, Option<String>)> {
    let typed = json_arg::read(flag, typed)?;
    // Tiers keep what prompts are computed to.
    let tiers = if flag == DECODE { &[][..] } else { &args.tiers };
    let mut engine = engine_args::engine(&typed, tiers, warnings)?;
    scaling_args::startup(args, &mut engine, &typed, warnings);
    if let Some(timing) = &args.timing {
        let given = |key: &&&str| typed.object.get(**key).is_some_and(|value| !value.is_null());
        if let Some(key) = engine_args::TIMING.iter().find(given) {
            return Err(Error::usage(format!("cannot be combined with \"{key}\" of {flag}")).at("--timing"));
        }
        engine.timing = timing_arg::of_flag("--timing", timing)?;
    }
    engine_args::settle_scheduling(&mut engine, &typed, warnings)?;
    engine_args::note_capacity(&engine, &typed.place, warnings);
    let policy = typed.object.get("router_queue_policy").and_then(Value::as_str).map(str::to_owned);
    Ok((engine, policy))
}

/// Slower links carry a long prompt beyond the end of simulated time.
const LEAST_GBPS: f64 = 0.001;
const A_DAY: Nanos = Nanos(86_400_000_000_000);

/// What one transfer may use, if that is said.
fn own_bandwidth(engine: &EngineConfig) -> Option<f64> {
    let bandwidth = engine.transfer.kv_transfer_bandwidth;
    (bandwidth > 0.0 && engine.transfer.kv_bytes_per_token > 0).then_some(bandwidth)
}

/// Roles and shapes that fit together.
pub(crate) fn check(plan: &wavetank_sim::Plan) -> Result<()> {
    let wrong = |flag: &str, message: String| Err(Error::usage(message).at(flag));
    let (prefill, Some(decode)) = (&plan.engine, &plan.decode) else {
        return match plan.engine.worker_type {
            WorkerRole::Aggregated => Ok(()),
            _ => wrong(
                "--extra-engine-args",
                "\"worker_type\" must be aggregated; a pair of pools takes --prefill-engine-args and \
                 --decode-engine-args"
                    .to_owned(),
            ),
        };
    };
    let link = &decode.link;
    if let Some(shared) = link.shared {
        above_zero("--kv-link-gbps", shared.gigabytes_per_second)?;
    }
    let slowest = [link.shared.map(|shared| shared.gigabytes_per_second), own_bandwidth(prefill)];
    if let Some(slow) = slowest.into_iter().flatten().find(|&bandwidth| bandwidth < LEAST_GBPS) {
        return wrong("--prefill-engine-args", format!("KV at {slow:e} GB/s: {LEAST_GBPS} is the least"));
    }
    if link.latency > A_DAY {
        return wrong("--kv-link-latency-us", "must be at most a day".to_owned());
    }
    if (link.shared.is_some() || link.latency > Nanos::ZERO) && prefill.transfer.kv_bytes_per_token == 0 {
        return Err(Error::usage("a link needs the bytes that move over it")
            .at("--prefill-engine-args")
            .hint("give \"kv_bytes_per_token\", or \"model\" (`wavetank list models`)"));
    }
    let decode = &decode.engine;
    if prefill.worker_type != WorkerRole::Prefill {
        return wrong("--prefill-engine-args", "\"worker_type\" must be \"prefill\"".to_owned());
    }
    if decode.worker_type != WorkerRole::Decode {
        return wrong("--decode-engine-args", "\"worker_type\" must be \"decode\"".to_owned());
    }
    if plan.router_mode != "kv_router" {
        return wrong("--router-mode", "disaggregated replay needs kv_router".to_owned());
    }
    if prefill.engine_type != decode.engine_type {
        return wrong(
            "--decode-engine-args",
            "\"engine_type\" must be that of the prefill workers".to_owned(),
        );
    }
    if prefill.block_size != decode.block_size {
        let (a, b) = (prefill.block_size, decode.block_size);
        return wrong(
            "--decode-engine-args",
            format!("\"block_size\" is {b}, that of the prefill workers {a}"),
        );
    }
    Ok(())
}
