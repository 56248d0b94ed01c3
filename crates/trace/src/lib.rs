//! From bytes or parameters to a workload: trace formats, generators, reshaping; logs of storage calls.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod call_guess;
mod call_survey;
pub mod calls;
pub mod convert;
mod digits;
mod draft;
mod fill;
mod head;
mod input;
mod items;
mod lengths;
mod meter;
mod output;
mod reading;
pub mod recorder;
pub mod requests;
mod row;
pub mod shape;
mod source;
mod stamp;
pub mod synth;
mod table;
mod workload;

pub use call_survey::{CallSurvey, Cut, Reason, Skipped, Stop};
pub use draft::Draft;
pub use fill::{Fill, HashFill};
pub use head::Head;
pub use input::{Input, Lines};
pub use meter::Meter;
pub use output::Output;
pub use row::{AgentNotes, Decimal, Moment, Row};
pub use workload::{
    Asked, Linted, Loaded, Options, PromptBlock, Prompts, Starts, Survey, Tape, TapeReader, lint, open,
};
