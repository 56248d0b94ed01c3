//! Recorded storage calls: what is in a recording.

mod implied;
mod info;
mod keys;
mod text;

pub use implied::Implied;
pub use info::{TraceInfo, trace_info};
