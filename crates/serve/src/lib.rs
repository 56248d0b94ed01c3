//! The KV-cache server: the storage layer behind the protocols that clients speak.
#![forbid(unsafe_code)]

pub mod resp;
