//! What a backend does that is written to for long.

use serde::{Deserialize, Serialize};

/// Writing that goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sustained {
    /// Bytes of an operation.
    pub bytes: u64,
    /// Operations in flight.
    pub depth: u32,
    /// How long each step of the course is.
    pub step_seconds: f64,
    /// The bandwidth at the beginning.
    pub burst_bytes_per_second: f64,
    /// The bandwidth in the second half.
    pub steady_bytes_per_second: f64,
    /// When it fell from the one to the other; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fell_at_seconds: Option<f64>,
    /// The bandwidth step by step.
    pub course_bytes_per_second: Vec<f64>,
}
