//! All that a mock depends on. Whoever makes one has checked it: what reaches [`run`](super::run()) is sound.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Serialize;
use wavetank_http::Login;
use wavetank_model::Nanos;

use super::script::OutputLengths;
use crate::kv_events::KvEventsPlan;

/// All that a mock depends on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MockPlan {
    /// The workers and their router; `max_model_len` is said.
    pub simulation: wavetank_sim::Plan,
    /// Where clients connect.
    pub address: SocketAddr,
    /// Who may ask; everybody when absent.
    pub api_key: Option<Login>,
    /// The model that is played.
    pub model: String,
    /// What it is called; answers have the first name.
    pub model_names: Vec<String>,
    /// The `tokenizer.json` of a model; the table inside when absent.
    pub tokenizer: Option<PathBuf>,
    /// How long answers are that nothing else ends.
    pub output_tokens: OutputLengths,
    /// Whether answers say what of a prompt was in a cache.
    pub prompt_tokens_details: bool,
    /// What clients may take.
    pub limits: MockLimits,
    /// Threads that serve clients.
    pub http_threads: usize,
    /// How long clients have to finish when the mock ends.
    pub drain: Nanos,
    /// Where it is published what is in caches; nowhere when absent.
    pub kv_events: Option<KvEventsPlan>,
}

/// What clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MockLimits {
    /// Bytes of one body.
    pub body_bytes: usize,
    /// Clients at a time.
    pub connections: usize,
    /// Answers under way.
    pub requests: usize,
    /// How long a client may take in the middle of something.
    pub client_timeout: Nanos,
    /// How long it may be silent between requests.
    pub idle_timeout: Nanos,
}
