//! From what was typed to what the server does. This is the only place that validates: what reaches
//! [`run`](crate::run) is sound.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use wavetank_calls::{AdapterPlan, EvictionPlan, L1Plan, LoadPolicy, Medium, Plan as StoragePlan, QuotaPlan};
use wavetank_http::{Login, Secret};
use wavetank_model::{Error, Nanos, Result, size};
use wavetank_telemetry::{Tell, TraceArgs, TracePlan};

use crate::args::{Args, MetricNames};
use crate::http::duration;
use crate::resp::Settings;
use crate::tier;

/// All that a server depends on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Where Redis clients connect.
    pub resp: SocketAddr,
    /// Where HTTP clients connect.
    pub http: SocketAddr,
    /// Who may connect; everybody when absent.
    pub login: Option<Login>,
    /// The tiers.
    pub storage: StoragePlan,
    /// Prefetches that load at a time.
    pub prefetches_in_flight: usize,
    /// How long a client waits for what is behind memory, before it is a miss.
    pub patience: Nanos,
    /// Tokens of a chunk.
    pub chunk_size: u64,
    /// How long a request may be silent before it is over.
    pub session_ttl: Nanos,
    /// What clients hold that have only looked.
    pub leases: Leases,
    /// What clients may take.
    pub limits: Limits,
    /// Threads that serve Redis clients.
    pub resp_threads: usize,
    /// Threads that serve HTTP.
    pub http_threads: usize,
    /// Whether FLUSHALL is served.
    pub flushall: bool,
    /// What metrics are called.
    pub metric_names: MetricNames,
    /// How spans are exported; not at all when absent.
    pub tracing: Option<Tracing>,
    /// Where calls are recorded; not at all when absent.
    pub recording: Option<Recording>,
    /// How long clients have to finish when the server ends.
    pub drain: Nanos,
}

/// What clients hold that have only looked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Leases {
    /// For how long.
    pub lasting: Nanos,
    /// This part of memory at most.
    pub share: f64,
}

/// What clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Connections of Redis clients.
    pub connections: usize,
    /// Connections of HTTP clients.
    pub http_connections: usize,
    /// Bytes in flight of all connections of a door.
    pub memory_bytes: u64,
    /// Bytes in flight of one connection.
    pub connection_bytes: u64,
    /// Bytes of one value.
    pub value_bytes: u64,
    /// Silence in the middle of something.
    pub client_timeout: Nanos,
    /// Silence of an HTTP connection between requests.
    pub idle_timeout: Nanos,
    /// Silence of a Redis client between commands; for ever when absent.
    pub resp_idle_timeout: Option<Nanos>,
}

/// How spans are exported.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tracing {
    /// Where to: addresses and files.
    pub targets: Vec<String>,
    /// This part of requests.
    pub requests: f64,
    /// This part of commands of Redis clients.
    pub commands: f64,
    /// Events that wait to become spans.
    pub queue_events: usize,
    /// As it was typed; headers may be secret.
    #[serde(skip)]
    typed: TraceArgs,
}

