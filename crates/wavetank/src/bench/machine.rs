//! What a plan depends on besides flags: the machine it is made on.

use std::thread;

use wavetank_model::Result;
use wavetank_store::backends::{DeviceMemory, device_memory};

/// A machine.
pub(super) struct Machine {
    /// Its processor cores.
    pub(super) cores: u32,
    /// The memory of one of its GPUs, or what is missing.
    pub(super) gpu: fn(u32) -> Result<DeviceMemory>,
}

impl Machine {
    /// This one.
    pub(super) fn here() -> Self {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Self { cores, gpu: device_memory }
    }
}
