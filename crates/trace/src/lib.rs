//! From bytes or parameters to a workload: trace formats, generators, reshaping; logs of storage calls.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod call_guess;
mod call_survey;
pub mod calls;
mod input;
mod output;
pub mod recorder;
pub mod requests;
pub mod shape;
pub mod synth;
mod table;
mod workload;

pub use call_survey::{CallSurvey, Cut, Reason, Skipped, Stop};
pub use input::{Input, Lines};
pub use output::Output;
pub use workload::{Conversations, Exchange, Loaded, Options, Starts, Survey, Tape, TapeReader};
