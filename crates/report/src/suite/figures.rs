//! The numbers of one scenario, from its report.

use serde::Serialize;
use serde_json::Value;
use wavetank_model::{Error, Result};

/// What a scenario measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Whose KV it was.
    pub model: String,
    /// Whether its GPU is a model of one.
    pub modelled_gpu: bool,
    /// Users at the beginning.
    pub users: u64,
    /// What the tiers before storage may hold.
    pub memory_bytes: u64,
    /// How long it was measured.
    pub seconds: f64,
    /// Requests served.
    pub requests: u64,
    /// Tokens generated per second.
    pub tokens_per_second: f64,
    /// Requests served per second.
    pub requests_per_second: f64,
    /// From a request's arrival to its answer; absent when nothing was served.
    pub end_to_end_ms: Option<Percentiles>,
    /// Before a worker took the request; absent when nothing was served.
    pub queue_wait_ms: Option<Waiting>,
    /// GiB read from storage per second.
    pub storage_read_gbps: f64,
    /// GiB written to storage per second.
    pub storage_write_gbps: f64,
    /// P95 of reads at the storage device; absent without any.
    pub device_read_p95_ms: Option<f64>,
    /// P95 of writes for requests at the storage device, without entries that other tiers pushed down;
    /// absent without any.
    pub device_write_p95_ms: Option<f64>,
    /// Share of lookups that hit; absent without any.
    pub hit_rate: Option<f64>,
    /// The tiers, fastest first.
    pub tiers: Vec<TierFigures>,
    /// What took the most time.
    pub bottleneck: Blame,
    /// Whether storage is good enough: PASS, FAIL, or N/A where it was not used.
    pub assessment: String,
    /// What the autoscaler found; absent without one.
    pub scaling: Option<ScalingFigures>,
    /// What the trials agree on.
    pub trials: TrialFigures,
    /// Warnings in its report.
    pub warnings: usize,
}

/// A few percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

/// How long requests waited for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Waiting {
    pub mean: f64,
    pub p95: f64,
}

/// One tier's part in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TierFigures {
    /// `gpu`, `cpu` or `storage`.
    pub role: String,
    /// Entries it held in the end.
    pub entries: u64,
    /// Bytes it held in the end.
    pub bytes: u64,
    /// Bytes that requests read from it.
    pub read_bytes: u64,
}

/// What took the most time of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blame {
    /// Which part.
    pub part: String,
    /// Its part of end-to-end latency, from 0 to 1.
    pub share: f64,
    /// The same in words.
    pub sentence: String,
}

/// What the autoscaler found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingFigures {
    /// Users in the end.
    pub final_users: u64,
    /// The most users that were measured and kept within the target.
    pub users_within_target: Option<u64>,
    /// Users at the best throughput.
    pub peak_users: Option<u64>,
    /// That throughput.
    pub peak_tokens_per_second: Option<f64>,
    /// Why it stands where it does.
    pub reason: String,
}

/// What trials agree on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialFigures {
    /// How many there were.
    pub run: u64,
    /// The number they are compared by.
    pub metric: String,
    /// Its median.
    pub median: f64,
    /// Its standard deviation over the mean; absent where it is not known.
    pub cv: Option<f64>,
    /// What to make of it.
    pub verdict: String,
}

/// The backend of a modelled GPU.
const MODELLED: &str = "gpu_sim";
/// The storage tier's role.
const STORAGE: &str = "storage";
/// What an assessment says where there was nothing to judge.
const NOT_JUDGED: &str = "N/A";

