//! Runs of many hosts put together.

use wavetank_report::storage::{MetricName, Mismatch, Second};

use crate::given::*;

/// What a rank writes and merging reads.
fn read_back(run: &StorageSummary) -> StorageSummary {
    let text = serde_json::to_string(run).expect("plain data");
    serde_json::from_str(&text).expect("what was just written")
}

/// One run in which everything happened that happened in any of `parts`.
fn pooled(parts: &[Vec<BenchFact>]) -> StorageSummary {
    let mut events: Vec<(Nanos, BenchFact)> = parts.iter().flat_map(|facts| inside(facts)).collect();
    events.sort_by_key(|(at, _)| *at);
    let opened = [(Nanos::ZERO, BenchFact::Opened)].into_iter();
    let closed = BenchFact::Closed { in_flight: 2 * parts.len() as u64, queued: 3 * parts.len() as u64 };
    collect(&setting(), opened.chain(events).chain([(Nanos(10_000_000_000), closed)]))
}

fn inside(facts: &[BenchFact]) -> Vec<(Nanos, BenchFact)> {
    let mut events = window(10, facts);
    events.pop();
    events.remove(0);
    events
}

/// What one collector of all events does not know as several do: which of them a request came from, what
/// memory took beyond its own requests, and what is in the tiers at the end.
fn comparable(mut run: StorageSummary, runs: u64) -> StorageSummary {
    run.parts.clear();
    run.requests.lists = None;
    run.requests.classes.iter_mut().for_each(|class| class.unfinished = 0);
    run.touches.time.lane_wait += std::mem::take(&mut run.touches.time.memory);
    run.timeline.iter_mut().for_each(|row| row.end_to_end_p95 = Nanos::ZERO);
    run.tiers.iter_mut().for_each(|tier| tier.at_end.entries /= runs);
    run.tiers.iter_mut().for_each(|tier| tier.at_end.bytes /= runs);
    run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Broken by: any percentile that is not of the pooled samples (the largest of the parts', their mean), a
    /// count, a byte or a sum of time left out, tiers added to the wrong role, a size class dropped, a second
    /// of the timeline in the wrong row, or a field that is not written for merging.
    #[test]
    fn merged_runs_are_the_run_of_all_their_samples(parts in prop::collection::vec(facts(), 1..4)) {
        let runs: Vec<StorageSummary> =
            parts.iter().map(|facts| read_back(&collect(&setting(), window(10, facts)))).collect();
        let count = runs.len() as u64;
        let merged = StorageSummary::merged(runs).expect("the same settings");
        prop_assert_eq!(comparable(merged, count), comparable(pooled(&parts), 1));
    }

    /// Broken by: an amount over the union of the windows, a mean of rates, or rates weighted by time.
    #[test]
    fn rates_add_up_over_each_runs_own_window(parts in prop::collection::vec((facts(), 1u64..40), 1..4)) {
        let runs: Vec<StorageSummary> =
            parts.iter().map(|(facts, seconds)| collect(&setting(), window(*seconds, facts))).collect();
        let merged = StorageSummary::merged(runs.clone()).expect("the same settings");
        let adds_up = |rate: &dyn Fn(&StorageSummary) -> f64| {
            let sum: f64 = runs.iter().map(rate).sum();
            (rate(&merged) - sum).abs() <= 1e-9 * sum
        };
        for role in TierRole::ALL {
            prop_assert!(adds_up(&|run| run.bandwidth(role).read_gbps));
            prop_assert!(adds_up(&|run| run.bandwidth(role).write_gbps));
        }
        for name in [MetricName::WallClock, MetricName::StorageAssessment] {
            prop_assert!(adds_up(&|run| run.metric(name).value));
        }
    }

    /// Broken by: a run's row put whole into one of the rows it lies in, lost between two of them, or a run
    /// that is placed at the beginning although it began later.
    #[test]
    fn nothing_is_lost_between_the_rows_of_a_timeline(
        parts in prop::collection::vec((facts(), 1u64..20, 0u64..30_000_000_000), 1..4),
    ) {
        let mut runs = Vec::new();
        for (facts, seconds, began) in &parts {
            let mut run = collect(&setting(), window(*seconds, facts));
            run.window.began = Nanos(1_700_000_000_000_000_000 + began);
            runs.push(run);
        }
        let merged = StorageSummary::merged(runs.clone()).expect("the same settings");
        let sums = |rows: &[Second]| {
            rows.iter().fold(Second::default(), |sum, row| sum.merged(row))
        };
        let of_parts: Vec<Second> = runs.iter().map(|run| sums(&run.timeline)).collect();
        prop_assert_eq!(sums(&merged.timeline), sums(&of_parts));
        let begin = runs.iter().map(|run| run.window.began).min().expect("one");
        let end = runs.iter().map(|run| run.window.end()).max().expect("one");
        prop_assert_eq!((merged.window.began, merged.window.end()), (begin, end));
        prop_assert_eq!(merged.timeline.len() as u64, end.since(begin).0.div_ceil(1_000_000_000));
        // Until the second run begins, there is only what the first did.
        let second = runs.iter().map(|run| run.window.began).filter(|began| *began > begin).min();
        let alone: Vec<&StorageSummary> = runs.iter().filter(|run| run.window.began == begin).collect();
        if let (Some(second), [first]) = (second, &alone[..]) {
            let rows = (second.since(begin).0 / 1_000_000_000) as usize;
            for (row, own) in merged.timeline[..rows].iter().zip(&first.timeline) {
                prop_assert_eq!(row, own);
            }
        }
    }
}

/// Broken by: rows shifted by whole seconds only, or the wrong part of a row in each.
#[test]
fn a_row_between_two_is_divided_by_time() {
    let facts: Vec<BenchFact> = (0..8).flat_map(|_| hit(DRIVE, 4 * MIB, Why::Decode, ms(1.0))).collect();
    let at = |began: u64| {
        let mut run = collect(&setting(), window(1, &facts));
        run.window.began = Nanos(began);
        run
    };
    let merged = StorageSummary::merged(vec![at(1_000_000_000), at(1_250_000_000)]).expect("the same");
    let read: Vec<u64> = merged.timeline.iter().map(|row| row.storage_read_bytes / MIB).collect();
    assert_eq!(read, [32 + 24, 8]);
    assert_eq!(merged.window.elapsed, Nanos(1_250_000_000));
}

/// Broken by: clocks that are years apart, which would need as many rows as seconds.
#[test]
fn clocks_far_apart_make_long_rows() {
    let mut late = collect(&setting(), window(10, &rich()));
    late.window.began = Nanos(u64::MAX / 2);
    let merged = StorageSummary::merged(vec![collect(&setting(), window(10, &rich())), late]).expect("same");
    assert!(merged.timeline.len() <= 86_400, "{}", merged.timeline.len());
    assert_eq!(merged.timeline.iter().map(|row| row.requests).sum::<u64>(), 80);
}

/// Broken by: a run that never opened its window, whose beginning is not known, taken to begin in 1970.
#[test]
fn a_run_without_a_window_adds_no_time() {
    let mut run = collect(&setting(), window(10, &rich()));
    run.window.began = Nanos(1_700_000_000_000_000_000);
    let never = collect(&setting(), []);
    let merged = StorageSummary::merged(vec![never, run.clone()]).expect("the same settings");
    assert_eq!((merged.window.began, merged.window.elapsed), (run.window.began, run.window.elapsed));
    assert_eq!(merged.bandwidth(TierRole::Storage), run.bandwidth(TierRole::Storage));
}

/// Broken by: judging by one part, by the largest of the percentiles, or by the bandwidth of one.
#[test]
fn what_is_judged_is_the_union() {
    let slow: Vec<BenchFact> = (0..10).flat_map(|_| hit(DRIVE, MIB, Why::Decode, ms(1000.0))).collect();
    let fast: Vec<BenchFact> = (0..190).flat_map(|_| hit(DRIVE, MIB, Why::Decode, ms(1.0))).collect();
    let runs = vec![collect(&setting(), window(10, &fast)), collect(&setting(), window(10, &slow))];
    let read = |run: &StorageSummary| run.assessment().criteria[1].passed;
    assert_eq!((read(&runs[0]), read(&runs[1])), (Some(true), Some(false)));
    let merged = StorageSummary::merged(runs).expect("the same settings");
    assert_eq!(read(&merged), Some(true), "5 of 100 are slow");
    let report = Value::Object(report_of(&merged));
    assert_eq!(unexpected_nulls(&report), Vec::<String>::new());
    assert_eq!(report["latency_lists"], "omitted: 0 values, see histograms and the runs' own reports");
}

/// Broken by: adding up what was not set to the same.
#[test]
fn runs_of_different_settings_are_not_added_up() {
    let run = |setting: &Setting| collect(setting, window(10, &rich()));
    let other_seed = Setting { seed: 43, ..setting() };
    assert_eq!(
        StorageSummary::merged(vec![run(&setting()), run(&other_seed)]).map(|run| run.setting.seed),
        Ok(42)
    );
    let mut other = setting();
    other.targets[1].p99_ms = 7.0;
    let error = StorageSummary::merged(vec![run(&setting()), run(&other)]).expect_err("different targets");
    let expected = Mismatch {
        part: 1,
        field: "targets.1.p99_ms".to_owned(),
        first: "200.0".to_owned(),
        other: "7.0".to_owned(),
    };
    assert_eq!(error, expected);
}

/// Every whole number of `json` as large as they come.
fn largest(json: &mut Value) {
    match json {
        Value::Number(number) if number.is_u64() => *json = json!(u64::MAX),
        Value::Array(items) => items.iter_mut().for_each(largest),
        Value::Object(keys) => keys.values_mut().for_each(largest),
        _ => {}
    }
}

/// Broken by: a sum that does not saturate (tests panic on it, a release would wrap), or a row of the
/// timeline beyond its end.
#[test]
fn absurd_counts_are_added_up_without_a_panic() {
    let run = collect(&setting(), window(10, &rich()));
    let mut absurd = serde_json::to_value(&run).expect("plain data");
    let setting = absurd["setting"].take();
    for key in absurd.as_object().expect("an object").keys().cloned().collect::<Vec<_>>() {
        let mut one = absurd.clone();
        one["setting"] = setting.clone();
        largest(&mut one[key.as_str()]);
        if key == "setting" {
            one["setting"] = setting.clone();
        }
        let one: StorageSummary = serde_json::from_value(one).expect("numbers of the same kind");
        let merged = StorageSummary::merged(vec![one.clone(), run.clone(), one]).expect("the same settings");
        let _ = (report_of(&merged), merged.assessment(), merged.bottleneck(), merged.warnings());
        assert!(table("absurd", &merged, &[]).contains("Requests: "), "{key}");
    }
    let mut all = absurd;
    largest(&mut all);
    all["setting"] = setting;
    let all: StorageSummary = serde_json::from_value(all).expect("numbers of the same kind");
    let merged = StorageSummary::merged(vec![all.clone(), all]).expect("the same settings");
    assert_eq!(merged.touches.all().lookups(), u64::MAX);
    let _ = (report_of(&merged), table("absurd", &merged, &[]), merged.warnings());
}

/// Broken by: a rate over the union of the windows, or one that looks like it.
#[test]
fn rates_of_ranks_are_said_to_be_added_up() {
    let mut late = collect(&setting(), window(10, &rich()));
    late.window.began = Nanos(20_000_000_000);
    let merged = StorageSummary::merged(vec![collect(&setting(), window(10, &rich())), late]).expect("same");
    let text = table("two", &merged, &[]);
    assert!(text.contains("Requests: 80 served in 30.00 s (8.00/s, the ranks' own added up), "), "{text}");
}

/// Broken by: buckets that say there were more latencies than can be counted.
#[test]
fn buckets_with_too_many_latencies_are_refused() {
    let mut run = serde_json::to_value(collect(&setting(), window(10, &rich()))).expect("plain data");
    let buckets = |count: u64| json!({ "buckets": { "buckets": [[7, count]], "sum_ns": 7, "max_ns": 7 } });
    run["host_memory"] = buckets(1 << 40);
    assert!(serde_json::from_value::<StorageSummary>(run.clone()).is_ok());
    run["host_memory"] = buckets((1 << 40) + 1);
    let error = serde_json::from_value::<StorageSummary>(run).expect_err("too many").to_string();
    assert!(error.contains("too many latencies"), "{error}");
}
