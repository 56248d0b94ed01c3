//! What a cache server tells of itself: spans of requests, and metrics.
#![forbid(unsafe_code)]

mod bus;

pub use bus::Bus;