impl Figures {
    /// Reads them off a report.
    pub fn of(report: &Value) -> Result<Self> {
        let report = Reader(report);
        let requests = report.whole("/summary/total_requests")?;
        let served = |pointer: &str| Ok::<_, Error>((requests > 0).then_some(report.number(pointer)?));
        Ok(Self {
            model: report.text("/plan/model/name")?,
            modelled_gpu: report.list("/plan/run/tiers")?.iter().any(|tier| tier["backend"] == MODELLED),
            users: report.whole("/plan/run/users")?,
            memory_bytes: memory(report.list("/plan/run/tiers")?),
            seconds: report.number("/summary/elapsed_time")?,
            requests,
            tokens_per_second: report.number("/summary/avg_throughput_tokens_per_sec")?,
            requests_per_second: report.number("/summary/requests_per_second")?,
            end_to_end_ms: match served("/summary/end_to_end_latency_ms/p50")? {
                Some(p50) => Some(Percentiles {
                    p50,
                    p95: report.number("/summary/end_to_end_latency_ms/p95")?,
                    p99: report.number("/summary/end_to_end_latency_ms/p99")?,
                }),
                None => None,
            },
            queue_wait_ms: match served("/summary/queue_wait_ms/mean")? {
                Some(mean) => Some(Waiting { mean, p95: report.number("/summary/queue_wait_ms/p95")? }),
                None => None,
            },
            storage_read_gbps: report.number("/summary/cache_stats/tier_storage_read_bandwidth_gbps")?,
            storage_write_gbps: report.number("/summary/cache_stats/tier_storage_write_bandwidth_gbps")?,
            device_read_p95_ms: report.sample("/summary/cache_stats/storage_read_device_p95_ms"),
            device_write_p95_ms: report.sample("/summary/cache_stats/storage_write_device_p95_ms"),
            hit_rate: match report.whole("/summary/cache_stats/cache_lookups")? {
                0 => None,
                _ => Some(report.number("/summary/cache_stats/cache_hit_rate")?),
            },
            tiers: report.list("/summary/tiers")?.iter().map(tier).collect::<Result<_>>()?,
            bottleneck: Blame {
                part: report.text("/summary/bottleneck/part")?,
                share: report.number("/summary/bottleneck/share")?,
                sentence: report.text("/summary/bottleneck/sentence")?,
            },
            assessment: assessment(report)?,
            scaling: scaling(report)?,
            trials: trials(report)?,
            warnings: report.list("/warnings")?.len(),
        })
    }
}

/// Bytes that the tiers before storage may hold.
fn memory(tiers: &[Value]) -> u64 {
    let before = tiers.iter().filter(|tier| tier["role"] != STORAGE);
    before.filter_map(|tier| tier["capacity_bytes"].as_u64()).sum()
}

/// The verdict, if anything of it is about storage: a cache hit rate alone says nothing about a drive.
fn assessment(report: Reader<'_>) -> Result<String> {
    let status = report.text("/summary/cache_stats/storage_health/overall_status")?;
    let criteria = report.list("/summary/cache_stats/storage_health/criteria")?;
    let judged = criteria.iter().any(|one| one["tier"] == STORAGE && !one["passed"].is_null());
    Ok(if judged { status } else { NOT_JUDGED.to_owned() })
}

fn tier(tier: &Value) -> Result<TierFigures> {
    let tier = Reader(tier);
    Ok(TierFigures {
        role: tier.text("/role")?,
        entries: tier.whole("/entries")?,
        bytes: tier.whole("/bytes")?,
        read_bytes: tier.whole("/reads/bytes")?,
    })
}

fn scaling(report: Reader<'_>) -> Result<Option<ScalingFigures>> {
    let Some(summary) = report.0.get("autoscaling_summary").filter(|summary| !summary.is_null()) else {
        return Ok(None);
    };
    let summary = Reader(summary);
    let sampled = |pointer: &str| summary.sample(pointer).map(|value| value as u64);
    Ok(Some(ScalingFigures {
        final_users: summary.whole("/final_users")?,
        users_within_target: sampled("/most_users_within_target"),
        peak_users: sampled("/peak_user_count"),
        peak_tokens_per_second: summary.sample("/peak_throughput_tokens_per_sec"),
        reason: summary.text("/reason")?,
    }))
}

fn trials(report: Reader<'_>) -> Result<TrialFigures> {
    Ok(TrialFigures {
        run: report.whole("/trials/run")?,
        metric: report.text("/trials/metric")?,
        median: report.number("/trials/agreement/median")?,
        cv: report.sample("/trials/agreement/cv"),
        verdict: report.text("/trials/agreement/verdict")?,
    })
}

/// A report that may be an old or a broken one.
#[derive(Clone, Copy)]
struct Reader<'r>(&'r Value);

impl<'r> Reader<'r> {
    fn taken<T>(self, pointer: &str, what: &str, take: impl Fn(&'r Value) -> Option<T>) -> Result<T> {
        let missing = || {
            Error::input(format!("\"{}\" is not {what}", pointer.trim_start_matches('/').replace('/', ".")))
                .hint("the file is no report of a storage benchmark by this version")
        };
        self.0.pointer(pointer).and_then(take).ok_or_else(missing)
    }

    fn number(self, pointer: &str) -> Result<f64> {
        self.taken(pointer, "a number", Value::as_f64)
    }

    fn whole(self, pointer: &str) -> Result<u64> {
        self.taken(pointer, "a whole number", Value::as_u64)
    }

    fn text(self, pointer: &str) -> Result<String> {
        self.taken(pointer, "a text", |value| value.as_str().map(str::to_owned))
    }

    fn list(self, pointer: &str) -> Result<&'r Vec<Value>> {
        self.taken(pointer, "a list", Value::as_array)
    }

    /// A number that is only there with samples.
    fn sample(self, pointer: &str) -> Option<f64> {
        self.0.pointer(pointer).and_then(Value::as_f64)
    }
}
