//! One file per verb.

pub(crate) mod list;
pub(crate) mod replay;
mod replay_flags;