impl Tracing {
    /// The plan of whoever exports them, who says `tell` what goes wrong.
    pub(crate) fn plan(&self, tell: Tell) -> Result<Option<TracePlan>> {
        TracePlan::of(&self.typed, &environment, tell)
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Where calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// The file, compressed if it ends in `.zst`.
    pub path: PathBuf,
    /// A file that would be larger is followed by another; one file when absent.
    pub rotate_bytes: Option<u64>,
    /// The recording stops at so many bytes; never when absent.
    pub cap_bytes: Option<u64>,
}

const GIB: f64 = (1u64 << 30) as f64;
const MIB: u64 = 1 << 20;
/// No machine has more; what is larger is a slip.
const MOST_GIB: f64 = 1e9;
/// Redis' own limit of a value.
const LARGEST_VALUE: u64 = 512 * MIB;
/// A command without large values has to fit.
const LEAST_CONNECTION: u64 = 256 << 10;
const PORT: u16 = 7379;
const HTTP_PORT: u16 = 7380;
const EVICTION: [&str; 3] = ["--eviction-policy", "--eviction-trigger-watermark", "--eviction-ratio"];
const ISOLATED: &str = "isolated_lru";
/// Threads of a door, as of the mock's.
const MOST_THREADS: usize = 1024;
/// The longest time that is taken for one: a year.
const LONGEST_S: f64 = 365.0 * 86_400.0;

impl Plan {
    /// Checks what was typed. `recording` was checked before, with the flags that all verbs share.
    pub fn of(args: &Args, recording: Option<Recording>) -> Result<Self> {
        let (resp, http) = addresses(args)?;
        let login = login(args)?;
        check_public(resp.ip(), login.as_ref())?;
        let storage = storage(args)?;
        check_recording(&storage, recording.as_ref())?;
        let positive = |flag: &str, typed: Option<usize>, usual: usize| match typed.unwrap_or(usual) {
            count @ 1..=1_000_000 => Ok(count),
            other => Err(Error::usage(format!("must be from 1 to 1000000, not {other}")).at(flag.to_owned())),
        };
        Ok(Self {
            resp,
            http,
            login,
            prefetches_in_flight: positive("--l2-prefetch-max-in-flight", args.l2_prefetch_max_in_flight, 8)?,
            patience: seconds("--l2-timeout-ms", args.l2_timeout_ms.map(|ms| ms / 1e3), 5.0)?,
            chunk_size: positive("--chunk-size", args.chunk_size.map(|size| size as usize), 256)? as u64,
            session_ttl: seconds("--session-ttl-seconds", args.session_ttl_seconds, 600.0)?,
            leases: Leases {
                lasting: seconds("--lease-seconds", args.lease_seconds, 5.0)?,
                share: part("--lease-share", args.lease_share, 0.25)?,
            },
            limits: limits(args, &storage, positive)?,
            resp_threads: threads("--resp-threads", args.resp_threads, Settings::default().threads)?,
            http_threads: threads("--http-threads", args.http_threads, 2)?,
            flushall: args.enable_flushall.unwrap_or(false),
            metric_names: args.metrics_names.unwrap_or_default(),
            tracing: tracing(args)?,
            drain: seconds("--drain-seconds", args.drain_seconds, 10.0)?,
            storage,
            recording,
        })
    }
}

impl Plan {
    /// What the door for Redis clients is set to.
    pub(crate) fn settings(&self) -> Settings {
        let login = self.login.as_ref();
        Settings {
            listen: self.resp,
            threads: self.resp_threads,
            user: login.and_then(|login| login.user.clone()),
            password: login.map(|login| login.password.clone()),
            connections: self.limits.connections,
            connection_bytes: self.limits.connection_bytes,
            memory_bytes: self.limits.memory_bytes,
            value_bytes: self.limits.value_bytes,
            idle_timeout: self.limits.resp_idle_timeout.map(duration),
            slow_timeout: duration(self.limits.client_timeout),
            lease: duration(self.leases.lasting),
            lease_share: self.leases.share,
            l1_bytes: self.storage.l1.capacity_bytes,
            eviction_policy: self.storage.l1.eviction.policy.clone(),
            is_flush_enabled: self.flushall,
            ..Settings::default()
        }
    }

    /// As JSON for people, without what nobody is to know.
    pub fn told(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        serde_json::to_string_pretty(&crate::http::without_secrets(value)).unwrap_or_default()
    }
}

fn addresses(args: &Args) -> Result<(SocketAddr, SocketAddr)> {
    let host = match args.host.as_deref() {
        None | Some("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => text.parse().map_err(|_| {
            Error::usage(format!("\"{text}\" is no address"))
                .at("--host")
                .hint("give localhost or an IP address of this machine; 0.0.0.0 is all of them")
        })?,
    };
    let (port, http_port) = (args.port.unwrap_or(PORT), args.http_port.unwrap_or(HTTP_PORT));
    if port == http_port && port != 0 {
        let wrong = format!("is the port of Redis clients too, {port}");
        return Err(Error::usage(wrong).at("--http-port").hint("the two doors have a port each"));
    }
    Ok((SocketAddr::new(host, port), SocketAddr::new(host, http_port)))
}

