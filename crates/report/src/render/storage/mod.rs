//! The results of a storage benchmark as JSON, as text and as spreadsheets (spec/kv-bench.md 16).

mod cache;
mod histograms;
mod json;
mod ranks;
mod sheet;
mod table;
mod tiers;

pub use self::histograms::read as read_histograms;
pub use self::json::json;
pub use self::ranks::ranks;
pub(super) use self::sheet::whole as whole_sheet;
pub use self::sheet::{csv, xlsx};
pub use self::table::table;

use serde_json::{Map, Value, json};

use crate::Spread;

/// Mean and percentiles in milliseconds, as the reference names them.
fn latency(spread: &Spread) -> Map<String, Value> {
    let mean = [("mean", spread.mean)];
    mean.into_iter().chain(spread.percentiles()).map(|(key, ms)| (key.to_owned(), json!(ms))).collect()
}

/// The object that a literal is.
fn object(literal: Value) -> Map<String, Value> {
    let Value::Object(object) = literal else { unreachable!("the literal is an object") };
    object
}
