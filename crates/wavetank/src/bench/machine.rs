//! What a plan depends on besides flags: the machine it is made on.

use std::thread;

use wavetank_model::{Error, Result};
use wavetank_store::backends::{DeviceMemory, device_memory};

use super::rank::{self, Variable};
use crate::host::Host;

/// A machine.
pub(super) struct Machine {
    /// Its processor cores.
    pub(super) cores: u32,
    /// Its main memory, where that is known.
    pub(super) memory_bytes: Option<u64>,
    /// What of it this process may take, where that is known.
    pub(super) available_bytes: Option<u64>,
    /// The memory of one of its GPUs, or what is missing.
    pub(super) gpu: fn(u32) -> Result<DeviceMemory>,
    /// What a launcher of many processes told this one.
    pub(super) variable: Variable,
}

impl Machine {
    /// This one.
    pub(super) fn here() -> Self {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let host = Host::here();
        Self {
            cores,
            memory_bytes: host.memory_bytes("MemTotal"),
            available_bytes: host
                .memory_bytes("MemAvailable")
                .into_iter()
                .chain(host.group_memory_bytes())
                .min(),
            gpu: device_memory,
            variable: rank::variable,
        }
    }

    /// One that nothing is known of, for what of a plan does not follow from a machine.
    pub(super) fn any() -> Self {
        let gpu = |_| Err(Error::unsupported("no GPU is looked for"));
        Self { cores: 1, memory_bytes: None, available_bytes: None, gpu, variable: |_| None }
    }
}
