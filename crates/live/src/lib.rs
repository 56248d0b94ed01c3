//! The simulated engines on the wall clock: a thread per worker drives the engine that `sim` drives in
//! virtual time, and sleeps while a pass would run.
//!
//! [`run`] replays a workload in real time; [`mock`] lets the workers answer whoever asks; [`kv_events`]
//! tells routers what is in their caches, and [`gauges`] shows what they are doing.
#![forbid(unsafe_code)]

mod clock;
mod fleet;
pub mod gauges;
pub mod kv_events;
pub mod mock;
mod online;
mod pass;
mod punctuality;
mod worker;

pub use online::{Ran, run};
pub use punctuality::{Lateness, Punctuality};
