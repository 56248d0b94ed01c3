//! Drivers over the rest: questions that take a simulation and something to hold it against.
#![forbid(unsafe_code)]

pub mod validate;
