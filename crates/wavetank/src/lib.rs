//! The wavetank library: what the command line does, as functions.
//!
//! A plan says everything a run depends on ([`Plan`], made and checked in `plan`); [`replay`] runs it.
#![forbid(unsafe_code)]

mod aic;
mod aic_export;
mod args;
mod bench;
pub mod catalog;
mod deployment;
pub mod doctor;
mod engine_args;
mod host;
mod json_arg;
mod keys;
pub mod live_note;
mod mock;
mod named_args;
mod pages;
mod parallel;
mod plan;
mod pools;
pub mod profile;
mod replay;
mod replay_trace;
mod router_args;
mod scaling_args;
mod seeds;
mod sglang_args;
mod tapes;
#[cfg(test)]
mod test_program;
mod tier_io;
mod tiers;
mod timing_arg;
pub mod timing_note;
mod trace;
mod verdict;
mod whole;

pub use args::ReplayArgs;
pub use bench::{
    AttentionType, BenchArgs, BenchFiles, BenchObserver, BenchPlan, Benched, CallRecording, Checked,
    DatasetPlan, Dtype, Finding, GenerationMode, GpuTier, Merged, Missing, ModelPlan, News, Package,
    PlayArgs, Rank, ReadPolicy, RecordedCalls, Results, SUBMISSIONS, Submission, Teller, Tokenizer,
    TrialCount, TrialsPlan, bench, check_fio_job, check_package, choice, memory_table, merge, package_name,
    play_log, run_parameters, suite,
};
pub use host::outlives_terminal;
pub use mock::{MockArgs, MockPlanned, mock_plan};
pub use pages::{Pictures, PlotFormat, check_kind, read_runs};
pub use parallel::{in_parallel, processors};
pub use plan::{DevicePlan, Plan, ReplayMode, WorkloadPlan};
pub use profile::tier::{LatencyHistogram, PlayedIo};
pub use replay::{Keep, Observer, Replayed, Unwatched, Watch, replay, replay_tape};
pub use replay_trace::ReplayTraceFiles;
pub use seeds::replay_seeds;
pub use tapes::{TapeKey, Tapes};
pub use tier_io::{IoOperation, TierIo};
pub use tiers::relocated as relocated_tiers;
pub use trace::{
    BackgroundWork, BlockStats, CacheCurves, CallAgainst, CallOperation, CallOutputs, CallPace, CallReplay,
    CallReplayArgs, CallReplayPlan, CallVariant, ConfigCheck, ConfigDifference, CurveArgs, CurveUnit,
    Implied, LengthStats, LogInfo, MergeArgs, OverTime, Payload, Rate, RateStats, ReuseBound, Sample,
    ScaleArgs, SessionStats, StorageArgs, SynthArgs, TraceArgs, TraceInfo, TraceInput, TraceOutput,
    TraceStats, TraceWritten, Wall, anonymize_trace, cache_curves, convert_trace, guess_format, lint_trace,
    log_info, merge_traces, replay_calls, scale_trace, slice_trace, synth_trace, trace_info, trace_stats,
};
pub use wavetank_bench::{Load as BenchLoad, PlayPace, Pulse, ScaleMode, Watch as BenchWatch};
pub use wavetank_cache::mrc::Rule as CacheRule;
pub use wavetank_cache::{Promotion, WritePolicy};
pub use wavetank_calls::{Expect, LoadPolicy, Mode as CallMode, StorePolicy};
pub use wavetank_live::gauges;
pub use wavetank_live::kv_events::KvEventsArgs;
pub use wavetank_live::mock::{
    Addresses as MockAddresses, Company as MockCompany, MockPlan, MockReport, Secret, run as mock,
};
pub use wavetank_model::{Error, ErrorKind, Result};
pub use wavetank_report::page::{Page, Run, page};
pub use wavetank_sim::{ConcurrencyUnit, LinkScope};
pub use wavetank_trace::shape::{Choice, Scrub};
pub use wavetank_trace::{Draft, Fill, HashFill, Linted, Meter};
pub use whole::{WholeFile, cannot_write, try_out, write_whole};
