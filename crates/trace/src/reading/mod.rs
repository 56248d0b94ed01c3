//! What readers of several formats share: lines of JSON, rows of CSV, texts as tokens.

pub(crate) mod lines;
pub(crate) mod tables;
pub(crate) mod token_count;
