//! The KV-cache server: the storage layer behind the protocols that clients speak.
#![forbid(unsafe_code)]

mod args;
mod cache;
mod config;
mod counters;
mod http;
mod name;
mod phase;
mod plan;
mod recording;
pub mod resp;
mod run;
mod tier;

pub use args::{Adapter, Args, MetricNames};
pub use cache::Cache;
pub use counters::{Counter, Counters};
pub use plan::{Leases, Limits, Plan, Recording, Tracing};
pub use recording::Tape;
pub use run::{Addresses, Listener, Recorded, Report, run};
pub use wavetank_http::{Login, Secret};