fn login(args: &Args) -> Result<Option<Login>> {
    let password = match (&args.password_file, &args.password) {
        (Some(path), _) => Some(password_of(path)?),
        (None, given) => given.clone(),
    };
    let empty = |at: &str| Error::usage("the password is empty").at(at.to_owned());
    match (password, &args.user) {
        (Some(password), _) if password.reveal().is_empty() => {
            Err(empty(if args.password_file.is_some() { "--password-file" } else { "WAVETANK_PASSWORD" }))
        }
        (Some(password), user) => Ok(Some(Login { user: user.clone(), password })),
        (None, Some(_)) => Err(Error::usage("a user without a password lets everybody in")
            .at("--user")
            .hint("give --password-file, or the variable WAVETANK_PASSWORD")),
        (None, None) => Ok(None),
    }
}

/// The first line of a file.
fn password_of(path: &Path) -> Result<Secret> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    Ok(Secret::of(text.lines().next().unwrap_or_default()))
}

fn check_public(host: IpAddr, login: Option<&Login>) -> Result<()> {
    if host.is_loopback() || login.is_some() {
        return Ok(());
    }
    Err(Error::usage("everyone who reaches this address could read and remove entries")
        .at(format!("--host {host}"))
        .hint("give --password-file or the variable WAVETANK_PASSWORD, or stay at 127.0.0.1"))
}

fn storage(args: &Args) -> Result<StoragePlan> {
    let mut l1 = l1(args)?;
    let words = args.l2.iter().flatten().map(|word| tier::parse(word, &l1.eviction));
    let typed = args.l2_adapter.iter().flatten().map(|adapter| AdapterPlan::typed(&adapter.text()));
    let mut adapters: Vec<AdapterPlan> = words.chain(typed).collect::<Result<_>>()?;
    adapters.iter().try_for_each(tier::check_login)?;
    check_apart(&adapters)?;
    set_quotas(args, &mut l1, &mut adapters)?;
    if adapters.is_empty() {
        let flags = [
            ("--l2-store-policy", args.l2_store_policy.is_some()),
            ("--l2-prefetch-policy", args.l2_prefetch_policy.is_some()),
            ("--l2-prefetch-max-in-flight", args.l2_prefetch_max_in_flight.is_some()),
            ("--l2-timeout-ms", args.l2_timeout_ms.is_some()),
        ];
        if let Some((flag, _)) = flags.iter().find(|(_, is_typed)| *is_typed) {
            let wrong = Error::usage("there is no tier behind memory").at((*flag).to_owned());
            return Err(wrong.hint("--l2 gives one, as --l2 direct:/mnt/nvme:500GiB"));
        }
    }
    Ok(StoragePlan {
        l1,
        adapters,
        store_delay: Nanos(0),
        store_policy: args.l2_store_policy.unwrap_or_default(),
        load_policy: args.l2_prefetch_policy.unwrap_or(LoadPolicy::Retain),
    })
}

