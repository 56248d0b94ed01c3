//! What a tier of a cache stands for.

use serde::{Deserialize, Serialize};

/// What a tier of a cache stands for, whatever holds its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierRole {
    /// Memory of an accelerator.
    Gpu,
    /// Memory of the host.
    Cpu,
    /// A drive, a file system or an object store.
    Storage,
}

impl TierRole {
    /// Every role, the fastest first.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Cpu, Self::Storage];

    /// Its name in plans and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Cpu => "cpu",
            Self::Storage => "storage",
        }
    }
}
