//! `wavetank mock`: live simulated engines behind an OpenAI-compatible HTTP endpoint.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use clap::Args;
use wavetank::gauges::Gauges;
use wavetank::{
    KvEventsArgs, MockAddresses, MockArgs, MockCompany, MockPlanned, ReplayArgs, Result, Secret, mock,
    mock_plan,
};

use super::replay_flags::AicFlags;
use crate::exit::Exit;
use crate::watch::{self, LiveView, Show};
use crate::{interrupt, limits, output};

/// What is typed.
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Flags {
    /// Check everything, print the plan as JSON, and end: nothing is opened.
    #[arg(long)]
    check: bool,
    /// Show the workers in the terminal while they run: queues, caches, tokens per second and latencies.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    door: DoorFlags,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    workers: WorkerFlags,
    #[command(flatten)]
    clients: ClientFlags,
    #[command(flatten)]
    kv_events: KvEventsFlags,
    #[command(flatten)]
    aic: AicFlags,
}

#[derive(Args)]
#[command(next_help_heading = "Door")]
struct DoorFlags {
    /// Where clients connect; an address that others reach needs a key [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// The port; 0 is any [default: 8000].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// What clients have to send as a bearer token; or the variable WAVETANK_API_KEY, which others on this
    /// machine do not see.
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Model")]
struct ModelFlags {
    /// The model that is played [default: wavetank-mock].
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// What clients call it; answers have the first name [default: that of --model].
    #[arg(long, value_name = "NAME", num_args = 1..)]
    served_model_name: Vec<String>,
    /// The tokenizer.json of a model, or a directory that has one [default: the table of
    /// cl100k_base, which is inside].
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// The most tokens of a prompt and its answer [default: what the cache holds, at most 131072].
    #[arg(long, value_name = "TOKENS")]
    max_model_len: Option<u32>,
    /// How long answers are that the request does not end [default: 256].
    #[arg(long, value_name = "TOKENS")]
    output_tokens_mean: Option<f64>,
    /// Their standard deviation over the mean; lengths are log-normal [default: 0.5].
    #[arg(long, value_name = "RATIO")]
    output_tokens_cv: Option<f64>,
    /// Say in `usage` how many tokens of the prompt were in the cache.
    #[arg(long)]
    enable_prompt_tokens_details: bool,
}

#[derive(Args)]
#[command(next_help_heading = "Workers, as in replay")]
struct WorkerFlags {
    /// Workers, each a thread [default: 1].
    #[arg(long, value_name = "N")]
    num_workers: Option<u32>,
    /// A row of `wavetank list routers` [default: round_robin].
    #[arg(long, value_name = "MODE")]
    router_mode: Option<String>,
    /// Engine arguments, inline or @file.json.
    #[arg(long, value_name = "JSON")]
    extra_engine_args: Option<String>,
    /// How long passes take: a row of `wavetank list timing`, with its parameters after a colon
    /// [default: polynomial].
    #[arg(long, value_name = "NAME[:ARGUMENT]")]
    timing: Option<String>,
    /// Router configuration, inline or @file.json.
    #[arg(long, value_name = "JSON")]
    router_config: Option<String>,
    /// Seed of the router's random choices [default: 42].
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
}

#[derive(Args)]
#[command(next_help_heading = "Clients")]
struct ClientFlags {
    /// The longest body of a request [default: 64].
    #[arg(long, value_name = "MIB")]
    max_body_mib: Option<f64>,
    /// Clients at a time; more are turned away [default: 10000].
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Answers under way at a time; more are turned away [default: 16384].
    #[arg(long, value_name = "N")]
    max_requests: Option<usize>,
    /// How long a client may take in the middle of something; an answer may take any time
    /// [default: 30].
    #[arg(long, value_name = "SECONDS")]
    client_timeout_seconds: Option<f64>,
    /// How long a client may be silent between requests [default: 300].
    #[arg(long, value_name = "SECONDS")]
    idle_timeout_seconds: Option<f64>,
    /// How long clients have to finish when the mock ends [default: 10].
    #[arg(long, value_name = "SECONDS")]
    drain_seconds: Option<f64>,
    /// Threads that serve clients [default: 2].
    #[arg(long, value_name = "N")]
    http_threads: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "KV events, as vLLM publishes them")]
