//! Recorded storage calls: what is in a recording, and its calls made again; traces of requests, reshaped.

mod implied;
mod info;
mod keys;
mod log;
mod replay;
mod reshape;
mod text;

pub use implied::Implied;
pub use info::{TraceInfo, trace_info};
pub use log::{LogInfo, log_info};
pub use replay::{
    BackgroundWork, CallAgainst, CallOperation, CallOutputs, CallPace, CallReplay, CallReplayArgs,
    CallReplayPlan, CallVariant, ConfigCheck, ConfigDifference, Payload, StorageArgs, Wall, replay_calls,
};
pub use reshape::{
    MergeArgs, ScaleArgs, SynthArgs, TraceInput, TraceOutput, TraceWritten, anonymize_trace, convert_trace,
    lint_trace, merge_traces, scale_trace, slice_trace, synth_trace,
};

/// The format that the trace `file` is read with, if nobody says it; `-` is standard input.
pub fn guess_format(file: &str) -> wavetank_model::Result<&'static str> {
    wavetank_trace::calls::guess(&wavetank_trace::Input::named(file))
}
