//! What is looked at: a machine, a directory on it, and what can be tried out there.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit};
use wavetank_model::Result;
use wavetank_store::backends::{DeviceMemory, gpu_devices};
use wavetank_store::{TriedRing, try_ring};

use super::trial;
use crate::bench::{IO_DEPTH, Room, room, tracing_missing};
use crate::host::{Host, Mount, mount_of};
use crate::parallel::processors;

/// A machine and a directory on it.
pub(super) struct Subject {
    /// The files of its kernel.
    pub(super) host: Host,
    /// The directory, absolute and without links.
    pub(super) directory: PathBuf,
    /// Processors that this process may use.
    pub(super) processors: u32,
    /// What no file tells.
    pub(super) trials: Trials,
}

/// What is found out by trying; tests say what comes of it.
#[derive(Clone, Copy)]
pub(super) struct Trials {
    /// Makes an io_uring with the buffers of a lane.
    pub(super) ring: fn() -> io::Result<TriedRing>,
    /// Writes, reads and removes a file past the page cache; what the file system does not do.
    pub(super) direct: fn(&Path) -> Result<Vec<String>>,
    /// Asks the driver for its devices.
    pub(super) gpus: fn() -> Result<Vec<DeviceMemory>>,
    /// What this process may use of something.
    pub(super) limit: fn(Resource) -> Rlimit,
    /// The room where a directory is.
    pub(super) room: fn(&Path) -> Result<Room>,
    /// What keeps bpftrace from running, and what to do about it.
    pub(super) tracing: fn() -> Option<(String, &'static str)>,
}

impl Subject {
    /// This machine.
    pub(super) fn here(directory: PathBuf) -> Self {
        let trials = Trials {
            ring: || try_ring(IO_DEPTH as usize),
            direct: trial::direct,
            gpus: gpu_devices,
            limit: getrlimit,
            room,
            tracing: tracing_missing,
        };
        Self { host: Host::here(), directory, processors: processors() as u32, trials }
    }

    /// The mount that the directory is on.
    pub(super) fn mount(&self) -> Option<Mount> {
        mount_of(&self.host, &self.directory)
    }
}
