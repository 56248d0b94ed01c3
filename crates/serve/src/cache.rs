//! What both doors of the server work on.

use std::time::Duration;

use wavetank_calls::Storage;
use wavetank_telemetry::Bus;

use crate::counters::Counters;

/// The storage layer with what is counted and told of it.
pub struct Cache {
    /// Where objects are.
    pub storage: Storage,
    /// What is counted.
    pub counters: Counters,
    /// Who is told.
    pub bus: Bus,
    /// How long a client waits for what is behind memory, before it is a miss.
    pub patience: Duration,
}
