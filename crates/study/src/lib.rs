//! Drivers over the rest: questions that take many simulations, or one and something to hold it against.
#![forbid(unsafe_code)]

pub mod advice;
pub mod device_loop;
pub mod residual;
mod search;
pub mod sweep;
pub mod validate;