struct KvEventsFlags {
    /// Where the first worker publishes what is in its cache, such as tcp://127.0.0.1:5557; each other one
    /// takes the next port.
    #[arg(long, value_name = "ENDPOINT")]
    kv_events: Option<String>,
    /// The first frame of every message [default: empty].
    #[arg(long, value_name = "TEXT", requires = "kv_events")]
    kv_events_topic: Option<String>,
    /// Where subscribers ask for what they missed of the first worker; each other one takes the next port.
    #[arg(long, value_name = "ENDPOINT", requires = "kv_events")]
    kv_events_replay: Option<String>,
    /// Batches of each worker that are kept for that [default: 10000].
    #[arg(long, value_name = "N", requires = "kv_events_replay")]
    kv_events_buffer: Option<usize>,
    /// What events are written as: map, as vLLM does now, or array, as it did and SGLang does
    /// [default: map].
    #[arg(long, value_name = "NAME", requires = "kv_events")]
    kv_events_encoding: Option<String>,
}

impl KvEventsFlags {
    fn typed(self) -> Option<KvEventsArgs> {
        Some(KvEventsArgs {
            endpoint: self.kv_events?,
            topic: self.kv_events_topic.unwrap_or_default(),
            replay: self.kv_events_replay,
            buffer: self.kv_events_buffer,
            encoding: self.kv_events_encoding,
        })
    }
}

pub(crate) fn run(flags: Flags) -> Result<Exit> {
    let (is_check, is_live) = (flags.check, flags.live);
    let MockPlanned { plan, warnings } = mock_plan(&flags.into())?;
    for warning in &warnings {
        output::complain(&format!("warning: {warning}"));
    }
    if is_check {
        let told = serde_json::to_string_pretty(&plan).unwrap_or_default();
        output::say(&(told + "\n"))?;
        return Ok(Exit::DONE);
    }
    let drain_s = plan.drain.as_seconds();
    let ending = interrupt::ask_to_end(
        format!("ending: clients have {drain_s} s to finish; again ends at once"),
        "ended at once: clients were cut off",
    )?;
    limits::raise_open_files();
    let view = Rc::new(Cell::new(None));
    let (shown, ask) = (Rc::clone(&view), Arc::clone(&ending.ask));
    let ready = move |addresses: &MockAddresses, gauges: &Gauges| {
        // Whoever started it may have closed its output.
        drop(output::say(&addresses.to_string()));
        if is_live && watch::is_possible() {
            let title = format!("wavetank mock: http://{}", addresses.http);
            let show = Show { title, gauges: gauges.clone(), expected: None };
            shown.set(LiveView::start(show, move || ask()));
        }
    };
    let report = mock(&plan, &ending.asked, MockCompany { followers: Vec::new(), ready: Box::new(ready) });
    // The terminal is given back before anything else is said.
    drop(view.take());
    output::say(&report?.to_string())?;
    Ok(Exit::DONE)
}

impl From<Flags> for MockArgs {
    fn from(flags: Flags) -> Self {
        let Flags { door, model, workers, clients, kv_events, aic, .. } = flags;
        let key = door.api_key.or_else(|| std::env::var("WAVETANK_API_KEY").ok());
        Self {
            host: door.host,
            port: door.port,
            api_key: key.map(Secret::of),
            model: model.model,
            served_model_name: model.served_model_name,
            tokenizer: model.tokenizer,
            max_model_len: model.max_model_len,
            output_tokens_mean: model.output_tokens_mean,
            output_tokens_cv: model.output_tokens_cv,
            enable_prompt_tokens_details: model.enable_prompt_tokens_details,
            max_body_mib: clients.max_body_mib,
            max_connections: clients.max_connections,
            max_requests: clients.max_requests,
            client_timeout_seconds: clients.client_timeout_seconds,
            idle_timeout_seconds: clients.idle_timeout_seconds,
            drain_seconds: clients.drain_seconds,
            http_threads: clients.http_threads,
            kv_events: kv_events.typed(),
            workers: ReplayArgs {
                num_workers: workers.num_workers,
                router_mode: workers.router_mode,
                extra_engine_args: workers.extra_engine_args,
                timing: workers.timing,
                router_config: workers.router_config,
                seed: workers.seed,
                aic: aic.typed(),
                ..ReplayArgs::default()
            },
        }
    }
}
