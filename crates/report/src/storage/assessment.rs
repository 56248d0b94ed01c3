//! Is the storage good enough? Criteria of the product text; those without samples do not apply.

use serde::{Deserialize, Serialize};
use wavetank_model::{Nanos, TierRole};

use super::{Busy, Clock, GIB, StorageSummary, Traffic};
use crate::statistics::ratio;

/// What the storage is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// How long operations take.
    #[default]
    Latency,
    /// How much it moves.
    Throughput,
}

/// The thresholds (spec/kv-bench.md 15).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Criteria {
    /// 95th percentile of storage writes at the device stays below.
    pub storage_write_p95_ms: f64,
    /// 95th percentile of storage reads at the device stays below.
    pub storage_read_p95_ms: f64,
    /// 95th percentile of reads and writes of host memory stays below.
    pub cpu_p95_ms: f64,
    /// More of the lookups than this are hits.
    pub hit_rate: f64,
    /// The storage tier is read faster, in GiB/s.
    pub read_bandwidth_gbps: f64,
    /// The storage tier is written faster, in GiB/s.
    pub write_bandwidth_gbps: f64,
}

impl Default for Criteria {
    fn default() -> Self {
        Self {
            storage_write_p95_ms: 500.0,
            storage_read_p95_ms: 200.0,
            cpu_p95_ms: 150.0,
            hit_rate: 0.30,
            read_bandwidth_gbps: 0.0,
            write_bandwidth_gbps: 0.0,
        }
    }
}

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Criterion {
    /// With its threshold.
    pub name: String,
    /// The tier it is about; absent where it is about the whole cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierRole>,
    /// The threshold.
    pub target: f64,
    /// What was found.
    pub actual: f64,
    /// Of both.
    pub unit: &'static str,
    /// Absent when there was nothing to judge.
    pub passed: Option<bool>,
    /// Why there was nothing to judge.
    pub note: &'static str,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// Every question of the profile.
    pub criteria: Vec<Criterion>,
}

/// Which side of the threshold is good.
#[derive(Clone, Copy)]
enum Good {
    Below,
    Above,
}

/// What a criterion measures: how many samples there were, and the value.
type Found = (u64, f64);

impl Criterion {
    fn new(name: String, unit: &'static str, (good, target): (Good, f64), (samples, actual): Found) -> Self {
        let passed = match good {
            Good::Below => actual < target,
            Good::Above => actual > target,
        };
        let note = if samples > 0 { "" } else { "not applicable: no samples" };
        Self { name, tier: None, target, actual, unit, passed: (samples > 0).then_some(passed), note }
    }

    fn of_tier(self, role: TierRole) -> Self {
        Self { tier: Some(role), ..self }
    }

    /// Where nothing was moved there is nothing to judge.
    fn unless_logged(self, clock: Clock) -> Self {
        match clock {
            Clock::Wall | Clock::Virtual | Clock::Simulated => self,
            Clock::VirtualLogged => {
                Self { passed: None, note: "not applicable: virtual time, nothing moved", ..self }
            }
        }
    }

    fn below_ms(name: &str, target: f64, found: Found) -> Self {
        Self::new(format!("{name} < {target}ms"), "ms", (Good::Below, target), found)
    }

    fn above_gbps(name: &str, target: f64, found: Found) -> Self {
        Self::new(format!("{name} > {target} GiB/s"), "GiB/s", (Good::Above, target), found)
    }

    fn hit_rate(target: f64, found: Found) -> Self {
        let percent = (target * 100.0).round();
        Self::new(format!("Cache Hit Rate > {percent}%"), "ratio", (Good::Above, target), found)
    }
}

impl Assessment {
    /// Criteria that passed.
    pub fn passed_count(&self) -> usize {
        self.criteria.iter().filter(|criterion| criterion.passed == Some(true)).count()
    }

    /// Criteria that apply.
    pub fn total_count(&self) -> usize {
        self.criteria.iter().filter(|criterion| criterion.passed.is_some()).count()
    }

    /// Whether there was anything to judge.
    pub fn is_judged(&self) -> bool {
        self.total_count() > 0
    }

    /// Whether every criterion that applies passed, and there was one.
    pub fn passed(&self) -> bool {
        self.is_judged() && self.passed_count() == self.total_count()
    }

    /// The answer in a word or two.
    pub fn status(&self) -> &'static str {
        match (self.is_judged(), self.passed()) {
            (false, _) => "NOT APPLICABLE",
            (true, true) => "PASS",
            (true, false) => "FAIL",
        }
    }
}

impl StorageSummary {
    /// Judges the storage by the criteria of the setting's profile.
    pub fn assessment(&self) -> Assessment {
        let criteria = &self.setting.criteria;
        let criteria = match self.setting.profile {
            Profile::Latency => self.latency_criteria(criteria),
            Profile::Throughput => self.throughput_criteria(criteria),
        };
        Assessment { criteria }
    }

    fn latency_criteria(&self, criteria: &Criteria) -> Vec<Criterion> {
        let storage = self.tier(TierRole::Storage);
        let write = storage.map(|tier| (tier.writes.operations, tier.writes.device.p95)).unwrap_or_default();
        let read = storage.map(|tier| (tier.reads.operations, tier.reads.device.p95)).unwrap_or_default();
        let memory = (self.host_memory.count(), self.host_memory.p95);
        let touched = self.touches.all();
        let below =
            |name, target, found| Criterion::below_ms(name, target, found).unless_logged(self.setting.clock);
        vec![
            below("NVMe Write P95", criteria.storage_write_p95_ms, write).of_tier(TierRole::Storage),
            below("NVMe Read P95", criteria.storage_read_p95_ms, read).of_tier(TierRole::Storage),
            below("CPU RAM P95", criteria.cpu_p95_ms, memory).of_tier(TierRole::Cpu),
            Criterion::hit_rate(criteria.hit_rate, (touched.lookups(), touched.hit_rate())),
        ]
    }

    fn throughput_criteria(&self, criteria: &Criteria) -> Vec<Criterion> {
        let traffic = self.traffic(TierRole::Storage);
        // A second of virtual time says nothing about a drive, the time at the device does.
        let rate = |bytes: fn(&Traffic) -> u64, busy: fn(&Busy) -> Nanos| match self.setting.clock {
            Clock::Wall | Clock::Simulated => {
                self.per_second(|run| bytes(&run.traffic(TierRole::Storage)) as f64 / GIB)
            }
            Clock::Virtual | Clock::VirtualLogged => self.added(|run| {
                run.tier(TierRole::Storage).map_or(0.0, |tier| {
                    ratio(bytes(&tier.traffic) as f64 / GIB, busy(&tier.busy).as_seconds())
                })
            }),
        };
        let read = (traffic.reads, rate(|traffic| traffic.read_bytes, |busy| busy.reading));
        let write = (traffic.writes, rate(|traffic| traffic.written_bytes, |busy| busy.writing));
        let above = |name, target, found| {
            let criterion = Criterion::above_gbps(name, target, found).unless_logged(self.setting.clock);
            criterion.of_tier(TierRole::Storage)
        };
        vec![
            above("Storage Read Bandwidth", criteria.read_bandwidth_gbps, read),
            above("Storage Write Bandwidth", criteria.write_bandwidth_gbps, write),
        ]
    }
}
