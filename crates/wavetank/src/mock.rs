//! From what was typed for `wavetank mock` to its plan. Workers, routers and timing are those of a replay.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use wavetank_live::kv_events::{KvEventsArgs, KvEventsPlan};
use wavetank_live::mock::{Login, MockLimits, MockPlan, OutputLengths, Secret};
use wavetank_model::{Error, Nanos, Result};
use wavetank_sim::EngineConfig;

use crate::args::ReplayArgs;
use crate::plan::check::check_simulation;
use crate::plan::{ReplayMode, simulation};
use crate::verdict::{above_zero, not_negative, positive};

/// The flags of `wavetank mock`, by their names; `None`, `false` and empty were not typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the flag of the same name, described by the command line's help"
)]
pub struct MockArgs {
    pub host: Option<String>,
    pub port: Option<u16>,
    /// `--api-key`, or what the environment gives.
    pub api_key: Option<Secret>,
    pub model: Option<String>,
    pub served_model_name: Vec<String>,
    pub tokenizer: Option<PathBuf>,
    pub max_model_len: Option<u32>,
    pub output_tokens_mean: Option<f64>,
    pub output_tokens_cv: Option<f64>,
    pub enable_prompt_tokens_details: bool,
    pub max_body_mib: Option<f64>,
    pub max_connections: Option<usize>,
    pub max_requests: Option<usize>,
    pub client_timeout_seconds: Option<f64>,
    pub idle_timeout_seconds: Option<f64>,
    pub drain_seconds: Option<f64>,
    pub http_threads: Option<usize>,
    /// `--kv-events` and what belongs to it.
    pub kv_events: Option<KvEventsArgs>,
    /// What says how workers, routers and timing are; nothing else of it is looked at.
    pub workers: ReplayArgs,
}

/// A plan and what was typed without effect.
#[derive(Clone, Debug, PartialEq)]
pub struct MockPlanned {
    /// The plan.
    pub plan: MockPlan,
    /// What has no effect.
    pub warnings: Vec<String>,
}

const PORT: u16 = 8000;
const MODEL: &str = "wavetank-mock";
/// What a model takes that does not say it, if the cache does.
const MODEL_LEN: u32 = 131_072;
const BODY_MIB: f64 = 64.0;
const MOST_BODY_MIB: f64 = 4096.0;
/// The longest time that is taken for one: a year.
const LONGEST_S: f64 = 365.0 * 86_400.0;

/// Checks what was typed.
pub fn mock_plan(args: &MockArgs) -> Result<MockPlanned> {
    let mut warnings = Vec::new();
    let mut simulation = simulation(&args.workers, &mut warnings)?;
    if let Some(length) = args.max_model_len {
        simulation.engine.max_model_len = Some(positive("--max-model-len", length)?);
    }
    simulation.engine.max_model_len.get_or_insert(usual_length(&simulation.engine));
    check_simulation(&simulation, ReplayMode::Online)?;
    let host = host(args.host.as_deref())?;
    let api_key = api_key(args)?;
    check_public(host, api_key.as_ref())?;
    let model = args.model.clone().unwrap_or_else(|| MODEL.to_owned());
    let kv_events = args.kv_events.as_ref();
    let kv_events = kv_events.map(|args| KvEventsPlan::of(args, simulation.num_workers)).transpose()?;
    warnings.extend(kv_events.as_ref().and_then(KvEventsPlan::warning));
    if kv_events.is_some() && !simulation.engine.enable_prefix_caching {
        warnings.push("--kv-events: nothing is cached without enable_prefix_caching".to_owned());
    }
    let plan = MockPlan {
        simulation,
        address: SocketAddr::new(host, args.port.unwrap_or(PORT)),
        api_key,
        model_names: model_names(args, &model)?,
        model,
        tokenizer: args.tokenizer.as_deref().map(tokenizer_file).transpose()?,
        output_tokens: OutputLengths {
            mean: mean(args.output_tokens_mean.unwrap_or(256.0))?,
            cv: not_negative("--output-tokens-cv", args.output_tokens_cv.unwrap_or(0.5))?,
        },
        prompt_tokens_details: args.enable_prompt_tokens_details,
        limits: limits(args)?,
        http_threads: threads(args.http_threads.unwrap_or(2))?,
        drain: seconds("--drain-seconds", args.drain_seconds, 10.0)?,
        kv_events,
    };
    Ok(MockPlanned { plan, warnings })
}

