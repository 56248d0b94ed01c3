//! Operations by the size of the entry.

use serde::{Deserialize, Serialize};

use crate::Spread;
use crate::statistics::ratio;

const MIB: u64 = 1 << 20;

/// Entries of about one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SizeClass {
    /// Below 1 MiB.
    #[serde(rename = "<1 MiB")]
    Below1,
    /// From there to below 4 MiB.
    #[serde(rename = "1-4 MiB")]
    Below4,
    /// From there to below 16 MiB.
    #[serde(rename = "4-16 MiB")]
    Below16,
    /// From there to below 64 MiB.
    #[serde(rename = "16-64 MiB")]
    Below64,
    /// From there to below 256 MiB.
    #[serde(rename = "64-256 MiB")]
    Below256,
    /// From there to below 1 GiB.
    #[serde(rename = "256-1024 MiB")]
    Below1024,
    /// From 1 GiB on.
    #[serde(rename = ">=1 GiB")]
    Larger,
}

impl SizeClass {
    /// Every size class, the smallest first.
    pub const ALL: [Self; 7] = [
        Self::Below1,
        Self::Below4,
        Self::Below16,
        Self::Below64,
        Self::Below256,
        Self::Below1024,
        Self::Larger,
    ];

    /// That of an entry.
    pub fn of(bytes: u64) -> Self {
        Self::ALL.into_iter().find(|class| bytes < class.below_bytes()).unwrap_or(Self::Larger)
    }

    fn below_bytes(self) -> u64 {
        match self {
            Self::Below1 => MIB,
            Self::Below4 => 4 * MIB,
            Self::Below16 => 16 * MIB,
            Self::Below64 => 64 * MIB,
            Self::Below256 => 256 * MIB,
            Self::Below1024 => 1024 * MIB,
            Self::Larger => u64::MAX,
        }
    }
}

/// Operations on entries of about one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeSummary {
    /// The size class.
    pub class: SizeClass,
    /// Bytes of the entries.
    pub bytes: u64,
    /// At the device.
    pub device: Spread,
    /// The time at the device for each MiB of an entry.
    pub device_per_mib: Spread,
}

impl SizeSummary {
    /// Bytes for each second that an operation was at the device.
    pub(crate) fn bytes_per_device_second(&self) -> f64 {
        ratio(self.bytes as f64, self.device.sum().as_seconds())
    }
}
