//! Measured profiles: timing tables that are looked at, and tiers that are measured.

pub mod tier;
mod timing;

pub use timing::{Measured, measured};