/// As much as the cache of a worker holds, within what models take.
fn usual_length(engine: &EngineConfig) -> u32 {
    engine.num_gpu_blocks.saturating_mul(engine.block_size).min(MODEL_LEN)
}

fn host(typed: Option<&str>) -> Result<IpAddr> {
    match typed {
        None | Some("localhost") => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Some(text) => text.parse().map_err(|_| {
            Error::usage(format!("\"{text}\" is no address"))
                .at("--host")
                .hint("give localhost or an IP address of this machine; 0.0.0.0 is all of them")
        }),
    }
}

fn api_key(args: &MockArgs) -> Result<Option<Login>> {
    match &args.api_key {
        Some(key) if key.reveal().is_empty() => Err(Error::usage("the key is empty").at("--api-key")),
        key => Ok(key.clone().map(|password| Login { user: None, password })),
    }
}

fn check_public(host: IpAddr, api_key: Option<&Login>) -> Result<()> {
    if host.is_loopback() || api_key.is_some() {
        return Ok(());
    }
    Err(Error::usage("everyone who reaches this address could use the mock")
        .at(format!("--host {host}"))
        .hint("give --api-key or the variable WAVETANK_API_KEY, or stay at 127.0.0.1"))
}

fn model_names(args: &MockArgs, model: &str) -> Result<Vec<String>> {
    let names = match &args.served_model_name[..] {
        [] => vec![model.to_owned()],
        names => names.to_vec(),
    };
    match names.iter().any(String::is_empty) {
        true => Err(Error::usage("a name is empty").at("--served-model-name")),
        false => Ok(names),
    }
}

/// The file of a tokenizer, or of the one in a model's directory.
fn tokenizer_file(path: &Path) -> Result<PathBuf> {
    let file = if path.is_dir() { path.join("tokenizer.json") } else { path.to_owned() };
    match std::fs::metadata(&file) {
        Ok(_) => Ok(file),
        Err(error) => Err(Error::io(&file, error).hint("--tokenizer takes a model's tokenizer.json")),
    }
}

fn mean(typed: f64) -> Result<f64> {
    match above_zero("--output-tokens-mean", typed)? {
        mean if mean >= 1.0 => Ok(mean),
        mean => Err(Error::usage(format!("must be at least 1, not {mean}")).at("--output-tokens-mean")),
    }
}

fn limits(args: &MockArgs) -> Result<MockLimits> {
    let body = above_zero("--max-body-mib", args.max_body_mib.unwrap_or(BODY_MIB))?;
    if body > MOST_BODY_MIB {
        return Err(Error::usage(format!("must be at most {MOST_BODY_MIB}")).at("--max-body-mib"));
    }
    Ok(MockLimits {
        body_bytes: (body * f64::from(1u32 << 20)).ceil() as usize,
        connections: count("--max-connections", args.max_connections, 10_000)?,
        requests: count("--max-requests", args.max_requests, 16_384)?,
        client_timeout: seconds("--client-timeout-seconds", args.client_timeout_seconds, 30.0)?,
        idle_timeout: seconds("--idle-timeout-seconds", args.idle_timeout_seconds, 300.0)?,
    })
}

fn count(flag: &str, typed: Option<usize>, usual: usize) -> Result<usize> {
    match typed.unwrap_or(usual) {
        count @ 1..=1_000_000 => Ok(count),
        other => Err(Error::usage(format!("must be from 1 to 1000000, not {other}")).at(flag)),
    }
}

