//! What a reader of a benchmark should know before using its numbers.

use serde_json::{Value, json};
use wavetank_bench::{Arrivals, Ended, Feed, KernelIo, Outcome, UNASKED_TOKENS};
use wavetank_model::TierRole;
use wavetank_report::StorageSummary;
use wavetank_report::storage::Traffic;
use wavetank_store::backend::Location;
use wavetank_store::backends;

use super::plan::BenchPlan;
use crate::tiers::note;

/// Our counting and the kernel's may differ by one part in so many …
const COUNTED_WITHIN: u64 = 100;
/// … or by this much an entry: its header, and what fills its last block.
const AROUND_AN_ENTRY: u64 = 8192;
/// Fewer bytes are not worth a word.
const WORTH_COUNTING: u64 = 64 << 20;

/// Everything there is to say about one run.
pub(super) fn about(plan: &BenchPlan, summary: &StorageSummary, outcome: &Outcome) -> Vec<String> {
    let mut warnings = about_numbers(plan, summary);
    warnings.extend(ended(&outcome.ended));
    warnings.extend(lost(outcome.lost_events));
    warnings.extend(about_run(plan, summary, outcome));
    warnings
}

/// What is said where events were lost, if any were.
pub(super) fn lost(events: u64) -> Option<String> {
    counted(events, ["event", "events"], "of the store lost: numbers of the store are too small")
}

/// What only who ran it knows.
pub(super) fn about_run(plan: &BenchPlan, summary: &StorageSummary, outcome: &Outcome) -> Vec<String> {
    let mut warnings = outcome.notes.clone();
    warnings.extend(counting(plan, summary, outcome));
    let mut count = |number: u64, things: [&str; 2], what: &str| {
        warnings.extend(counted(number, things, what));
    };
    count(outcome.unremoved, ["copy", "copies"], "not deleted, room is still taken");
    for (what, part) in [
        ("preconditioning", outcome.filled.preconditioned),
        ("prepared entries", outcome.filled.prepared),
        ("documents", outcome.filled.documents),
    ] {
        count(part.failed, ["entry", "entries"], &format!("of {what} could not be written"));
    }
    warnings
}

/// What the plan and the numbers say, of one run or of many ranks.
pub(super) fn about_numbers(plan: &BenchPlan, summary: &StorageSummary) -> Vec<String> {
    let mut warnings = summary.warnings();
    warnings.extend(circumstances(plan));
    let media = plan.media.iter();
    warnings.extend(media.filter_map(|(role, medium)| Some(format!("{}: {}", role.name(), note(medium)?))));
    let all = summary.touches.all();
    for (number, things, what) in [
        (summary.requests.turned_away(), ["request", "requests"], "found the queue full; see --queue-limit"),
        (all.refused, ["entry", "entries"], "found no room in any tier"),
        (all.failed_reads.saturating_add(all.failed_writes), ["operation", "operations"], "failed"),
    ] {
        warnings.extend(counted(number, things, what));
    }
    warnings
}

/// What happened to so many things, one or several by their names; nothing if there are none.
fn counted(number: u64, [one, several]: [&str; 2], what: &str) -> Option<String> {
    let things = if number == 1 { one } else { several };
    (number > 0).then(|| format!("{number} {things} {what}"))
}

