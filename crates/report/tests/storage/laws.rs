//! What holds for any run.

use std::collections::BTreeMap;

use crate::given::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Broken by: a failed read counted as a hit (W14), a hit counted without its tier, an answer forgotten.
    #[test]
    fn every_lookup_is_a_hit_a_miss_or_a_failure(facts in facts()) {
        let run = collect(&setting(), window(10, &facts));
        let reads = |wanted: fn(Answer) -> bool| {
            let is = |fact: &&BenchFact| {
                matches!(fact, BenchFact::Touched(t) if t.operation == Operation::Read && wanted(t.answer))
            };
            facts.iter().filter(is).count() as u64
        };
        let all = run.touches.all();
        prop_assert_eq!(all.lookups(), reads(|_| true));
        prop_assert_eq!(all.hits, reads(|answer| matches!(answer, Answer::Hit(_))));
        prop_assert_eq!(all.failed_reads, reads(|answer| answer == Answer::Failed));
        prop_assert_eq!(run.tiers.iter().map(|tier| tier.hits).sum::<u64>(), all.hits);
    }

    /// Broken by: counting anything before `Opened` or after `Closed` (W3), a timeline from the run's start,
    /// or whole-run bytes that leave out warm-up or drain.
    #[test]
    fn warm_up_and_drain_do_not_count(before in facts(), inside in facts(), after in facts()) {
        let alone = collect(&setting(), window(10, &inside));
        let warm_up = before.iter().map(|&fact| (Nanos(1), fact));
        let later = |(at, fact): (Nanos, BenchFact)| (at + Nanos(5_000_000_000), fact);
        let drain = after.iter().map(|&fact| (Nanos(16_000_000_000), fact));
        let counted = window(10, &inside).into_iter().map(later);
        let mut whole = collect(&setting(), warm_up.chain(counted).chain(drain));
        let bytes = |run: &StorageSummary| run.tiers.iter().map(|tier| tier.whole_run.bytes()).sum::<u64>();
        let apart = [&before, &inside, &after].map(|facts| bytes(&collect(&setting(), window(1, facts))));
        prop_assert_eq!(bytes(&whole), apart.iter().sum::<u64>());
        for (tier, same) in whole.tiers.iter_mut().zip(&alone.tiers) {
            tier.whole_run = same.whole_run;
        }
        for (class, same) in whole.requests.classes.iter_mut().zip(&alone.requests.classes) {
            class.unfinished = same.unfinished;
        }
        prop_assert_eq!(whole, alone);
    }

    /// Broken by: a part left out of a request's time, a share of another whole, or time on entries counted
    /// twice.
    #[test]
    fn the_parts_of_a_request_are_all_of_it(facts in facts()) {
        let run = collect(&setting(), window(10, &facts));
        let requests = &run.requests;
        let parts = requests.waited.mean + requests.storage.mean + requests.generation.mean;
        prop_assert!((parts - requests.end_to_end.mean).abs() <= 1e-9 * parts);
        let found = run.bottleneck();
        let sum: f64 = found.shares.iter().map(|(_, share)| share).sum();
        prop_assert!(found.shares.iter().all(|(_, share)| (0.0..=1.0 + 1e-9).contains(share)));
        let whole = if requests.end_to_end.mean > 0.0 { 1.0 } else { 0.0 };
        prop_assert!((sum - whole).abs() < 1e-9, "{}", sum);
    }

    /// Broken by: any division by a count, a span or bytes that may be zero.
    #[test]
    fn every_number_of_a_report_is_a_number(facts in facts(), seconds in 0u64..3) {
        let report = Value::Object(report_of(&collect(&setting(), window(seconds, &facts))));
        prop_assert_eq!(unexpected_nulls(&report), Vec::<String>::new());
    }

    /// Broken by: a histogram that is left out of a report, or one that rounds on its way through JSON.
    #[test]
    fn two_reports_have_the_histograms_of_one_run(facts in facts(), cut in 0usize..60) {
        let read = |facts: &[BenchFact]| read_histograms(&finished(&setting(), facts)).expect("our own");
        let (head, tail) = facts.split_at(cut.min(facts.len()));
        let (mut merged, other): (BTreeMap<String, Buckets>, _) = (read(head), read(tail));
        for (name, buckets) in other {
            let sum = merged.entry(name).or_default();
            *sum = sum.merged(&buckets);
        }
        prop_assert_eq!(merged, read(&facts));
    }
}

#[test]
fn a_run_without_anything_is_still_a_report() {
    for events in [vec![], vec![(Nanos::ZERO, BenchFact::Opened)], window(0, &[]), window(5, &[])] {
        let run = collect(&setting(), events);
        let report = Value::Object(report_of(&run));
        assert_eq!(unexpected_nulls(&report), Vec::<String>::new());
        assert_eq!(report["summary"]["cache_stats"]["storage_health"]["overall_status"], "NOT APPLICABLE");
        assert!(!run.assessment().is_judged() && !run.assessment().passed(), "nothing was proven");
        assert_eq!(run.warnings().len(), 1);
        assert!(table("nothing", &run, &run.warnings()).contains("nothing was served"));
    }
}
