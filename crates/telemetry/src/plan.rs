//! What was typed about spans, as a plan that was checked.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use wavetank_model::{Error, Result, find, without_login};

use crate::assembly::AssemblyPlan;
use crate::exporters::{self, Target};
use crate::resource::{Environment, Resource, pairs};
use crate::sampling::Sampling;

/// Says something to the person who runs the server.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// What was typed.
#[derive(Clone, Default, PartialEq)]
pub struct TraceArgs {
    /// Spans are wanted.
    pub enable_tracing: bool,
    /// The address of a collector.
    pub otlp_endpoint: Option<String>,
    /// A row of [`exporters::ALL`] that has an address.
    pub otlp_protocol: Option<String>,
    /// `name=value`, `name=@FILE` or `name=env:NAME`.
    pub otlp_headers: Vec<String>,
    /// Certificates to trust, PEM.
    pub otlp_certificate: Option<PathBuf>,
    /// A file for JSON lines.
    pub otlp_file: Option<PathBuf>,
    /// The share of requests that is exported.
    pub trace_sample_ratio: Option<f64>,
    /// The share of commands of Redis clients that is exported.
    pub command_sample_ratio: Option<f64>,
    /// Seconds of silence after which a session is over.
    pub session_ttl_seconds: Option<f64>,
    /// Events that may wait.
    pub event_bus_queue_size: Option<usize>,
}

/// How spans are made and where they go.
#[derive(Clone)]
pub struct TracePlan {
    /// Events that may wait: a tenth of a second at a million a second takes 10 MB.
    pub queue_events: usize,
    /// How spans are made.
    pub assembly: AssemblyPlan,
    /// Who they are of.
    pub resource: Resource,
    /// Where they go.
    pub targets: Vec<Target>,
    /// How long spans wait for others to be sent with.
    pub gather: Duration,
    /// How often a batch is tried.
    pub patience: Patience,
    /// How long the end of the server may take.
    pub flush: Duration,
    /// Who is told when spans do not arrive; at most once a minute.
    pub tell: Tell,
}

/// How long a batch is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// After the first attempt; doubled after each.
    pub first_pause: Duration,
    /// The longest one.
    pub longest_pause: Duration,
    /// Until it is given up.
    pub in_all: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let first_pause = Duration::from_millis(250);
        Self { first_pause, longest_pause: Duration::from_secs(10), in_all: Duration::from_secs(60) }
    }
}

const QUEUE_EVENTS: usize = 100_000;
const MAX_SESSIONS: usize = 100_000;
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(600);
/// One attempt, as OpenTelemetry's exporters have it.
const TIMEOUT: Duration = Duration::from_secs(10);

impl fmt::Debug for TraceArgs {
    /// Without what may be secret: headers, and logins in the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { otlp_endpoint, otlp_file, .. } = self;
        let endpoint = otlp_endpoint.as_deref().map(without_login);
        let shown = &mut f.debug_struct("TraceArgs");
        shown.field("otlp_endpoint", &endpoint).field("otlp_file", otlp_file).finish_non_exhaustive()
    }
}

impl TracePlan {
    /// Spans to `targets`, as by default.
    pub fn to(targets: Vec<Target>, resource: Resource, tell: Tell) -> Self {
        let assembly = AssemblyPlan {
            sampling: Sampling::default(),
            orphan_timeout: ORPHAN_TIMEOUT,
            max_sessions: MAX_SESSIONS,
            seed: std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8),
        };
        Self {
            queue_events: QUEUE_EVENTS,
            assembly,
            resource,
            targets,
            gather: Duration::from_secs(1),
            patience: Patience::default(),
            flush: Duration::from_secs(5),
            tell,
        }
    }

    /// The plan of what was typed, `None` if no spans are wanted. The environment says what flags do not, by
    /// OpenTelemetry's names.
    pub fn of(args: &TraceArgs, environment: Environment<'_>, tell: Tell) -> Result<Option<Self>> {
        if !args.enable_tracing {
            return match pointless(args) {
                Some(flag) => {
                    Err(Error::usage("has no effect without --enable-tracing").at(flag).hint("add it"))
                }
                None => Ok(None),
            };
        }
        let mut plan = Self::to(targets(args, environment)?, Resource::of(environment)?, tell);
        let sampling = &mut plan.assembly.sampling;
        if let Some(share) = args.trace_sample_ratio {
            sampling.requests = checked_share("--trace-sample-ratio", share)?;
        }
        if let Some(share) = args.command_sample_ratio {
            sampling.commands = checked_share("--command-sample-ratio", share)?;
        }
        if let Some(seconds) = args.session_ttl_seconds {
            plan.assembly.orphan_timeout = Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| Error::usage("must be a time above 0").at("--session-ttl-seconds"))?;
        }
        if let Some(events) = args.event_bus_queue_size {
            if !(1..=100_000_000).contains(&events) {
                return Err(Error::usage("must be from 1 to 100000000").at("--event-bus-queue-size"));
            }
            plan.queue_events = events;
        }
        Ok(Some(plan))
    }
}

