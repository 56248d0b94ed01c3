//! Numbers as text.

pub mod json;
pub mod table;
