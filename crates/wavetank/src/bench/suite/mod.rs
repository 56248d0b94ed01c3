//! Many benchmarks that say together what a machine can do (spec/kv-bench.md 17).
//!
//! `hardware` looks at the machine, `parameters` chooses numbers for it, `scenario` is the table of what is
//! run; [`SuitePlan`] is the result, a benchmark's plan per scenario. [`Suite`] runs them one after the
//! other and keeps what is done in a folder, `record` is what it goes on from after an interruption.

mod args;
mod command;
mod draft;
mod hardware;
mod outline;
mod parameters;
mod plan;
mod record;
mod run;
mod scenario;
mod submit;
mod summary;

pub use crate::host::Drive;
pub use args::SuiteArgs;
pub use hardware::{Gpu, Hardware, PassedOver, Place};
pub use outline::{lasting, machine, outline};
pub use parameters::{GpuBudget, Parameters};
pub use plan::{Ready, Step, SuitePlan, Task};
pub use run::{Begun, Suite, SuiteObserver, SuiteWatch};
pub use scenario::{ALL as SCENARIOS, Kind as ScenarioKind, Scenario};