fn threads(typed: usize) -> Result<usize> {
    match typed {
        threads @ 1..=1024 => Ok(threads),
        other => Err(Error::usage(format!("must be from 1 to 1024, not {other}")).at("--http-threads")),
    }
}

fn seconds(flag: &str, typed: Option<f64>, usual: f64) -> Result<Nanos> {
    match above_zero(flag, typed.unwrap_or(usual))? {
        seconds if seconds <= LONGEST_S => Ok(Nanos::from_seconds(seconds)),
        _ => Err(Error::usage("must be at most a year").at(flag)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(args: MockArgs) -> String {
        mock_plan(&args).unwrap_err().to_string()
    }

    /// Broken by: a default that is not sound, or that is open to others.
    #[test]
    fn nothing_typed_is_a_plan() {
        let plan = mock_plan(&MockArgs::default()).unwrap().plan;
        assert_eq!(plan.address.to_string(), "127.0.0.1:8000");
        assert_eq!(plan.simulation.engine.max_model_len, Some(131_072));
        assert_eq!(plan.model_names, ["wavetank-mock"]);
        let router = ReplayArgs { router_mode: Some("kv_router".to_owned()), ..ReplayArgs::default() };
        assert!(mock_plan(&MockArgs { workers: router, ..MockArgs::default() }).is_ok());
    }

    /// Broken by: a model that takes more than its cache, or another length than was said.
    #[test]
    fn a_model_takes_what_its_cache_holds() {
        let length = |json: &str, typed| {
            let workers = ReplayArgs { extra_engine_args: Some(json.to_owned()), ..ReplayArgs::default() };
            let args = MockArgs { workers, max_model_len: typed, ..MockArgs::default() };
            mock_plan(&args).unwrap().plan.simulation.engine.max_model_len
        };
        assert_eq!(length(r#"{"num_gpu_blocks": 10, "block_size": 16}"#, None), Some(160));
        assert_eq!(length(r#"{"max_model_len": 50}"#, None), Some(50));
        assert_eq!(length(r#"{"max_model_len": 50}"#, Some(60)), Some(60));
    }

    /// Broken by: a server for everybody, or a key that is shown.
    #[test]
    fn others_need_a_key() {
        let public = || MockArgs { host: Some("0.0.0.0".to_owned()), ..MockArgs::default() };
        assert!(wrong(public()).contains("--api-key"));
        let keyed = MockArgs { api_key: Some(Secret::of("open sesame")), ..public() };
        let plan = mock_plan(&keyed).unwrap().plan;
        assert!(!format!("{plan:?}").contains("sesame"));
        assert!(wrong(MockArgs { api_key: Some(Secret::of("")), ..public() }).contains("empty"));
        assert!(wrong(MockArgs { host: Some("nowhere".to_owned()), ..public() }).contains("no address"));
    }

    /// Broken by: a number that no mock can have.
    #[test]
    fn numbers_are_checked() {
        let none = MockArgs::default;
        assert!(wrong(MockArgs { output_tokens_mean: Some(0.5), ..none() }).contains("--output-tokens-mean"));
        assert!(wrong(MockArgs { output_tokens_cv: Some(-1.0), ..none() }).contains("--output-tokens-cv"));
        assert!(wrong(MockArgs { max_body_mib: Some(f64::NAN), ..none() }).contains("--max-body-mib"));
        assert!(wrong(MockArgs { max_connections: Some(0), ..none() }).contains("--max-connections"));
        assert!(wrong(MockArgs { drain_seconds: Some(1e12), ..none() }).contains("--drain-seconds"));
        assert!(wrong(MockArgs { max_model_len: Some(0), ..none() }).contains("at least 1"));
        assert!(wrong(MockArgs { served_model_name: vec![String::new()], ..none() }).contains("empty"));
        assert!(wrong(MockArgs { tokenizer: Some("/nowhere".into()), ..none() }).contains("nowhere"));
        let many = ReplayArgs { num_workers: Some(5000), ..ReplayArgs::default() };
        assert!(wrong(MockArgs { workers: many, ..none() }).contains("--num-workers"));
    }
}
