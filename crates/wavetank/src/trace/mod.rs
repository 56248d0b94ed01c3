//! Traces of requests: what is in one (`stats`), what caches serve of it (`mrc`), how it becomes another
//! (`reshape`). Recorded storage calls: what is in a recording, and its calls made again.

mod implied;
mod info;
mod keys;
mod log;
mod mrc;
mod replay;
mod reshape;
mod source;
mod stats;
mod text;

pub use implied::Implied;
pub use info::{TraceInfo, trace_info};
pub use log::{LogInfo, log_info};
pub use mrc::{CacheCurves, CurveArgs, CurveUnit, Sample, cache_curves};
pub use replay::{
    BackgroundWork, CallAgainst, CallOperation, CallOutputs, CallPace, CallReplay, CallReplayArgs,
    CallReplayPlan, CallVariant, ConfigCheck, ConfigDifference, Payload, StorageArgs, Wall, replay_calls,
};
pub use reshape::{
    MergeArgs, ScaleArgs, SynthArgs, TraceInput, TraceOutput, TraceWritten, anonymize_trace, convert_trace,
    lint_trace, merge_traces, scale_trace, slice_trace, synth_trace,
};

pub use source::TraceArgs;
pub use stats::{
    BlockStats, LengthStats, OverTime, Rate, RateStats, ReuseBound, SessionStats, TraceStats, trace_stats,
};

/// The format that the trace `file` is read with, if nobody says it; `-` is standard input.
pub fn guess_format(file: &str) -> wavetank_model::Result<&'static str> {
    wavetank_trace::calls::guess(&wavetank_trace::Input::named(file))
}
