//! Simulated serving: requests go in, engines advance in virtual time, events come out.
//!
//! [`run`] is the only entry point of a simulation. A run is one thread, reads no clock and depends on its
//! plan alone. Engines, routers and [`Arrivals`] are also what live runs are made of.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod arena;
mod arrivals;
pub mod engines;
mod handoff;
mod lane;
mod links;
pub mod media;
mod pace;
mod plan;
mod provenance;
pub mod queues;
mod rates;
mod roster;
pub mod routers;
pub mod scaling;
mod shell;
mod snapshot;
mod stretch;
pub mod survey;
pub mod tiers;
pub mod timing;
mod traffic;
mod wakes;
mod world;

pub use arrivals::{Arrival, Arrivals};
pub use lane::TransferId;
pub use plan::{
    ConcurrencyUnit, DecodePool, EngineConfig, Link, LinkScope, Load, Plan, PreemptionMode, SchedulePolicy,
    SglangConfig, SharedLink, TierConfig, TierLoad, TierScope, TierUnit, TierWrite, Transfer, TransferMode,
};
pub use provenance::Provenance;
pub use snapshot::{Mean, PoolState, Snapshot, Traffic, WorkerState};
pub use wavetank_model::WorkerRole;
pub use world::{Outcome, run};
