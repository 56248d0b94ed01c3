//! From bytes or parameters to a workload: trace formats, generators, reshaping.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod input;
pub mod requests;
pub mod shape;
pub mod synth;
mod workload;

pub use input::{Input, Lines};
pub use workload::{Loaded, Options, Starts, Survey};
