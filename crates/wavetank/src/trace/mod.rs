//! Recorded storage calls: what is in a recording, and its calls made again.

mod implied;
mod info;
mod keys;
mod log;
mod replay;
mod text;

pub use implied::Implied;
pub use info::{TraceInfo, trace_info};
pub use log::{LogInfo, log_info};
pub use replay::{
    BackgroundWork, CallAgainst, CallOperation, CallOutputs, CallPace, CallReplay, CallReplayArgs,
    CallReplayPlan, CallVariant, ConfigCheck, ConfigDifference, Payload, StorageArgs, Wall, replay_calls,
};