fn l1(args: &Args) -> Result<L1Plan> {
    let size = args.l1_size_gb.ok_or_else(|| {
        Error::usage("how much memory the server may use is not said")
            .at("--l1-size-gb")
            .hint("as --l1-size-gb 100, in GiB; it is reserved when it is needed")
    })?;
    if !(size > 0.0 && size <= MOST_GIB) {
        let wrong = format!("must be above 0 and at most {MOST_GIB}, not {size}");
        return Err(Error::usage(wrong).at("--l1-size-gb"));
    }
    let align = args.l1_align_bytes.unwrap_or(4096);
    if !(1..=1 << 30).contains(&align) {
        return Err(Error::usage(format!("must be from 1 to 2^30, not {align}")).at("--l1-align-bytes"));
    }
    let policy = args.eviction_policy.as_deref().unwrap_or("lru");
    let (watermark, ratio) = (args.eviction_trigger_watermark, args.eviction_ratio);
    Ok(L1Plan {
        capacity_bytes: Some((size * GIB) as u64),
        align_bytes: align,
        write_ttl: seconds("--l1-write-ttl-seconds", args.l1_write_ttl_seconds, 600.0)?,
        read_ttl: seconds("--l1-read-ttl-seconds", args.l1_read_ttl_seconds, 300.0)?,
        eviction: EvictionPlan::typed(policy, watermark, ratio, EVICTION)?,
        quotas: QuotaPlan::default(),
    })
}

/// Two tiers in one directory would take each other's entries for their own.
fn check_apart(adapters: &[AdapterPlan]) -> Result<()> {
    let mut seen = Vec::new();
    for adapter in adapters {
        let Medium::Backend { name, location, .. } = &adapter.medium else { continue };
        let place = location.trim_end_matches('/');
        if !place.is_empty() && seen.contains(&place) {
            let wrong = format!("{name} is where another tier is: {location}");
            return Err(Error::usage(wrong).at("--l2").hint("give each a directory of its own"));
        }
        seen.push(place);
    }
    Ok(())
}

/// Every tier that goes by quotas goes by these.
fn set_quotas(args: &Args, l1: &mut L1Plan, adapters: &mut [AdapterPlan]) -> Result<()> {
    let by_salt = args.quota.iter().flatten().map(|(salt, text)| {
        let place = format!("--quota {salt}");
        crate::name::check_salt(salt).map_err(|error| error.at(place.clone()))?;
        Ok((salt.clone(), size::parse(text, &place)?))
    });
    let others = args.default_quota.as_deref().map(|text| size::parse(text, "--default-quota"));
    let quotas = QuotaPlan { by_salt: by_salt.collect::<Result<_>>()?, default_bytes: others.transpose()? };
    if quotas == QuotaPlan::default() {
        return Ok(());
    }
    let isolated = |eviction: &EvictionPlan| eviction.policy == ISOLATED;
    let behind = adapters.iter_mut().filter(|tier| tier.eviction.as_ref().is_some_and(isolated));
    let mut tiers: Vec<&mut QuotaPlan> = behind.map(|tier| &mut tier.quotas).collect();
    tiers.extend(isolated(&l1.eviction).then_some(&mut l1.quotas));
    if tiers.is_empty() {
        let flag = if quotas.by_salt.is_empty() { "--default-quota" } else { "--quota" };
        let hint = "--eviction-policy isolated_lru goes by them";
        return Err(Error::usage("no tier goes by quotas").at(flag).hint(hint));
    }
    // One that was described with its own has those.
    let unsaid = tiers.into_iter().filter(|tier| **tier == QuotaPlan::default());
    unsaid.for_each(|tier| *tier = quotas.clone());
    Ok(())
}

fn threads(flag: &str, typed: Option<usize>, usual: usize) -> Result<usize> {
    match typed.unwrap_or(usual) {
        count @ 1..=MOST_THREADS => Ok(count),
        other => Err(Error::usage(format!("must be from 1 to {MOST_THREADS}, not {other}")).at(flag)),
    }
}

