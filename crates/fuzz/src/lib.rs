//! Readers of what comes from outside meet bytes they never saw. A target is one file in `targets/` and one
//! row: what it begins with, how that is changed, and what must hold of any bytes. `driver` changes at random
//! until a time is over; libFuzzer, in `fuzz/` beside the workspace, runs the same checks.

#![forbid(unsafe_code)]

mod blind;
mod driver;
mod said;
mod scratch;
mod small_run;
pub mod targets;
mod texts;
mod wire;

pub use driver::{Limits, inputs, run};
pub use said::Met;
