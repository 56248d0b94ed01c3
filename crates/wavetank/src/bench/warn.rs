//! What a reader of a benchmark should know before using its numbers.

use serde_json::{Value, json};
use wavetank_bench::{Ended, KernelIo, Outcome};
use wavetank_report::StorageSummary;
use wavetank_report::storage::TierRole;

use super::plan::BenchPlan;

/// Our counting and the kernel's may differ by this much: headers of entries, and nothing else.
const COUNTED_WITHIN: f64 = 0.01;
/// Below this many bytes headers are not small any more.
const WORTH_COUNTING: u64 = 64 << 20;

/// Everything there is to say about one run.
pub(super) fn about(plan: &BenchPlan, summary: &StorageSummary, outcome: &Outcome) -> Vec<String> {
    let mut warnings = summary.warnings();
    warnings.extend(outcome.notes.iter().cloned());
    warnings.extend(ended(&outcome.ended));
    warnings.extend(counting(plan, summary, outcome));
    let mut count = |number: u64, what: &str| {
        if number > 0 {
            warnings.push(format!("{number} {what}"));
        }
    };
    count(outcome.lost_events, "events of the store were lost: its numbers are too small");
    count(outcome.unremoved, "copies could not be deleted and still take room");
    count(summary.requests.turned_away(), "requests found the queue full; see --queue-limit");
    let all = summary.touches.all();
    count(all.refused, "entries found no room in any tier");
    count(all.failed_reads + all.failed_writes, "operations failed");
    for (what, part) in [
        ("preconditioning", outcome.filled.preconditioned),
        ("prepared entries", outcome.filled.prepared),
        ("documents", outcome.filled.documents),
    ] {
        count(part.failed, &format!("entries of {what} could not be written"));
    }
    warnings
}

fn ended(ended: &Ended) -> Option<String> {
    match ended {
        Ended::Interrupted => Some("interrupted: the numbers cover what had happened by then".to_owned()),
        Ended::Failed(why) => Some(format!("partial: the run ended early: {why}")),
        _ => None,
    }
}

/// The kernel's view of the storage tier, beside ours.
pub(super) fn kernel(plan: &BenchPlan, summary: &StorageSummary, outcome: &Outcome) -> Value {
    match compared(plan, summary, outcome) {
        Some((kernel, read, written)) => json!({
            "read_bytes": kernel.read_bytes,
            "write_bytes": kernel.write_bytes,
            "counted_read_bytes": read,
            "counted_write_bytes": written,
        }),
        None => Value::Null,
    }
}

/// What the kernel counted, and what we did, over the whole run; only for backends on a local file system.
fn compared(plan: &BenchPlan, summary: &StorageSummary, outcome: &Outcome) -> Option<(KernelIo, u64, u64)> {
    let storage = plan.run.tiers.iter().find(|tier| tier.role == wavetank_bench::TierRole::Storage)?;
    if !matches!(storage.backend.as_str(), "direct" | "buffered") {
        return None;
    }
    let whole = summary.tier(TierRole::Storage)?.whole_run;
    Some((outcome.kernel?, whole.read_bytes, whole.written_bytes))
}

fn counting(plan: &BenchPlan, summary: &StorageSummary, outcome: &Outcome) -> Vec<String> {
    let Some((kernel, read, written)) = compared(plan, summary, outcome) else { return Vec::new() };
    let mut warnings = Vec::new();
    let away = |ours: u64, theirs: u64| theirs as f64 / ours as f64 - 1.0;
    if read > WORTH_COUNTING && away(read, kernel.read_bytes) < -COUNTED_WITHIN {
        let share = -away(read, kernel.read_bytes) * 100.0;
        warnings.push(format!(
            "{share:.0} % of the bytes read did not come from the drive but from the page cache: the drive is \
             slower than this; use --backend direct"
        ));
    } else if read > WORTH_COUNTING && away(read, kernel.read_bytes) > COUNTED_WITHIN {
        warnings.push(format!(
            "the kernel read {} bytes and {read} were counted: something else in this process reads",
            kernel.read_bytes
        ));
    }
    if written > WORTH_COUNTING && away(written, kernel.write_bytes).abs() > COUNTED_WITHIN {
        warnings.push(format!("the kernel wrote {} bytes and {written} were counted", kernel.write_bytes));
    }
    warnings
}