fn limits(
    args: &Args,
    storage: &StoragePlan,
    positive: impl Fn(&str, Option<usize>, usize) -> Result<usize>,
) -> Result<Limits> {
    let bytes = |flag: &str, typed: &Option<String>, usual: u64| {
        typed.as_deref().map_or(Ok(usual), |text| size::parse(text, flag))
    };
    let value_bytes = bytes("--max-value", &args.max_value, LARGEST_VALUE)?;
    if value_bytes > LARGEST_VALUE {
        return Err(Error::usage("no client sends more than 512MiB as one value").at("--max-value"));
    }
    let connection_bytes = bytes("--max-connection-memory", &args.max_connection_memory, 64 * MIB)?;
    if connection_bytes < LEAST_CONNECTION {
        return Err(Error::usage("must be at least 256KiB").at("--max-connection-memory"));
    }
    // What is under way into memory is memory: without a word of the user, a quarter of it.
    let usual = (storage.l1.capacity_bytes.unwrap_or(u64::MAX) / 4).clamp(64 * MIB, 64 << 30);
    let memory_bytes = bytes("--max-memory", &args.max_memory, usual)?;
    Ok(Limits {
        connections: positive("--max-connections", args.max_connections, 10_000)?,
        http_connections: positive("--http-max-connections", args.http_max_connections, 1_000)?,
        memory_bytes,
        connection_bytes,
        value_bytes,
        client_timeout: seconds("--client-timeout-seconds", args.client_timeout_seconds, 30.0)?,
        idle_timeout: seconds("--idle-timeout-seconds", args.idle_timeout_seconds, 300.0)?,
        resp_idle_timeout: args
            .resp_idle_timeout_seconds
            .map(|value| seconds("--resp-idle-timeout-seconds", Some(value), value))
            .transpose()?,
    })
}

fn tracing(args: &Args) -> Result<Option<Tracing>> {
    let typed = TraceArgs {
        enable_tracing: args.enable_tracing.unwrap_or(false),
        otlp_endpoint: args.otlp_endpoint.clone(),
        otlp_protocol: args.otlp_protocol.clone(),
        otlp_headers: args.otlp_header.clone().unwrap_or_default(),
        otlp_certificate: args.otlp_certificate.clone(),
        otlp_file: args.otlp_file.clone(),
        trace_sample_ratio: args.trace_sample_ratio,
        command_sample_ratio: args.command_sample_ratio,
        session_ttl_seconds: args.session_ttl_seconds,
        event_bus_queue_size: args.event_bus_queue_size,
    };
    if !typed.enable_tracing && typed.event_bus_queue_size.is_some() {
        let wrong = Error::usage("has no effect without --enable-tracing").at("--event-bus-queue-size");
        return Err(wrong.hint("add it"));
    }
    let plan = TracePlan::of(&typed, &environment, Arc::new(|_: &str| {}))?;
    Ok(plan.map(|plan| Tracing {
        targets: plan.targets.iter().map(|target| target.name()).collect(),
        requests: plan.assembly.sampling.requests,
        commands: plan.assembly.sampling.commands,
        queue_events: plan.queue_events,
        typed,
    }))
}

/// A recording may not be in the directory of a tier.
fn check_recording(storage: &StoragePlan, recording: Option<&Recording>) -> Result<()> {
    let Some(recording) = recording else { return Ok(()) };
    let folders = storage.adapters.iter().filter_map(|adapter| match &adapter.medium {
        Medium::Backend { location, .. } if !location.is_empty() => Some(Path::new(location.as_str())),
        _ => None,
    });
    match folders.into_iter().find(|folder| recording.path.starts_with(folder)) {
        None => Ok(()),
        Some(folder) => Err(Error::usage(format!("is in the directory of a tier, {}", folder.display()))
            .at(format!("--trace-output {}", recording.path.display()))),
    }
}

fn seconds(flag: &str, typed: Option<f64>, usual: f64) -> Result<Nanos> {
    let value = typed.unwrap_or(usual);
    if (0.001..=LONGEST_S).contains(&value) {
        return Ok(Nanos::from_seconds(value));
    }
    Err(Error::usage(format!("must be from a millisecond to a year, not {value}")).at(flag))
}

fn part(flag: &str, typed: Option<f64>, usual: f64) -> Result<f64> {
    match typed.unwrap_or(usual) {
        value @ 0.0..=1.0 => Ok(value),
        other => Err(Error::usage(format!("must be from 0 to 1, not {other}")).at(flag)),
    }
}