/// What the plan implies and is easily overlooked.
fn circumstances(plan: &BenchPlan) -> Vec<String> {
    let run = &plan.run;
    let modelled = !plan.is_simulated() && run.tiers.iter().any(|tier| tier.backend == "gpu_sim");
    let timed =
        matches!(run.feed, Feed::Recording { arrivals: Arrivals::Recorded { .. } | Arrivals::Every(_), .. });
    let talks = matches!(run.feed, Feed::Users(_)) && run.habits.multi_turn;
    let capacity: Option<u64> = run.tiers.iter().map(|tier| tier.capacity_bytes).sum();
    let prepared = u64::from(run.habits.prepared) * u64::from(UNASKED_TOKENS) * run.bytes_per_token;
    [
        (plan.is_simulated(), "simulated: times are those of models of the devices, and no byte was moved"),
        (modelled, "the GPU tier is modelled: its times are those of a bandwidth and a latency"),
        (
            run.scaling.is_some() && timed,
            "the recording's times decide the load: the autoscaler only changes how many requests are worked \
             on",
        ),
        (run.scaling.is_some(), "users changed during the run: its averages are over all stages"),
        (
            talks && run.users > run.habits.conversations_max,
            "there are more users than conversations.max_conversations: most conversations end after a turn",
        ),
        (
            capacity.is_some_and(|capacity| prepared > capacity),
            "the prepared entries do not fit the tiers: reads of those that left are misses",
        ),
    ]
    .into_iter()
    .filter(|(holds, _)| *holds)
    .map(|(_, what)| what.to_owned())
    .collect()
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
        Some((kernel, ours)) => json!({
            "read_bytes": kernel.read_bytes,
            "write_bytes": kernel.write_bytes,
            "counted_read_bytes": ours.read_bytes,
            "counted_write_bytes": ours.written_bytes,
        }),
        None => Value::Null,
    }
}

/// What the kernel counted, and what we did, over the whole run; only for backends on a local file system.
fn compared(plan: &BenchPlan, summary: &StorageSummary, outcome: &Outcome) -> Option<(KernelIo, Traffic)> {
    let storage = plan.run.storage()?;
    backends::backend(&storage.backend).ok().filter(|entry| entry.caps.location == Location::Directory)?;
    Some((outcome.kernel?, summary.tier(TierRole::Storage)?.whole_run))
}

fn counting(plan: &BenchPlan, summary: &StorageSummary, outcome: &Outcome) -> Vec<String> {
    let Some((kernel, ours)) = compared(plan, summary, outcome) else { return Vec::new() };
    let Traffic { reads, read_bytes, writes, written_bytes } = ours;
    let mut warnings = Vec::new();
    if differ(read_bytes, reads, kernel.read_bytes) {
        warnings.push(if kernel.read_bytes < read_bytes {
            let share = (1.0 - kernel.read_bytes as f64 / read_bytes as f64) * 100.0;
            format!(
                "{share:.0} % of the bytes read did not come from the drive but from the page cache: the \
                 drive is slower than this; use --backend direct"
            )
        } else {
            let theirs = kernel.read_bytes;
            format!("the kernel read {theirs} bytes and {read_bytes} were counted: something else reads")
        });
    }
    if differ(written_bytes, writes, kernel.write_bytes) {
        let theirs = kernel.write_bytes;
        warnings.push(format!("the kernel wrote {theirs} bytes and {written_bytes} were counted"));
    }
    warnings
}

/// Whether the kernel counted something else than the bytes of so many entries.
fn differ(ours: u64, entries: u64, theirs: u64) -> bool {
    let allowed = (ours / COUNTED_WITHIN).max(entries * AROUND_AN_ENTRY);
    ours > WORTH_COUNTING && theirs.abs_diff(ours) > allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        let said = [0, 1, 2].map(|number| counted(number, ["entry", "entries"], "found no room"));
        let expected = [None, Some("1 entry found no room"), Some("2 entries found no room")];
        assert_eq!(said.each_ref().map(Option::as_deref), expected);
    }

    #[test]
    fn headers_are_no_difference_and_a_page_cache_is() {
        let gib = 1 << 30;
        assert!(!differ(gib, 1, gib + gib / 200));
        assert!(differ(gib, 1, gib + gib / 50) && differ(gib, 1, gib / 2));
        assert!(!differ(gib, 1 << 16, gib + (8192 << 16)), "entries of 16 KiB, each with a header");
        assert!(!differ(1 << 20, 1, 0), "too little to tell");
    }
}
