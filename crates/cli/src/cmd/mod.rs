//! One file per verb.

mod advice_flags;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod device_loop;
pub(crate) mod doctor;
pub(crate) mod help;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mock;
mod picture_flags;
pub(crate) mod profile;
mod recording_flags;
pub(crate) mod replay;
mod replay_flags;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod sweep;
pub(crate) mod trace;
pub(crate) mod validate;
