//! A log of operations, played on a tier of the benchmark.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use wavetank_bench::{Deed, PlayPace, Played, Step};
use wavetank_model::{Error, Result, TierRole};
use wavetank_report::storage::GIB;
use wavetank_store::meter::{Gauge, Work};
use wavetank_trace::Input;
use wavetank_trace::calls::{self, Call, Operation, TierCall};

use super::plan::BenchPlan;
use super::run::LEFT_BEHIND;

/// Which log, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayArgs {
    /// A path, or `-`.
    pub log: String,
    /// A row of the storage-call formats.
    pub format: String,
    /// The tier whose operations are played; all of them when absent.
    pub tier: Option<u8>,
    /// When they are begun.
    pub pace: PlayPace,
}

/// Plays a log on the storage tier of `plan`.
pub fn play_log(plan: &BenchPlan, args: &PlayArgs, stop: &AtomicBool) -> Result<Value> {
    let mut run = plan.run.clone();
    run.tiers.retain(|tier| tier.role == TierRole::Storage);
    let folder = plan.temporary_cache.then(super::run::temporary).transpose()?;
    if let (Some(folder), Some(storage)) = (&folder, run.tiers.first_mut()) {
        storage.location = folder.path().to_string_lossy().into_owned();
    }
    let mut skipped = 0u64;
    let calls = calls::read(&args.format, &Input::named(&args.log))?;
    let mut steps = calls.filter_map(|call| match call {
        Ok(Call::Tier(call)) if args.tier.is_some_and(|tier| tier != call.tier) => {
            skipped += 1;
            None
        }
        Ok(Call::Tier(call)) => Some(Ok(step(call))),
        Ok(Call::Storage(_)) => Some(Err(no_operation(args))),
        Err(error) => Some(Err(error)),
    });
    let played = wavetank_bench::play(&run, &mut steps, args.pace, stop);
    drop(steps);
    let cleaned = wavetank_bench::clean(&run);
    let mut played = played?;
    // What was measured stands, whatever is left behind.
    played.notes.extend(cleaned.err().map(|error| format!("{LEFT_BEHIND}: {error}")));
    let counts = played.counts;
    if counts.hits + counts.misses + counts.written + counts.deleted + counts.absent == 0
        && !played.interrupted
    {
        return Err(Error::input("no operation of it was played")
            .at(args.log.clone())
            .hint("--tier names the tier whose operations are played: 0 GPU, 1 CPU, 2 storage"));
    }
    Ok(Value::Object(report(args, &played, skipped)))
}

fn no_operation(args: &PlayArgs) -> Error {
    Error::usage(format!("{} holds calls on a store, not operations on a tier", args.format))
        .at(args.log.clone())
        .hint("a log of bench --io-trace-log is of format mlperf-csv")
}

fn step(call: TierCall) -> Step {
    let TierCall { at, bytes, key, .. } = call;
    let deed = match call.operation {
        Operation::Read => Deed::Read,
        Operation::Write => Deed::Write,
        Operation::Delete => Deed::Delete,
    };
    Step { at, deed, bytes, key }
}

fn report(args: &PlayArgs, played: &Played, skipped: u64) -> Map<String, Value> {
    let works: BTreeMap<&str, Value> = [("read", Work::Read), ("write", Work::Write)]
        .into_iter()
        .map(|(name, work)| (name, gauge(played.meter.gauge(0, work), played.seconds)))
        .collect();
    let kernel =
        played.kernel.map(|io| json!({ "read_bytes": io.read_bytes, "write_bytes": io.write_bytes }));
    let keys = json!({
        "log": args.log,
        "tier": args.tier,
        "pace": args.pace,
        "counts": played.counts,
        "skipped_other_tiers": skipped,
        "seconds": played.seconds,
        "cpu_seconds": played.cpu_seconds,
        "operations": works,
        "latest_start_ms": played.latest.as_ms(),
        "kernel": kernel,
        "notes": played.notes,
        "partial": played.interrupted,
    });
    let Value::Object(keys) = keys else { unreachable!("the literal is an object") };
    keys
}

fn gauge(gauge: &Gauge, seconds: f64) -> Value {
    let gib = gauge.bytes as f64 / GIB;
    json!({
        "count": gauge.count,
        "gib": gib,
        "gib_per_second": gib / seconds.max(1e-9),
        "total_ms": percentiles(&gauge.total_ns),
        "device_ms": percentiles(&gauge.device_ns),
        "host_ms": percentiles(&gauge.host_ns),
    })
}

fn percentiles(histogram: &Histogram<u64>) -> Value {
    let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e6;
    json!({ "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": histogram.max() as f64 / 1e6 })
}
