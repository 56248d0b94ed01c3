//! Machines for tests.

use wavetank_model::{Error, Result};
use wavetank_store::backends::DeviceMemory;

use super::machine::Machine;

/// A machine without a driver.
pub(super) fn without_gpu() -> Machine {
    Machine {
        cores: 8,
        memory_bytes: Some(64 << 30),
        available_bytes: Some(60 << 30),
        gpu: no_driver,
        variable: |_| None,
    }
}

/// One with a GPU of 24 GiB, 20 of them free.
pub(super) fn with_gpu() -> Machine {
    Machine {
        cores: 64,
        memory_bytes: None,
        available_bytes: None,
        gpu: |_| Ok(DeviceMemory { free_bytes: 20 << 30, total_bytes: 24 << 30 }),
        variable: |_| None,
    }
}

fn no_driver(_: u32) -> Result<DeviceMemory> {
    Err(Error::unsupported("cuda: no NVIDIA driver").hint("gpu_sim"))
}
