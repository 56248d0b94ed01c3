//! `wavetank serve`: the KV-cache server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use wavetank::{Error, LoadPolicy, Result, StorePolicy, choice};
use wavetank_serve::{Adapter, Listener, MetricNames, Plan, Recording, Secret};

use super::recording_flags::RecordingFlags;
use crate::exit::Exit;
use crate::{interrupt, limits, output};

/// What is typed; the configuration file has the same names.
#[derive(Args)]
pub(crate) struct Flags {
    /// A TOML file with any of these flags, underscores for dashes; flags win over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check everything, print the plan as JSON, and end: nothing is opened.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    doors: DoorFlags,
    #[command(flatten)]
    memory: MemoryFlags,
    #[command(flatten)]
    behind: BehindFlags,
    #[command(flatten)]
    clients: ClientFlags,
    #[command(flatten)]
    telling: TellingFlags,
    #[command(flatten)]
    recording: RecordingFlags,
}

#[derive(Args)]
#[command(next_help_heading = "Doors")]
struct DoorFlags {
    /// The address of both doors; one that others reach needs a password [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// The port for Redis clients; 0 is any [default: 7379].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The port for HTTP: status, metrics, the native API; 0 is any [default: 7380].
    #[arg(long, value_name = "PORT")]
    http_port: Option<u16>,
    /// Who clients have to say they are [default: anybody who knows the password].
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A file whose first line is the password; or the variable WAVETANK_PASSWORD.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Args)]
#[command(next_help_heading = "Memory (L1)")]
struct MemoryFlags {
    /// Memory for entries, in GiB; it is reserved when it is needed.
    #[arg(long, value_name = "GIB")]
    l1_size_gb: Option<f64>,
    /// Entries take multiples of this [default: 4096].
    #[arg(long, value_name = "BYTES")]
    l1_align_bytes: Option<u64>,
    /// How long a write may take [default: 600].
    #[arg(long, value_name = "SECONDS")]
    l1_write_ttl_seconds: Option<f64>,
    /// How long a read may take [default: 300].
    #[arg(long, value_name = "SECONDS")]
    l1_read_ttl_seconds: Option<f64>,
    /// Who leaves memory: a row of `wavetank list eviction` [default: lru].
    #[arg(long, value_name = "NAME")]
    eviction_policy: Option<String>,
    /// From this part of memory on [default: 0.8].
    #[arg(long, value_name = "RATIO")]
    eviction_trigger_watermark: Option<f64>,
    /// This part of the entries [default: 0.2].
    #[arg(long, value_name = "RATIO")]
    eviction_ratio: Option<f64>,
    /// What a tenant, by its cache salt, may have in each tier; with --eviction-policy isolated_lru; may
    /// be repeated.
    #[arg(long, value_name = "SALT=SIZE")]
    quota: Vec<String>,
    /// What any other tenant may have [default: no limit].
    #[arg(long, value_name = "SIZE")]
    default_quota: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Behind memory (L2)")]
struct BehindFlags {
    /// A tier behind memory: a row of `wavetank list backends`, where it is, and what it may hold, as
    /// direct:/mnt/nvme:500GiB; entries on disk are there again after a restart; may be repeated.
    #[arg(long, value_name = "BACKEND:LOCATION[:CAPACITY]")]
    l2: Vec<String>,
    /// The same as a JSON object, as `wavetank trace replay` takes it, after those of --l2; may be repeated.
    #[arg(long, value_name = "JSON")]
    l2_adapter: Vec<String>,
    /// Whether an entry stays in memory once it was copied behind: default or skip_l1 [default: default].
    #[arg(long, value_name = "NAME", value_parser = choice::<StorePolicy>)]
    l2_store_policy: Option<StorePolicy>,
    /// Whether an entry that came from behind stays: retain, or default (until it was read), which is
    /// the reference's own [default: retain].
    #[arg(long, value_name = "NAME", value_parser = choice::<LoadPolicy>)]
    l2_prefetch_policy: Option<LoadPolicy>,
    /// Prefetches that load at a time [default: 8].
    #[arg(long, value_name = "N")]
    l2_prefetch_max_in_flight: Option<usize>,
    /// How long a client waits for what is behind memory, before it is a miss [default: 5000].
    #[arg(long, value_name = "MS")]
    l2_timeout_ms: Option<f64>,
}

#[derive(Args)]
#[command(next_help_heading = "Clients")]
struct ClientFlags {
    /// Tokens of a chunk, for clients that send token ids [default: 256].
    #[arg(long, value_name = "TOKENS")]
    chunk_size: Option<u64>,
    /// How long a request may be silent before it is over [default: 600].
    #[arg(long, value_name = "SECONDS")]
    session_ttl_seconds: Option<f64>,
    /// How long a key that a Redis client saw with EXISTS stays [default: 5].
    #[arg(long, value_name = "SECONDS")]
    lease_seconds: Option<f64>,
    /// The part of memory that may be kept so [default: 0.25].
    #[arg(long, value_name = "RATIO")]
    lease_share: Option<f64>,
    /// Threads that serve Redis clients [default: half the cores, at most 8].
    #[arg(long, value_name = "N")]
    resp_threads: Option<usize>,
    /// Threads that serve HTTP [default: 2].
    #[arg(long, value_name = "N")]
    http_threads: Option<usize>,
    /// Connections of Redis clients [default: 10000].
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Connections of HTTP clients [default: 1000].
    #[arg(long, value_name = "N")]
    http_max_connections: Option<usize>,
    /// What all connections of a door may have under way [default: a quarter of --l1-size-gb, from
    /// 64MiB to 64GiB].
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<String>,
    /// What one Redis client may have under way, besides large values [default: 64MiB].
    #[arg(long, value_name = "SIZE")]
    max_connection_memory: Option<String>,
    /// The longest entry [default: 512MiB].
    #[arg(long, value_name = "SIZE")]
    max_value: Option<String>,
    /// How long a client may be silent in the middle of something [default: 30].
    #[arg(long, value_name = "SECONDS")]
    client_timeout_seconds: Option<f64>,
    /// How long an HTTP connection may be silent [default: 300].
    #[arg(long, value_name = "SECONDS")]
    idle_timeout_seconds: Option<f64>,
    /// How long a Redis client may be silent between commands [default: for ever].
    #[arg(long, value_name = "SECONDS")]
    resp_idle_timeout_seconds: Option<f64>,
    /// How long clients have to finish when the server ends [default: 10].
    #[arg(long, value_name = "SECONDS")]
    drain_seconds: Option<f64>,
    /// Serve FLUSHALL.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_flushall: Option<bool>,
}

#[derive(Args)]
#[command(next_help_heading = "Metrics and spans")]
struct TellingFlags {
    /// wavetank, or reference: the reference's names too, for those that have a true value here
    /// [default: wavetank].
    #[arg(long, value_name = "NAMES", value_parser = choice::<MetricNames>)]
    metrics_names: Option<MetricNames>,
    /// Export a span per request and operation; needs --otlp-endpoint or --otlp-file.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_tracing: Option<bool>,
    /// Where spans go, as http://localhost:4317.
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// grpc or http [default: grpc].
    #[arg(long, value_name = "NAME")]
    otlp_protocol: Option<String>,
    /// Goes with them: NAME=VALUE, NAME=@FILE or NAME=env:VARIABLE; may be repeated.
    #[arg(long, value_name = "HEADER")]
    otlp_header: Vec<String>,
    /// Certificates to trust, PEM.
    #[arg(long, value_name = "FILE")]
    otlp_certificate: Option<PathBuf>,
    /// Spans as lines of JSON, after those that are there; one process at a time.
    #[arg(long, value_name = "FILE")]
    otlp_file: Option<PathBuf>,
    /// The part of requests that is exported [default: 1].
    #[arg(long, value_name = "RATIO")]
    trace_sample_ratio: Option<f64>,
    /// The part of commands of Redis clients that is exported.
    #[arg(long, value_name = "RATIO")]
    command_sample_ratio: Option<f64>,
    /// Events that may wait to become spans.
    #[arg(long, value_name = "N")]
    event_bus_queue_size: Option<usize>,
}

pub(crate) fn run(flags: Flags) -> Result<Exit> {
    let is_check = flags.check;
    let plan = plan(flags)?;
    if is_check {
        output::say(&(plan.told() + "\n"))?;
        return Ok(Exit::DONE);
    }
    let drain_s = plan.drain.as_seconds();
    let ending = interrupt::ask_to_end(
        format!("ending: clients have {drain_s} s to finish; again ends at once"),
        "ended at once: what was not written behind memory is lost",
    )?;
    limits::raise_open_files();
    let listener = Listener {
        ready: Box::new(|addresses| output::complain(&format!("serving: {addresses}"))),
        tell: Arc::new(|words| output::complain(&format!("warning: {words}"))),
    };
    let report = wavetank_serve::run(&plan, &ending.asked, listener)?;
    output::say(&report.to_string())?;
    Ok(Exit::DONE)
}

/// Flags over the file, checked.
fn plan(flags: Flags) -> Result<Plan> {
    let file = flags.config.as_deref().map(wavetank_serve::Args::from_file).transpose()?.unwrap_or_default();
    let recording = flags.recording.clone();
    let mut args = typed(flags)?.over(file);
    let password = std::env::var("WAVETANK_PASSWORD").ok();
    args.password = password.map(Secret::of);
    let recording = recording.or(&args).recording()?.map(|recording| {
        recording.check_place()?;
        Ok(Recording {
            path: recording.path,
            rotate_bytes: recording.rotate_bytes,
            cap_bytes: recording.cap_bytes,
        })
    });
    Plan::of(&args, recording.transpose()?)
}

fn typed(flags: Flags) -> Result<wavetank_serve::Args> {
    let Flags { doors, memory, behind, clients, telling, .. } = flags;
    let quota = quotas(&memory.quota)?;
    Ok(wavetank_serve::Args {
        host: doors.host,
        port: doors.port,
        http_port: doors.http_port,
        user: doors.user,
        password_file: doors.password_file,
        l1_size_gb: memory.l1_size_gb,
        l1_align_bytes: memory.l1_align_bytes,
        l1_write_ttl_seconds: memory.l1_write_ttl_seconds,
        l1_read_ttl_seconds: memory.l1_read_ttl_seconds,
        eviction_policy: memory.eviction_policy,
        eviction_trigger_watermark: memory.eviction_trigger_watermark,
        eviction_ratio: memory.eviction_ratio,
        quota: (!quota.is_empty()).then_some(quota),
        default_quota: memory.default_quota,
        l2: some(behind.l2),
        l2_adapter: some(behind.l2_adapter.into_iter().map(Adapter::Text).collect()),
        l2_store_policy: behind.l2_store_policy,
        l2_prefetch_policy: behind.l2_prefetch_policy,
        l2_prefetch_max_in_flight: behind.l2_prefetch_max_in_flight,
        l2_timeout_ms: behind.l2_timeout_ms,
        chunk_size: clients.chunk_size,
        session_ttl_seconds: clients.session_ttl_seconds,
        lease_seconds: clients.lease_seconds,
        lease_share: clients.lease_share,
        resp_threads: clients.resp_threads,
        http_threads: clients.http_threads,
        max_connections: clients.max_connections,
        http_max_connections: clients.http_max_connections,
        max_memory: clients.max_memory,
        max_connection_memory: clients.max_connection_memory,
        max_value: clients.max_value,
        client_timeout_seconds: clients.client_timeout_seconds,
        idle_timeout_seconds: clients.idle_timeout_seconds,
        resp_idle_timeout_seconds: clients.resp_idle_timeout_seconds,
        drain_seconds: clients.drain_seconds,
        enable_flushall: clients.enable_flushall,
        metrics_names: telling.metrics_names,
        enable_tracing: telling.enable_tracing,
        otlp_endpoint: telling.otlp_endpoint,
        otlp_protocol: telling.otlp_protocol,
        otlp_header: some(telling.otlp_header),
        otlp_certificate: telling.otlp_certificate,
        otlp_file: telling.otlp_file,
        trace_sample_ratio: telling.trace_sample_ratio,
        command_sample_ratio: telling.command_sample_ratio,
        event_bus_queue_size: telling.event_bus_queue_size,
        // These are checked with the flags that all verbs share, and the password is not typed.
        trace_level: None,
        trace_output: None,
        trace_rotate_mb: None,
        trace_cap_mb: None,
        password: None,
    })
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn quotas(typed: &[String]) -> Result<BTreeMap<String, String>> {
    let mut quotas = BTreeMap::new();
    for text in typed {
        let (salt, size) = quota(text)?;
        if quotas.contains_key(&salt) {
            return Err(Error::usage(format!("\"{salt}\" is given twice")).at("--quota"));
        }
        quotas.insert(salt, size);
    }
    Ok(quotas)
}

fn quota(text: &str) -> Result<(String, String)> {
    let wrong =
        || Error::usage("is no SALT=SIZE").at(format!("--quota {text}")).hint("as --quota alice=10GiB");
    text.rsplit_once('=').map(|(salt, size)| (salt.to_owned(), size.to_owned())).ok_or_else(wrong)
}
