//! One file per verb.

#[cfg_attr(not(test), expect(dead_code, reason = "the verb that takes them comes with the driver"))]
mod bench_flags;
pub(crate) mod compare;
pub(crate) mod list;
pub(crate) mod profile;
pub(crate) mod replay;
mod replay_flags;
pub(crate) mod validate;
