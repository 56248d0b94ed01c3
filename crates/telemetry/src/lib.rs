//! What a cache server tells of itself: spans of requests, and metrics.
#![forbid(unsafe_code)]

mod assembly;
mod bus;
pub mod exporters;
mod ids;
pub mod json;
mod lane;
mod otlp;
mod plan;
pub mod prometheus;
pub mod replay;
mod resource;
mod sampling;
mod span;
mod status;
mod tally;
mod tracer;

pub use assembly::{Assembler, AssemblyPlan, Moment, SessionCounts};
pub use bus::Bus;
pub use plan::{Patience, Tell, TraceArgs, TracePlan};
pub use resource::{Environment, Resource};
pub use sampling::{Sampling, traceparent};
pub use span::{Attribute, Parent, Scope, Span, Value};
pub use status::{Exported, TraceStatus};
pub use tally::{Exports, Reason};
pub use tracer::Tracer;
