//! From what the user typed for a storage benchmark to its plan, and from the plan to the report.
//!
//! `args` is what was typed, `config` the YAML file, `model` the models; `draft` and the files it names put
//! them together and collect everything that is wrong; [`BenchPlan`] is the result, the same for a benchmark
//! that is run again. `run` takes it to a report: `dataset` reads recordings, `trials` compares runs, `warn`
//! says what to know before using the numbers; `simulated` is what stands for devices. `suite` makes and runs
//! many of them for one machine.

mod args;
mod block_layer;
mod check;
mod compared;
mod config;
mod dataset;
mod draft;
mod feed;
mod findings;
mod finished;
mod fio;
mod idle;
mod iolog;
mod machine;
mod merge;
mod model;
mod package;
mod place;
mod plan;
mod play;
mod rank;
mod run;
mod share;
mod sheet;
mod simulated;
mod stamp;
mod submission;
pub mod suite;
mod system;
mod tape;
#[cfg(test)]
mod testing;
mod tiers;
mod trials;
mod validation;
mod warn;

pub use args::{BenchArgs, GenerationMode, GpuTier, ReadPolicy, Tokenizer, choice};
pub(crate) use block_layer::missing as tracing_missing;
pub(crate) use draft::{IO_DEPTH, usual_io_threads};
pub use finished::Benched;
pub use fio::check_fio_job;
pub use merge::{Merged, Missing, merge};
pub use model::{AttentionType, Dtype, ModelPlan, memory_table};
pub(crate) use model::{bench_abouts, bench_models};
pub use package::{Checked, Finding, Package, Results, check_package, package_name};
pub(crate) use place::{Room, free_bytes, room};
pub use plan::{BenchPlan, DatasetPlan};
pub use play::{PlayArgs, play_log};
pub use rank::{Rank, Teller};
pub use run::{BenchFiles, BenchObserver, News, bench};
pub use sheet::run_parameters;
pub use submission::{SUBMISSIONS, Submission};
pub use tape::{CallRecording, RecordedCalls};
pub(crate) use tiers::option as backend_option;
pub use trials::{TrialCount, TrialsPlan};
