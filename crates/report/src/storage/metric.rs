//! Which number tells one drive from another depends on how much host memory the run had (product text,
//! "Recommended Metrics by Configuration").

use super::{Clock, GIB, Setting, StorageSummary};
use crate::statistics::ratio;
use wavetank_model::TierRole;

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
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::DecodeBytesRead => "How much was read from the storage tier in the window.",
            Self::WallClock => "How many tokens users got in each second of the window.",
            Self::StorageIo => "How many tokens users got for each second that requests spent on entries.",
            Self::StorageAssessment => {
                "How many tokens' worth of entries went in or out of the storage tier in each second."
            }
        }
    }

    fn standing(self, setting: &Setting) -> Standing {
        if self.is_primary(setting) {
            return Standing::Primary;
        }
        match self {
            Self::StorageIo if setting.cpu_mem_bytes == 0 => Standing::Misleading(
                "without host memory a faster drive does more I/O in the same time, so tokens and I/O time \
                 grow together: drives 2.6x apart in bytes read were 1.12x apart in this number",
            ),
            _ => Standing::Secondary,
        }
    }

    /// No number of virtual time tells drives apart. Where the number of requests is given, the seed says how
    /// much is read, and only how long it took tells.
    fn is_primary(self, setting: &Setting) -> bool {
        let &Setting { clock, counted, cpu_mem_bytes, .. } = setting;
        if matches!(clock, Clock::Virtual | Clock::VirtualLogged) {
            return false;
        }
        match self {
            Self::WallClock => counted || cpu_mem_bytes < SOUND_FROM_BYTES,
            Self::DecodeBytesRead => !counted && cpu_mem_bytes == 0,
            Self::StorageIo => !counted && cpu_mem_bytes >= SOUND_FROM_BYTES,
            Self::StorageAssessment => false,
        }
    }
}

impl Metric {
    /// Whether runs should be compared by it.
    pub(crate) fn is_primary(&self) -> bool {
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
                MetricName::WallClock => {
                    (self.per_second(|run| run.requests.generated_tokens as f64), "tokens/s")
                }
                MetricName::StorageIo => {
                    (ratio(tokens, self.requests.total_storage.as_seconds()), "tokens/s of I/O time")
                }
                MetricName::StorageAssessment => (self.per_second(Self::storage_tokens), "tokens/s"),
            };
            Metric { name, value, unit, standing: name.standing(&self.setting) }
        })
    }

    /// One of them.
    pub fn metric(&self, name: MetricName) -> Metric {
        self.metrics()[name as usize]
    }

    /// The one to compare runs by; where none is primary, tokens by time, which is then only one of several.
    pub fn primary_metric(&self) -> Metric {
        let primary = self.metrics().into_iter().find(Metric::is_primary);
        primary.unwrap_or_else(|| self.metric(MetricName::WallClock))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The standings with no, a little and much host memory.
    fn standings(change: impl Fn(&mut Setting)) -> [String; 3] {
        let target = json!({ "p95_ms": 1.0, "p99_ms": 1.0, "p999_ms": 1.0, "p9999_ms": 1.0 });
        let setting = json!({
            "tiers": [], "bytes_per_token": 1, "targets": [target, target, target], "cpu_mem_bytes": 0,
            "generation_ns_per_token": 0, "seed": 0, "profile": "latency",
        });
        let setting: Setting = serde_json::from_value(setting).expect("the rest has defaults");
        assert_eq!((setting.clock, setting.counted, setting.scaled), (Clock::Wall, false, false));
        [0, 1, SOUND_FROM_BYTES].map(|cpu_mem_bytes| {
            let mut setting = Setting { cpu_mem_bytes, ..setting.clone() };
            change(&mut setting);
            let mark = |name: MetricName| match name.standing(&setting) {
                Standing::Primary => 'P',
                Standing::Secondary => 's',
                Standing::Misleading(_) => '!',
            };
            MetricName::ALL.map(mark).iter().collect()
        })
    }

    #[test]
    fn host_memory_decides_what_counts() {
        assert_eq!(standings(|_| {}), ["PP!s", "sPss", "ssPs"]);
    }

    /// Broken by: comparing drives by what the seed decides.
    #[test]
    fn with_a_number_of_requests_only_time_counts() {
        assert_eq!(standings(|setting| setting.counted = true), ["sP!s", "sPss", "sPss"]);
    }

    /// Broken by: comparing drives by a time that is not theirs.
    #[test]
    fn nothing_is_primary_in_virtual_time() {
        for clock in [Clock::Virtual, Clock::VirtualLogged] {
            assert_eq!(standings(|setting| setting.clock = clock), ["ss!s", "ssss", "ssss"]);
        }
    }
}
