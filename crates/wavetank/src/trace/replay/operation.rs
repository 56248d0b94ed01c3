//! Calls by operation, in the reference's columns (spec/storage-trace.md 6).

use std::fmt::Write;

use serde::Serialize;
use wavetank_calls::{Act, CallTimes, Count, PlayReport, Spread, Tally};
use wavetank_model::Nanos;

const PREFETCH: &str = "lmcache.v1.distributed.storage_manager.StorageManager.submit_prefetch_task";
const RESERVE: &str = "lmcache.v1.distributed.storage_manager.StorageManager.reserve_write";
const FINISH_WRITE: &str = "lmcache.v1.distributed.storage_manager.StorageManager.finish_write";
const ENTER: &str = "lmcache.v1.distributed.storage_manager.StorageManager.read_prefetched_results.__enter__";
const EXIT: &str = "lmcache.v1.distributed.storage_manager.StorageManager.read_prefetched_results.__exit__";
const RELEASE: &str = "lmcache.v1.distributed.storage_manager.StorageManager.finish_read_prefetched";

/// Calls of one operation and how long they took; percentiles are nearest ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallOperation {
    /// Its name in recordings.
    pub qualname: &'static str,
    /// How many.
    pub count: u64,
    /// How many of them failed.
    pub errors: u64,
    /// Arithmetic mean.
    pub mean_ms: f64,
    /// 50th percentile.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The shortest.
    pub min_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// The name of a call in recordings.
pub(super) fn qualname(act: &Act<'_>) -> &'static str {
    match act {
        Act::Prefetch(_) => PREFETCH,
        Act::Reserve { .. } => RESERVE,
        Act::FinishWrite(_) => FINISH_WRITE,
        Act::Enter(_) => ENTER,
        Act::Exit(_) => EXIT,
        Act::Release(..) | Act::GiveBack(..) => RELEASE,
    }
}

/// By name, as measured if they were; operations of which no call was made are left out.
pub(super) fn operations(tally: &Tally, measured: Option<&PlayReport>) -> Vec<CallOperation> {
    let counts = &tally.operations;
    let mut all: Vec<CallOperation> = [
        (PREFETCH, counts.prefetch, tally.took()),
        (RESERVE, counts.reserve_write, Spread::default()),
        (FINISH_WRITE, counts.finish_write, Spread::default()),
        (ENTER, counts.read_enter, Spread::default()),
        (EXIT, counts.read_exit, Spread::default()),
        (RELEASE, counts.release, Spread::default()),
    ]
    .into_iter()
    .filter(|(_, count, _)| count.calls > 0)
    .map(|(qualname, count, took)| match measured.and_then(|report| times_of(report, qualname)) {
        // A recording may tell of a failure that a device repeats.
        Some(times) => {
            let failed = (count.failed + times.failed).min(count.calls);
            operation(qualname, Count { failed, ..count }, times.latency)
        }
        None => operation(qualname, count, took),
    })
    .collect();
    all.sort_by_key(|operation| operation.qualname);
    all
}

/// What calls of this name took.
fn times_of<'r>(report: &'r PlayReport, qualname: &str) -> Option<&'r CallTimes> {
    let name = qualname.rsplit("StorageManager.").next()?.replace("__", "");
    report.calls.iter().find(|calls| calls.call == name)
}

fn operation(qualname: &'static str, count: Count, took: Spread) -> CallOperation {
    let ms = |nanos: u64| Nanos(nanos).as_ms();
    let Spread { mean_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, .. } = took;
    CallOperation {
        qualname,
        count: count.calls,
        errors: count.failed,
        mean_ms: mean_ns / 1e6,
        p50_ms: ms(p50_ns),
        p90_ms: ms(p90_ns),
        p99_ms: ms(p99_ns),
        min_ms: ms(min_ns),
        max_ms: ms(max_ns),
    }
}

/// The reference's `trace_replay_ops.csv`.
pub(super) fn csv(operations: &[CallOperation]) -> String {
    let mut text = "qualname,count,errors,mean_ms,p50_ms,p90_ms,p99_ms,min_ms,max_ms\n".to_owned();
    for operation in operations {
        let CallOperation { qualname, count, errors, .. } = operation;
        let CallOperation { mean_ms, p50_ms, p90_ms, p99_ms, min_ms, max_ms, .. } = operation;
        let times = [mean_ms, p50_ms, p90_ms, p99_ms, min_ms, max_ms].map(|ms| format!("{ms:.6}"));
        let _ = writeln!(text, "{qualname},{count},{errors},{}", times.join(","));
    }
    text
}
