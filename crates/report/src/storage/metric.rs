//! Which number tells one drive from another depends on how much host memory the run had (product text,
//! "Recommended Metrics by Configuration").

use super::{GIB, StorageSummary, TierRole};
use crate::statistics::ratio;

/// From this much host memory on, storage throughput is a sound metric.
const SOUND_FROM_BYTES: u64 = 4 << 30;

/// A metric that may stand for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricName {
    /// Bytes out of the storage tier.
    DecodeBytesRead,
    /// Generated tokens by time.
    WallClock,
    /// Generated tokens by the summed time on entries.
    StorageIo,
    /// Tokens in and out of the storage tier by time.
    StorageAssessment,
}

/// What a metric is worth in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Compare runs by it.
    Primary,
    /// It goes along.
    Secondary,
    /// It hides differences; the sentence says why.
    Misleading(&'static str),
}

/// A metric of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Which.
    pub name: MetricName,
    /// Its value.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// What it is worth here.
    pub standing: Standing,
}

impl MetricName {
    /// Every metric, in the order of a report.
    pub const ALL: [Self; 4] =
        [Self::DecodeBytesRead, Self::WallClock, Self::StorageIo, Self::StorageAssessment];

    /// Its key in reports.
    pub fn key(self) -> &'static str {
        match self {
            Self::DecodeBytesRead => "decode_bytes_read",
            Self::WallClock => "wall_clock",
            Self::StorageIo => "storage_io",
            Self::StorageAssessment => "storage_assessment",
        }
    }

    /// What it is called where people read it.
    pub fn title(self) -> &'static str {
        match self {
            Self::DecodeBytesRead => "Decode bytes read",
            Self::WallClock => "Wall-clock throughput",
            Self::StorageIo => "Storage throughput",
            Self::StorageAssessment => "Storage assessment throughput",
        }
    }

    /// What it says, in one sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::DecodeBytesRead => "How much was read from the storage tier in the window.",
            Self::WallClock => "How many tokens users got in each second of the window.",
            Self::StorageIo => "How many tokens users got for each second that requests spent on entries.",
            Self::StorageAssessment => {
                "How many tokens' worth of entries went in or out of the storage tier in each second."
            }
        }
    }

    fn standing(self, cpu_mem_bytes: u64) -> Standing {
        match self {
            Self::WallClock if cpu_mem_bytes < SOUND_FROM_BYTES => Standing::Primary,
            Self::DecodeBytesRead if cpu_mem_bytes == 0 => Standing::Primary,
            Self::StorageIo if cpu_mem_bytes >= SOUND_FROM_BYTES => Standing::Primary,
            Self::StorageIo if cpu_mem_bytes == 0 => Standing::Misleading(
                "without host memory a faster drive does more I/O in the same time, so tokens and I/O time \
                 grow together: drives 2.6x apart in bytes read were 1.12x apart in this number",
            ),
            _ => Standing::Secondary,
        }
    }
}

impl Metric {
    /// Whether runs should be compared by it.
    pub fn is_primary(&self) -> bool {
        self.standing == Standing::Primary
    }
}

impl StorageSummary {
    /// Every metric that may stand for the run, and what it is worth here.
    pub fn metrics(&self) -> [Metric; 4] {
        MetricName::ALL.map(|name| {
            let tokens = self.requests.generated_tokens as f64;
            let (value, unit) = match name {
                MetricName::DecodeBytesRead => {
                    (self.traffic(TierRole::Storage).read_bytes as f64 / GIB, "GiB")
                }
                MetricName::WallClock => (self.per_second(tokens), "tokens/s"),
                MetricName::StorageIo => {
                    (ratio(tokens, self.requests.total_storage.as_seconds()), "tokens/s of I/O time")
                }
                MetricName::StorageAssessment => (self.per_second(self.storage_tokens()), "tokens/s"),
            };
            Metric { name, value, unit, standing: name.standing(self.setting.cpu_mem_bytes) }
        })
    }

    /// One of them.
    pub fn metric(&self, name: MetricName) -> Metric {
        self.metrics()[name as usize]
    }

    /// The one to compare runs by.
    pub fn primary_metric(&self) -> Metric {
        self.metrics().into_iter().find(Metric::is_primary).expect("one is primary with any memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_memory_decides_what_counts() {
        let found = [0, 1, SOUND_FROM_BYTES].map(|bytes| {
            MetricName::ALL.map(|name| match name.standing(bytes) {
                Standing::Primary => 'P',
                Standing::Secondary => 's',
                Standing::Misleading(_) => '!',
            })
        });
        assert_eq!(found, [['P', 'P', '!', 's'], ['s', 'P', 's', 's'], ['s', 's', 'P', 's']]);
    }
}
