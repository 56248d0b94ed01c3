//! What users type: every setting of the server, absent where it was not typed. Flags and the configuration
//! file have the same names, with dashes in one and underscores in the other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use wavetank_calls::{LoadPolicy, StorePolicy};
use wavetank_http::Secret;

macro_rules! args {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty,)+) => {
        /// Every setting that was typed.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Args {
            $($(#[doc = $doc])+ pub $name: Option<$type>,)+
            /// The password, from the environment: it is never typed.
            #[serde(skip)]
            pub password: Option<Secret>,
        }

        impl Args {
            /// The keys of a configuration file.
            pub const NAMES: &[&str] = &[$(stringify!($name)),+];

            /// These settings, and those of `under` where there is none.
            pub fn over(self, under: Self) -> Self {
                Self {
                    $($name: self.$name.or(under.$name),)+
                    password: self.password.or(under.password),
                }
            }
        }
    };
}

args! {
    /// The address of both doors.
    host: String,
    /// The port for Redis clients.
    port: u16,
    /// The port for HTTP.
    http_port: u16,
    /// Who clients say they are.
    user: String,
    /// A file that holds the password.
    password_file: PathBuf,
    /// Memory, in GiB.
    l1_size_gb: f64,
    /// Objects take multiples of this.
    l1_align_bytes: u64,
    /// How long a write may take.
    l1_write_ttl_seconds: f64,
    /// How long a read may take.
    l1_read_ttl_seconds: f64,
    /// Who leaves memory.
    eviction_policy: String,
    /// From this part of memory on.
    eviction_trigger_watermark: f64,
    /// This part of the objects.
    eviction_ratio: f64,
    /// Tiers behind memory, as `BACKEND:LOCATION[:CAPACITY]`.
    l2: Vec<String>,
    /// Tiers behind memory, as JSON objects or tables.
    l2_adapter: Vec<Adapter>,
    /// What becomes of an object in memory once it was copied behind.
    l2_store_policy: StorePolicy,
    /// What becomes of an object that came from behind.
    l2_prefetch_policy: LoadPolicy,
    /// Prefetches that load at a time.
    l2_prefetch_max_in_flight: usize,
    /// How long a client waits for what is behind memory.
    l2_timeout_ms: f64,
    /// Bytes that a tenant may have, by its cache salt.
    quota: BTreeMap<String, String>,
    /// Bytes that any other tenant may have.
    default_quota: String,
    /// Tokens of a chunk.
    chunk_size: u64,
    /// How long a request may be silent before it is over.
    session_ttl_seconds: f64,
    /// How long a key that a client saw stays.
    lease_seconds: f64,
    /// This part of memory may be leased.
    lease_share: f64,
    /// Threads that serve Redis clients.
    resp_threads: usize,
    /// Threads that serve HTTP.
    http_threads: usize,
    /// Connections of Redis clients.
    max_connections: usize,
    /// Connections of HTTP clients.
    http_max_connections: usize,
    /// Bytes that all connections of a door may have in flight.
    max_memory: String,
    /// Bytes that one connection may have in flight.
    max_connection_memory: String,
    /// Bytes of one value.
    max_value: String,
    /// How long a connection may be silent in the middle of something.
    client_timeout_seconds: f64,
    /// How long an HTTP connection may be silent between requests.
    idle_timeout_seconds: f64,
    /// How long a Redis client may be silent between commands.
    resp_idle_timeout_seconds: f64,
    /// How long clients have to finish when the server ends.
    drain_seconds: f64,
    /// Whether FLUSHALL is served.
    enable_flushall: bool,
    /// What metrics are called.
    metrics_names: MetricNames,
    /// Whether spans are exported.
    enable_tracing: bool,
    /// Where they go.
    otlp_endpoint: String,
    /// How: grpc or http.
    otlp_protocol: String,
    /// Headers that go with them: NAME=VALUE, NAME=@FILE or NAME=env:VARIABLE.
    otlp_header: Vec<String>,
    /// Certificates that are trusted.
    otlp_certificate: PathBuf,
    /// A file that spans go to.
    otlp_file: PathBuf,
    /// This part of requests is exported.
    trace_sample_ratio: f64,
    /// This part of commands of Redis clients is exported.
    command_sample_ratio: f64,
    /// Events that wait to become spans.
    event_bus_queue_size: usize,
    /// What is recorded.
    trace_level: String,
    /// Where it is recorded.
    trace_output: PathBuf,
    /// Go on in another file at so many 10^6 bytes.
    trace_rotate_mb: f64,
    /// Stop recording at so many 10^6 bytes.
    trace_cap_mb: f64,
}

/// A tier behind memory, as text in JSON or as a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Adapter {
    /// JSON.
    Text(String),
    /// A table of the configuration file.
    Table(serde_json::Map<String, serde_json::Value>),
}

impl Adapter {
    /// As JSON.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Table(table) => serde_json::Value::Object(table.clone()).to_string(),
        }
    }
}

/// What metrics are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricNames {
    /// `wavetank_…`.
    #[default]
    Wavetank,
    /// Those too, and those of the reference that have a true value here.
    Reference,
}
