//! The facade as a library user sees it: acceptance cases, laws, and checks against shared data.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod disaggregated;
mod drive;
mod graphs;
mod laws;
mod online;
mod play;
mod profile_tier;
mod router;
mod runs;
mod scaling;
mod scaling_laws;
mod shared;
mod tiers;