/// The first flag that says how to export what is not exported.
fn pointless(args: &TraceArgs) -> Option<&'static str> {
    let typed = [
        ("--otlp-endpoint", args.otlp_endpoint.is_some()),
        ("--otlp-protocol", args.otlp_protocol.is_some()),
        ("--otlp-header", !args.otlp_headers.is_empty()),
        ("--otlp-certificate", args.otlp_certificate.is_some()),
        ("--otlp-file", args.otlp_file.is_some()),
        ("--trace-sample-ratio", args.trace_sample_ratio.is_some()),
        ("--command-sample-ratio", args.command_sample_ratio.is_some()),
    ];
    typed.into_iter().find(|(_, is_typed)| *is_typed).map(|(flag, _)| flag)
}

fn checked_share(flag: &str, share: f64) -> Result<f64> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => {
            Err(Error::usage(format!("{share} is no share")).at(flag).hint("write a number from 0 to 1"))
        }
    }
}

fn targets(args: &TraceArgs, environment: Environment<'_>) -> Result<Vec<Target>> {
    let collector = collector(args, environment)?;
    let file = args.otlp_file.as_ref().map(|path| target("file", path.display().to_string()));
    let targets: Vec<Target> = collector.into_iter().chain(file.transpose()?).collect();
    if targets.is_empty() {
        return Err(Error::usage("spans have nowhere to go")
            .at("--enable-tracing")
            .hint("add --otlp-endpoint http://HOST:4317, or --otlp-file FILE"));
    }
    Ok(targets)
}

fn target(exporter: &str, address: String) -> Result<Target> {
    let exporter = find("exporter", exporters::ALL, exporter)?;
    Ok(Target { exporter, address, headers: Vec::new(), certificates: None, timeout: TIMEOUT })
}

fn collector(args: &TraceArgs, environment: Environment<'_>) -> Result<Option<Target>> {
    let given = args.otlp_endpoint.clone().or_else(|| environment("OTEL_EXPORTER_OTLP_ENDPOINT"));
    let Some(address) = given.filter(|address| !address.is_empty()) else {
        return match (&args.otlp_protocol, args.otlp_headers.is_empty(), &args.otlp_certificate) {
            (None, true, None) => Ok(None),
            (Some(_), ..) => Err(needs_endpoint("--otlp-protocol")),
            (_, false, _) => Err(needs_endpoint("--otlp-header")),
            _ => Err(needs_endpoint("--otlp-certificate")),
        };
    };
    // The reference takes HOST:PORT.
    let address = if address.contains("://") { address } else { format!("http://{address}") };
    let mut target = target(protocol(args, environment)?, address)?;
    if let Some(given) = environment("OTEL_EXPORTER_OTLP_HEADERS") {
        target.headers = pairs(&given).map_err(|error| error.at("OTEL_EXPORTER_OTLP_HEADERS"))?;
    }
    for typed in &args.otlp_headers {
        let (name, value) = header(typed, environment)?;
        target.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
        target.headers.push((name, value));
    }
    let certificate = || environment("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from);
    target.certificates = args.otlp_certificate.clone().or_else(certificate);
    Ok(Some(target))
}

fn needs_endpoint(flag: &str) -> Error {
    Error::usage("says how to reach a collector, and none is named").at(flag).hint("add --otlp-endpoint URL")
}

fn protocol(args: &TraceArgs, environment: Environment<'_>) -> Result<&'static str> {
    let (given, place) = match (&args.otlp_protocol, environment("OTEL_EXPORTER_OTLP_PROTOCOL")) {
        (Some(typed), _) => (typed.clone(), "--otlp-protocol"),
        (None, Some(set)) => (set, "OTEL_EXPORTER_OTLP_PROTOCOL"),
        (None, None) => return Ok("grpc"),
    };
    match given.as_str() {
        "grpc" => Ok("grpc"),
        "http" | "http/protobuf" => Ok("http"),
        other => Err(Error::usage(format!("unknown protocol {other:?}")).at(place).hint("known: grpc, http")),
    }
}

/// `name=value`; a value that is secret is read from a file or the environment, where nobody sees it.
fn header(typed: &str, environment: Environment<'_>) -> Result<(String, String)> {
    let wrong = |what: String| Error::usage(what).at("--otlp-header").hint(HEADER_FORMS);
    let Some((name, value)) = typed.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
        return Err(wrong("no name=value".to_owned()));
    };
    let value = match (value.strip_prefix('@'), value.strip_prefix("env:")) {
        (Some(path), _) => std::fs::read_to_string(path)
            .map(|text| text.trim_end().to_owned())
            .map_err(|error| Error::io(Path::new(path), error))?,
        (None, Some(variable)) => environment(variable)
            .ok_or_else(|| wrong(format!("no variable {variable} in the environment")))?,
        (None, None) => value.to_owned(),
    };
    Ok((name.trim().to_owned(), value))
}

const HEADER_FORMS: &str = "write NAME=VALUE, NAME=@FILE or NAME=env:VARIABLE";

#[cfg(test)]
mod tests;
