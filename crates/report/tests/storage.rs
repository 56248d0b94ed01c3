//! Laws of the results of a storage benchmark, and the forms in which they are written.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wavetank_model::{
    Answer, BenchEvent, BenchFact, Class, IoTimes, Nanos, Operation, Served, Sink, StoreEvent, StoreFact,
    Touch, Why,
};
use wavetank_report::render::storage::{csv, json as report_of, read_histograms, table, xlsx};
use wavetank_report::storage::{
    AtEnd, ClassTarget, Clock, Criteria, Profile, Setting, StorageSummary, TierRole, TierUse,
};
use wavetank_report::{Buckets, Storage};

const MIB: u64 = 1 << 20;
const BYTES_PER_TOKEN: u64 = 4096;
const GPU: u8 = 0;
const CPU: u8 = 1;
const DRIVE: u8 = 2;

fn ms(value: f64) -> Nanos {
    Nanos::from_ms(value)
}

fn setting() -> Setting {
    let target = |p95_ms: f64| ClassTarget {
        p95_ms,
        p99_ms: p95_ms * 2.0,
        p999_ms: p95_ms * 3.0,
        p9999_ms: p95_ms * 4.0,
    };
    Setting {
        tiers: TierRole::ALL.to_vec(),
        bytes_per_token: BYTES_PER_TOKEN,
        targets: [50.0, 100.0, 1000.0].map(target),
        cpu_mem_bytes: 0,
        generation_ns_per_token: 0,
        seed: 42,
        profile: Profile::Latency,
        criteria: Criteria::default(),
        clock: Clock::Wall,
        counted: false,
        scaled: false,
    }
}

fn at_end() -> AtEnd {
    let tier = |entries| TierUse { bytes: entries * 64 * MIB, entries };
    AtEnd { tiers: [1, 3, 12].map(tier).to_vec() }
}

fn served(class: Class, waited: Nanos, storage: Nanos, generation: Nanos) -> BenchFact {
    BenchFact::Served(Served {
        class,
        waited,
        storage,
        prefill: Some(Nanos(storage.0 / 4)),
        decode: Some(Nanos(storage.0 / 2)),
        generation,
        total: waited + storage + generation,
        context_tokens: 1000,
        generated_tokens: 100,
    })
}

fn times(total: Nanos) -> IoTimes {
    IoTimes { queue: Nanos::ZERO, host: Nanos(total.0 / 10), device: Nanos(total.0 / 10 * 9), total }
}

fn moved(bytes: u64, fact: StoreFact, total: Nanos) -> BenchFact {
    BenchFact::Stored(StoreEvent { at: Nanos::ZERO, key: 0, bytes, fact, times: times(total) })
}

fn touched(operation: Operation, why: Why, answer: Answer, total: Nanos) -> BenchFact {
    sized(operation, why, answer, MIB, total)
}

fn sized(operation: Operation, why: Why, answer: Answer, bytes: u64, total: Nanos) -> BenchFact {
    BenchFact::Touched(Touch { operation, why, answer, bytes, times: times(total) })
}

/// A hit as the store and the request tell it.
fn hit(tier: u8, bytes: u64, why: Why, total: Nanos) -> [BenchFact; 2] {
    let read = moved(bytes, StoreFact::Hit { tier }, total);
    [read, sized(Operation::Read, why, Answer::Hit(tier), bytes, total)]
}

/// A write as the store and the request tell it.
fn write(tier: u8, bytes: u64, total: Nanos) -> [BenchFact; 2] {
    let written = moved(bytes, StoreFact::Stored { tier }, total);
    [written, sized(Operation::Write, Why::Prefill, Answer::Stored(tier), bytes, total)]
}

fn closed() -> BenchFact {
    BenchFact::Closed { in_flight: 2, queued: 3 }
}

fn collect(setting: &Setting, events: impl IntoIterator<Item = (Nanos, BenchFact)>) -> StorageSummary {
    let mut storage = Storage::new(setting);
    events.into_iter().for_each(|(at, fact)| storage.record(&BenchEvent { at, fact }));
    storage.summary(at_end())
}

/// A window of `seconds` with these facts spread evenly over it.
fn window(seconds: u64, facts: &[BenchFact]) -> Vec<(Nanos, BenchFact)> {
    let end = seconds * 1_000_000_000;
    let place = |index: usize| Nanos(end / (facts.len() as u64 + 1) * (index as u64 + 1));
    let inside = facts.iter().enumerate().map(|(index, &fact)| (place(index), fact));
    [(Nanos::ZERO, BenchFact::Opened)].into_iter().chain(inside).chain([(Nanos(end), closed())]).collect()
}

/// Three tiers, all classes, every kind of fact.
fn rich() -> Vec<BenchFact> {
    let mut facts = Vec::new();
    for round in 0..40u32 {
        let slow = ms(f64::from(round + 1));
        let class = Class::ALL[round as usize % 3];
        facts.push(BenchFact::Arrived(class));
        for tier in [GPU, CPU, DRIVE] {
            facts.extend(write(tier, (8 * MIB) << tier, slow));
            facts.extend(hit(tier, (8 * MIB) << tier, Why::Decode, slow));
        }
        facts.extend(hit(DRIVE, 100 * MIB, Why::History, slow));
        facts.extend(hit(CPU, MIB / 2, Why::Prompt, slow));
        facts.push(moved(2 * MIB, StoreFact::Demoted { from: CPU, to: DRIVE }, slow));
        facts.push(moved(100 * MIB, StoreFact::Promoted { from: DRIVE, to: CPU }, slow));
        facts.push(moved(2 * MIB, StoreFact::Evicted { tier: DRIVE }, Nanos::ZERO));
        facts.push(touched(Operation::Read, Why::Document, Answer::Missed, ms(0.01)));
        facts.push(served(class, ms(300.0), slow, Nanos::ZERO));
    }
    facts.push(BenchFact::TurnedAway(Class::Batch));
    facts
}

fn finished(setting: &Setting, facts: &[BenchFact]) -> Value {
    Value::Object(report_of(&collect(setting, window(10, facts))))
}

/// What a window may hold, at random.
fn fact() -> impl Strategy<Value = BenchFact> {
    let class = (0usize..3).prop_map(|index| Class::ALL[index]);
    let span = (0u64..1 << 34).prop_map(Nanos);
    let why = prop::sample::select(vec![Why::Prompt, Why::History, Why::Document, Why::Decode]);
    let read = prop_oneof![(0u8..3).prop_map(Answer::Hit), Just(Answer::Missed), Just(Answer::Failed),];
    let write = prop_oneof![
        (0u8..3).prop_map(Answer::Stored),
        Just(Answer::Existed),
        Just(Answer::Refused),
        Just(Answer::Failed),
    ];
    let store = prop_oneof![
        (0u8..3).prop_map(|tier| StoreFact::Hit { tier }),
        (0u8..3).prop_map(|tier| StoreFact::Stored { tier }),
        (0u8..2).prop_map(|from| StoreFact::Demoted { from, to: from + 1 }),
        (0u8..2).prop_map(|to| StoreFact::Promoted { from: to + 1, to }),
        (0u8..3).prop_map(|tier| StoreFact::Failed { tier }),
    ];
    prop_oneof![
        class.clone().prop_map(BenchFact::Arrived),
        class.clone().prop_map(BenchFact::TurnedAway),
        (why, read, span.clone()).prop_map(|(why, answer, span)| touched(Operation::Read, why, answer, span)),
        (write, span.clone()).prop_map(|(answer, span)| touched(
            Operation::Write,
            Why::Prefill,
            answer,
            span
        )),
        (class, [span.clone(), span.clone(), span.clone()])
            .prop_map(|(class, [waited, storage, generation])| served(class, waited, storage, generation)),
        (store, 0u64..1 << 31, span).prop_map(|(fact, bytes, span)| moved(bytes, fact, span)),
    ]
}

fn facts() -> impl Strategy<Value = Vec<BenchFact>> {
    prop::collection::vec(fact(), 0..60)
}

/// The paths at which a report has no value.
fn nulls(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push(path.to_owned()),
        Value::Object(keys) => {
            keys.iter().for_each(|(key, value)| nulls(&format!("{path}/{key}"), value, found))
        }
        Value::Array(items) => items.iter().for_each(|item| nulls(&format!("{path}/*"), item, found)),
        _ => {}
    }
}

/// NaN and infinity become null in JSON; only answers that may be unknown are null.
fn unexpected_nulls(report: &Value) -> Vec<String> {
    let mut found = Vec::new();
    nulls("", report, &mut found);
    found.retain(|path| !path.ends_with("/passed") && !path.ends_with("/met"));
    found
}

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

/// Broken by: counting the read of a promotion again, or bytes of a demotion as a caller's.
#[test]
fn moves_between_tiers_are_counted_once_in_each() {
    let facts = [
        moved(10, StoreFact::Hit { tier: DRIVE }, ms(1.0)),
        moved(10, StoreFact::Promoted { from: DRIVE, to: CPU }, ms(1.0)),
        moved(7, StoreFact::Demoted { from: CPU, to: DRIVE }, ms(2.0)),
        moved(3, StoreFact::Stored { tier: CPU }, ms(3.0)),
        sized(Operation::Read, Why::Decode, Answer::Hit(DRIVE), 10, ms(1.0)),
        sized(Operation::Write, Why::Prefill, Answer::Stored(CPU), 3, ms(3.0)),
    ];
    let run = collect(&setting(), window(1, &facts));
    let bytes = |role| (run.traffic(role).read_bytes, run.traffic(role).written_bytes);
    assert_eq!((bytes(TierRole::Cpu), bytes(TierRole::Storage)), ((7, 13), (10, 7)));
    assert_eq!((run.read_bytes(), run.written_bytes()), (10, 3));
    assert_eq!(run.tiers[2].reads.total.count(), 1);
    assert_eq!(run.tiers[2].writes.total.count(), 0);
}

/// Broken by: leaving demotions out, or tokens of another tier.
#[test]
fn storage_tokens_are_those_in_and_out_of_the_drive() {
    let facts = [
        moved(8 * BYTES_PER_TOKEN, StoreFact::Hit { tier: DRIVE }, ms(1.0)),
        moved(4 * BYTES_PER_TOKEN, StoreFact::Demoted { from: CPU, to: DRIVE }, ms(1.0)),
        moved(99 * BYTES_PER_TOKEN, StoreFact::Hit { tier: CPU }, ms(1.0)),
    ];
    let stats = &finished(&setting(), &facts)["summary"]["cache_stats"];
    assert_eq!(stats["storage_tokens_processed"], json!(12.0));
    assert_eq!(stats["nvme_tokens_processed"], json!(12.0));
    assert_eq!(stats["nvme_throughput"], json!(1.2));
}

/// Broken by: a write counted once for each tier it goes to, or a count for a rate (W9).
#[test]
fn an_entry_written_to_two_tiers_is_one_write_of_a_caller() {
    let mut facts = write(CPU, 10 * MIB, ms(1.0)).to_vec();
    facts.push(moved(10 * MIB, StoreFact::Stored { tier: DRIVE }, ms(1.0)));
    facts.extend([hit(CPU, 10 * MIB, Why::Decode, ms(1.0)); 2].concat());
    let report = finished(&setting(), &facts);
    let stats = &report["summary"]["cache_stats"];
    assert_eq!((&stats["total_write_bytes"], &stats["write_operations"]), (&json!(10 * MIB), &json!(1)));
    assert_eq!((&stats["write_iops"], &stats["read_iops"]), (&json!(0.1), &json!(0.2)));
    assert_eq!((&stats["read_operations"], &stats["read_write_ratio"]), (&json!(2), &json!(2.0)));
    let tiers = &report["summary"]["tiers"];
    assert_eq!(
        (&tiers[1]["writes"]["operations"], &tiers[2]["writes"]["operations"]),
        (&json!(1), &json!(1))
    );
}

/// Broken by: reads of the window divided by the entries of other requests.
#[test]
fn reads_are_compared_with_the_entries_of_the_same_window() {
    let hits = [hit(DRIVE, 4 * MIB, Why::Decode, ms(1.0)); 6].concat();
    let existed = sized(Operation::Write, Why::Prefill, Answer::Existed, 4 * MIB, ms(0.1));
    let many = [served(Class::Batch, ms(1.0), ms(1.0), ms(0.0)); 12];
    let found = |more: &[BenchFact]| {
        let report = finished(&setting(), &[&hits[..], &many, more].concat());
        let found = &report["summary"]["read_amplification"];
        ["bytes_read", "context_bytes", "ratio", "full_reads_per_request"].map(|key| found[key].clone())
    };
    let prefilled = [&write(CPU, 8 * MIB, ms(1.0))[..], &[existed]].concat();
    assert_eq!(found(&prefilled), [json!(24 * MIB), json!(12 * MIB), json!(2.0), json!(3.0)]);
    let context = 12 * 1000 * BYTES_PER_TOKEN;
    let ratio = json!((24 * MIB) as f64 / context as f64);
    assert_eq!(found(&[]), [json!(24 * MIB), json!(context), ratio, json!(0.5)]);
}

/// Broken by: counting only the prompts that were there.
#[test]
fn a_shared_prompt_is_reused_whether_it_is_there_or_not() {
    let mut facts = hit(DRIVE, MIB, Why::Prompt, ms(1.0)).to_vec();
    facts.push(touched(Operation::Read, Why::Prompt, Answer::Missed, ms(1.0)));
    let summary = &finished(&setting(), &facts)["summary"];
    assert_eq!(summary["prefix_cache_stats"]["system_prompt_reuse"], json!(2));
    assert_eq!(summary["cache_stats"]["system_prompt_hits"], json!(1));
}

/// Broken by: judging a class by the requests that got through only.
#[test]
fn requests_without_an_answer_break_the_promise() {
    let [interactive, responsive, _] = Class::ALL;
    let mut facts = vec![served(interactive, ms(1.0), ms(1.0), ms(0.0)); 90];
    facts.extend([BenchFact::Arrived(interactive), BenchFact::TurnedAway(interactive)].repeat(10));
    facts.extend([BenchFact::Arrived(responsive); 3]);
    let warm_up = [BenchFact::Arrived(responsive); 2].map(|fact| (Nanos::ZERO, fact));
    let drain = [(Nanos::from_seconds(11.0), served(responsive, ms(1.0), ms(1.0), ms(0.0)))];
    let run = collect(&setting(), warm_up.into_iter().chain(window(10, &facts)).chain(drain));
    let classes = &run.requests.classes;
    assert_eq!((classes[0].compliance(), classes[0].met(), classes[0].violations), (0.9, false, 0));
    assert_eq!((classes[1].arrived, classes[1].served(), classes[1].unfinished), (3, 0, 5));
    let report = Value::Object(report_of(&run));
    let found = &report["summary"]["qos_metrics"];
    assert_eq!(
        (&found["interactive"]["turned_away"], &found["interactive"]["total_requests"]),
        (&json!(10), &json!(90))
    );
    assert_eq!(
        (&found["responsive"]["total_requests"], &found["responsive"]["unfinished"]),
        (&json!(0), &json!(5))
    );
    assert_eq!(
        (&found["responsive"]["sla"]["met"], &found["responsive"]["no_data"]),
        (&json!(false), &Value::Null)
    );
    assert_eq!(found["batch"]["no_data"], json!(true));
    assert_eq!(report["summary"]["unfinished"], json!(5));
}

#[test]
fn an_interrupted_run_is_closed_by_hand() {
    let mut storage = Storage::new(&setting());
    let class = Class::Batch;
    for (at, fact) in [
        (1.0, BenchFact::Opened),
        (2.0, BenchFact::Arrived(class)),
        (3.0, BenchFact::Arrived(class)),
        (3.5, BenchFact::Arrived(class)),
        (3.5, BenchFact::TurnedAway(class)),
        (4.0, served(class, ms(1.0), ms(1.0), ms(0.0))),
    ] {
        storage.record(&BenchEvent { at: Nanos::from_seconds(at), fact });
    }
    storage.close(Nanos::from_seconds(5.0));
    storage.close(Nanos::from_seconds(9.0));
    let run = storage.summary(at_end());
    assert_eq!((run.window.elapsed.as_seconds(), run.window.in_flight), (4.0, 1));
    assert_eq!(run.requests.completed(), 1);
}

/// Broken by: `>=` for `>`, another percentile's target, or judging a tail by too few requests.
#[test]
fn promises_are_judged_by_class() {
    let request = |total| served(Class::Interactive, ms(total), Nanos::ZERO, Nanos::ZERO);
    let mut facts = vec![request(50.0); 95];
    facts.extend([request(50.1); 5]);
    let run = collect(&setting(), window(10, &facts));
    let class = &run.requests.classes[0];
    assert_eq!((class.violations, class.compliance(), class.met()), (5, 0.95, true));
    assert_eq!(class.tail.map(|tail| tail.met), [Some(true), None, None]);
    facts.push(request(60.0));
    assert!(!collect(&setting(), window(10, &facts)).requests.classes[0].met());
}

fn status(setting: &Setting, facts: &[BenchFact]) -> (&'static str, usize, usize) {
    let found = collect(setting, window(10, facts)).assessment();
    (found.status(), found.passed_count(), found.total_count())
}

/// Broken by: a criterion without samples that fails or counts, or total time for time at the device.
#[test]
fn criteria_without_samples_do_not_apply() {
    // 0.9 of the time is at the device: 198 ms and 207 ms.
    let (quick, slow) = (hit(DRIVE, MIB, Why::Decode, ms(220.0)), hit(DRIVE, MIB, Why::Decode, ms(230.0)));
    assert_eq!(status(&setting(), &quick), ("PASS", 2, 2));
    assert_eq!(status(&setting(), &slow), ("FAIL", 1, 2));
    assert_eq!(status(&setting(), &[]), ("NOT APPLICABLE", 0, 0));
    let missed = [touched(Operation::Read, Why::Decode, Answer::Missed, ms(1.0))];
    assert_eq!(status(&setting(), &missed), ("FAIL", 0, 1));
    let throughput = Setting { profile: Profile::Throughput, ..setting() };
    assert_eq!(status(&throughput, &slow), ("PASS", 1, 1));
    let strict = Criteria { read_bandwidth_gbps: 1.0, ..Criteria::default() };
    assert_eq!(status(&Setting { criteria: strict, ..throughput }, &slow), ("FAIL", 0, 1));
}

/// An operation that waited `wait`, then took 1 ms in this process and 9 ms at the device.
fn waited(fact: StoreFact, wait: Nanos) -> BenchFact {
    let times = IoTimes { queue: Nanos::ZERO, host: ms(1.0), device: ms(9.0), total: wait + ms(10.0) };
    BenchFact::Stored(StoreEvent { at: Nanos::ZERO, key: 0, bytes: MIB, fact, times })
}

/// Broken by: waiting that is in no number, or only in those of the drive.
#[test]
fn waiting_in_front_of_a_device_is_said() {
    let facts = [CPU, DRIVE].map(|tier| waited(StoreFact::Hit { tier }, ms(300.0)));
    let report = finished(&setting(), &facts);
    let stats = &report["summary"]["cache_stats"];
    assert_eq!(stats["storage_read_wait_p95_ms"], json!(301.0));
    assert_eq!(stats["nvme_read_wait_p50_ms"], json!(301.0));
    assert_eq!(stats["cpu_read_wait_p9999_ms"], json!(301.0));
    assert_eq!(stats["storage_read_device_p95_ms"], json!(9.0));
    assert_eq!(report["summary"]["tiers"][2]["reads"]["wait_ms"]["p95"], json!(301.0));
    let text = table("waiting", &collect(&setting(), window(10, &facts)), &[]);
    assert!(text.contains("wait P95") && text.contains("301.00"), "{text}");
}

/// Broken by: memory judged by what its callers waited for.
#[test]
fn memory_is_judged_without_what_it_waits_for() {
    let facts =
        [waited(StoreFact::Stored { tier: CPU }, ms(400.0)), waited(StoreFact::Hit { tier: CPU }, ms(400.0))];
    let run = collect(&setting(), window(10, &facts));
    assert_eq!((run.host_memory.count(), run.host_memory.p95), (2, 10.0));
    assert_eq!(run.assessment().criteria[2].passed, Some(true));
    let report = finished(&setting(), &facts);
    let stats = &report["summary"]["cache_stats"];
    assert_eq!((&stats["cpu_write_p95_ms"], &stats["cpu_write_total_p95_ms"]), (&json!(10.0), &json!(410.0)));
    assert_eq!(report["summary"]["tiers"][1]["writes"]["service_ms"]["p95"], json!(10.0));
}

/// The warnings of a run with this many reads of the drive in each second, that move this many MiB together.
fn drifted(setting: &Setting, reads: u64, rates: &[u64]) -> String {
    let second = |index: usize| index as u64 * 1_000_000_000;
    let event = |(index, &mib): (usize, &u64)| {
        let read = moved(mib * MIB / reads, StoreFact::Hit { tier: DRIVE }, ms(1.0));
        let count = if mib > 0 { reads } else { 0 };
        (0..count).map(move |_| (Nanos(second(index) + 1), read))
    };
    let end = (Nanos(second(rates.len())), closed());
    let facts = rates.iter().enumerate().flat_map(event);
    let served = (Nanos(1), served(Class::Batch, ms(1.0), ms(1.0), ms(0.0)));
    let run =
        collect(setting, [(Nanos::ZERO, BenchFact::Opened), served].into_iter().chain(facts).chain([end]));
    run.warnings().join("; ")
}

const FALLING: [u64; 6] = [1000, 1000, 1000, 1000, 500, 500];

/// Broken by: comparing with a part of a second, or with fewer than six.
#[test]
fn bandwidth_that_changes_is_said() {
    let warnings = |rates: &[u64]| drifted(&setting(), 10, rates);
    assert_eq!(warnings(&[1000, 1000, 1000, 1000, 900, 900]), "");
    assert_eq!(warnings(&[1000, 1000, 500, 500, 500]), "");
    assert!(warnings(&FALLING).starts_with(
        "storage bandwidth fell by 50 %, from 0.98 GiB/s in the first third to 0.49 GiB/s in the last:"
    ));
    assert!(warnings(&[500, 500, 1000, 1000, 1000, 1000]).contains("still warming up"));
}

/// Broken by: a word about the drive where the run itself changed, or where a few operations decide.
#[test]
fn bandwidth_that_the_drive_does_not_decide_is_not_judged() {
    assert_eq!(drifted(&setting(), 9, &FALLING), "", "18 operations in a third");
    assert_eq!(drifted(&setting(), 10, &[1000, 1000, 1000, 1000, 1000, 500, 500, 500, 0]), "", "drained");
    assert_eq!(drifted(&Setting { scaled: true, ..setting() }, 10, &FALLING), "");
    for clock in [Clock::Virtual, Clock::VirtualLogged] {
        assert_eq!(drifted(&Setting { clock, ..setting() }, 10, &FALLING), "");
    }
}

/// Broken by: judging a drive by operations that were only written down.
#[test]
fn what_was_not_moved_is_not_judged() {
    let logged = Setting { clock: Clock::VirtualLogged, ..setting() };
    assert_eq!(status(&logged, &rich()), ("PASS", 1, 1), "the hit rate");
    let throughput = Setting { profile: Profile::Throughput, ..logged.clone() };
    assert_eq!(status(&throughput, &rich()), ("NOT APPLICABLE", 0, 0));
    let run = collect(&logged, window(10, &rich()));
    let text = table("a run", &run, &[]);
    assert!(text.starts_with("a run (virtual time, nothing moved)\n"), "{text}");
    assert!(text.contains("NVMe Read P95 < 200ms: not applicable: virtual time, nothing moved"), "{text}");
    assert!(!text.contains("PRIMARY"), "{text}");
    let summary = &Value::Object(report_of(&run))["summary"];
    assert_eq!(
        (&summary["clock"], &summary["primary_metric"]["is_primary"]),
        (&json!("virtual_logged"), &json!(false))
    );
}

/// Broken by: bandwidth of a drive by a second that is not one.
#[test]
fn in_virtual_time_bandwidth_is_by_time_at_the_device() {
    // 9 GiB in 0.9 s at the device, read for a caller; 1 GiB in 0.9 s, pushed down.
    let facts = [
        moved(9 << 30, StoreFact::Hit { tier: DRIVE }, ms(1000.0)),
        moved(1 << 30, StoreFact::Demoted { from: CPU, to: DRIVE }, ms(1000.0)),
    ];
    let judged = |clock| {
        let throughput = Setting { profile: Profile::Throughput, clock, ..setting() };
        let found = collect(&throughput, window(10, &facts)).assessment().criteria;
        [found[0].actual, found[1].actual].map(|rate| (rate * 100.0).round() / 100.0)
    };
    assert_eq!(judged(Clock::Wall), [0.9, 0.1]);
    assert_eq!(judged(Clock::Virtual), [10.0, 1.11]);
    let run = collect(&Setting { clock: Clock::Virtual, ..setting() }, window(10, &facts));
    let text = table("a run", &run, &[]);
    assert!(text.starts_with("a run\nVirtual time: every rate is per virtual second\n"), "{text}");
    assert!(!text.contains("PRIMARY"), "{text}");
    assert_eq!(Value::Object(report_of(&run))["summary"]["clock"], "virtual");
}

/// Broken by: a share of something else than the bytes that callers read.
#[test]
fn a_run_of_memory_is_said() {
    let warnings = |memory: u64, storage: u64, setting: &Setting| {
        let mut facts = vec![served(Class::Batch, ms(1.0), ms(1.0), ms(0.0))];
        facts.extend(hit(CPU, memory * MIB, Why::Decode, ms(1.0)));
        facts.extend(hit(DRIVE, storage * MIB, Why::Decode, ms(1.0)));
        collect(setting, window(1, &facts)).warnings().join("; ")
    };
    assert_eq!(
        warnings(1960, 40, &setting()),
        "only 2.0 % of the bytes read came from storage: this run measures memory; give less --cpu-mem-gb"
    );
    assert_eq!(warnings(1940, 60, &setting()), "");
    assert_eq!(warnings(980, 20, &setting()), "", "too little to say");
    let in_memory = Setting { tiers: vec![TierRole::Gpu, TierRole::Cpu], ..setting() };
    let mut storage = Storage::new(&in_memory);
    let facts = hit(CPU, 2000 * MIB, Why::Decode, ms(1.0));
    window(1, &facts).into_iter().for_each(|(at, fact)| storage.record(&BenchEvent { at, fact }));
    let run = storage.summary(AtEnd { tiers: vec![TierUse::default(); 2] });
    assert!(!run.warnings().join("; ").contains("measures memory"), "there is no storage to measure");
}

/// Broken by: a row for every second of however long a window.
#[test]
fn a_timeline_has_a_day_of_rows_at_most() {
    let at = Nanos::from_seconds;
    let request = |total| served(Class::Batch, ms(total), Nanos::ZERO, Nanos::ZERO);
    let read = moved(MIB, StoreFact::Hit { tier: DRIVE }, ms(1.0));
    let run = |end: f64| {
        let early = [(at(0.0), BenchFact::Opened), (at(0.5), request(5.0)), (at(1.5), request(7.0))];
        let late =
            [(at(2.5), read), (at(end - 0.5), request(9.0)), (at(end - 0.5), read), (at(end), closed())];
        collect(&setting(), early.into_iter().chain(late))
    };
    let (day, longer) = (run(86_400.0), run(86_401.0));
    assert_eq!((day.timeline.len(), day.timeline_step), (86_400, at(1.0)));
    assert_eq!((longer.timeline.len(), longer.timeline_step), (43_201, at(2.0)));
    let [first, last] = [longer.timeline[0], longer.timeline[43_200]];
    assert_eq!((first.requests, first.end_to_end_p95, last.end_to_end_p95), (2, ms(7.0), ms(9.0)));
    let ages = run(1e9);
    assert!(ages.timeline.len() <= 86_400 && ages.timeline_step.as_seconds() > 1e4);
    let sum = |count: fn(&StorageSummary) -> u64| [&day, &longer, &ages].map(count);
    assert_eq!(sum(|run| run.timeline.iter().map(|row| row.requests).sum()), [3; 3]);
    assert_eq!(sum(|run| run.timeline.iter().map(|row| row.storage_bytes()).sum()), [2 * MIB; 3]);
    let report = Value::Object(report_of(&longer));
    let rows = report["throughput_timeline"].as_array().expect("a list");
    assert_eq!((&rows[0]["timestamp"], &rows[43_200]["timestamp"]), (&json!(2.0), &json!(86_401.0)));
    assert_eq!(rows[0]["throughput_tokens_per_sec"], json!(100.0));
}

#[test]
fn the_timeline_is_by_second() {
    let request = |total| served(Class::Batch, ms(total), Nanos::ZERO, Nanos::ZERO);
    let at = Nanos::from_seconds;
    let events = [
        (at(10.0), BenchFact::Opened),
        (at(10.5), request(5.0)),
        (at(14.2), request(7.0)),
        (at(13.9), request(9.0)),
        (at(15.5), closed()),
    ];
    let report = Value::Object(report_of(&collect(&setting(), events)));
    let rows = report["throughput_timeline"].as_array().expect("a list");
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row["timestamp"].as_f64(), row["requests"].as_u64(), row["end_to_end_p95_ms"].as_f64()))
        .map(|(at, requests, p95)| (at.unwrap_or(-1.0), requests.unwrap_or(0), p95.unwrap_or(-1.0)))
        .collect();
    assert_eq!(
        found,
        [(1.0, 1, 5.0), (2.0, 0, 0.0), (3.0, 0, 0.0), (4.0, 1, 9.0), (5.0, 1, 7.0), (5.5, 0, 0.0)]
    );
}

#[test]
fn long_lists_of_latencies_are_left_out_and_said() {
    let request = served(Class::Batch, ms(1.0), ms(1.0), ms(0.0));
    let short = finished(&setting(), &[request; 3]);
    assert_eq!(short["end_to_end_latencies"], json!([0.002, 0.002, 0.002]));
    let long = finished(&setting(), &vec![request; 100_001]);
    assert_eq!(long["latency_lists"], "omitted: 100001 values, see histograms");
    assert!(long.get("end_to_end_latencies").is_none());
}

#[test]
fn latency_is_said_by_size() {
    let facts: Vec<BenchFact> = [MIB - 1, MIB, 4 * MIB, 1024 * MIB, 5000 * MIB]
        .into_iter()
        .flat_map(|bytes| hit(DRIVE, bytes, Why::Decode, ms(10.0)))
        .collect();
    let report = finished(&setting(), &facts);
    let rows = report["summary"]["latency_by_size"].as_array().expect("a list");
    let found: Vec<_> = rows.iter().map(|row| (row["size"].as_str().unwrap_or(""), &row["count"])).collect();
    let expected = [("<1 MiB", 1), ("1-4 MiB", 1), ("4-16 MiB", 1), (">=1 GiB", 2)];
    assert_eq!(found, expected.map(|(name, count)| (name, json!(count))).each_ref().map(|(n, c)| (*n, c)));
    // 9 ms at the device for 4 MiB.
    assert_eq!(rows[2]["p95_ms_per_mib"], json!(2.25));
    assert_eq!(rows[2]["gbps"].as_f64().map(|gbps| (gbps * 1000.0).round()), Some(434.0));
}

/// Broken by: a sentence with another part's numbers.
#[test]
fn the_bottleneck_is_said_in_words() {
    let sentence = |facts: &[BenchFact]| {
        let paced = Setting { generation_ns_per_token: 30_000_000, ..setting() };
        collect(&paced, window(10, facts)).bottleneck().sentence
    };
    let request = |waited, storage, generation| served(Class::Batch, ms(waited), ms(storage), ms(generation));
    let reads = touched(Operation::Read, Why::Decode, Answer::Hit(DRIVE), ms(71.0));
    let queued = BenchFact::Touched(Touch {
        operation: Operation::Read,
        why: Why::Decode,
        answer: Answer::Hit(DRIVE),
        bytes: MIB,
        times: IoTimes { device: ms(7.0), ..times(ms(100.0)) },
    });
    let [copy, asked] = write(CPU, MIB, ms(9.0));
    let quick = moved(MIB, StoreFact::Stored { tier: CPU }, ms(1.0));
    let found = [
        sentence(&[request(86.0, 14.0, 0.0), reads]),
        sentence(&[request(20.0, 80.0, 0.0), reads, copy, asked]),
        sentence(&[request(48.0, 52.0, 0.0), queued]),
        sentence(&[request(20.0, 80.0, 0.0), copy, asked]),
        sentence(&[request(10.0, 90.0, 0.0), quick, asked]),
        sentence(&[request(0.0, 10.0, 30.0), reads]),
        sentence(&[]),
    ];
    let expected = [
        "queue wait: 86 % of end-to-end latency; requests come faster than they are served",
        "storage reads: 71 % of end-to-end latency, of which 90 % at the device and 10 % waiting for it",
        "storage reads: 52 % of end-to-end latency, of which 7 % at the device and 93 % waiting for it",
        "memory tiers: 80 % of end-to-end latency; copies in memory",
        "waiting for storage: 80 % of end-to-end latency; entries for memory behind the drive, and behind \
         what is pushed down for them",
        "generation: 75 % of end-to-end latency; it is paced at 30 ms a token, storage is not what limits",
        "nothing was served, so there is nothing to divide",
    ];
    assert_eq!(found, expected);
}

/// Broken by: another metric for a configuration, or a value that is not the one of the metric's own key.
#[test]
fn the_primary_metric_follows_host_memory() {
    let found = [0u64, 1, 4].map(|gib| {
        let report = finished(&Setting { cpu_mem_bytes: gib << 30, ..setting() }, &rich());
        let summary = &report["summary"];
        let primary = &summary["primary_metric"];
        let misleading = summary["throughput"]["storage_io"]["misleading"].as_bool();
        let values = [
            &summary["cache_stats"]["tier_storage_kv_bytes_read_gb"],
            &summary["avg_throughput_tokens_per_sec"],
            &summary["storage_throughput_tokens_per_sec"],
        ];
        let same = values.iter().position(|value| **value == primary["value"]);
        (primary["name"].as_str().unwrap_or("").to_owned(), same, misleading)
    });
    let expected = [("decode_bytes_read", 0, true), ("wall_clock", 1, false), ("storage_io", 2, false)];
    assert_eq!(
        found,
        expected.map(|(name, value, misleading)| (name.to_owned(), Some(value), Some(misleading)))
    );
}

#[test]
fn histograms_of_another_precision_are_refused() {
    let mut report = finished(&setting(), &rich());
    report["histograms"]["significant_digits"] = json!(2);
    let refused = read_histograms(&report).expect_err("they do not add up").to_string();
    assert!(refused.contains("`significant_digits` is not 3"), "{refused}");
    assert!(read_histograms(&json!({})).is_err());
}

/// Keys of the reference's summaries that ours must have too; those that the caller adds are left out.
fn missing(path: &str, reference: &Map<String, Value>, ours: &Value) -> Vec<String> {
    let wanted = reference.iter().filter(|(key, _)| !key.starts_with("autoscaling") && *key != "no_data");
    let missing = wanted.flat_map(|(key, value)| match (value, ours.get(key)) {
        (_, None) => vec![format!("{path}/{key}")],
        (Value::Object(keys), Some(ours)) => missing(&format!("{path}/{key}"), keys, ours),
        _ => Vec::new(),
    });
    missing.collect()
}

/// Broken by: any key of the reference that is renamed or moved.
#[test]
fn every_key_of_the_reference_is_there() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/kv-bench/reference_runs.json");
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let runs: BTreeMap<String, Value> = serde_json::from_str(&text).expect("JSON");
    let ours = finished(&setting(), &rich());
    for (name, run) in runs {
        let top = run["top_level_keys"].as_array().expect("a list");
        for key in top.iter().filter_map(Value::as_str) {
            assert!(key == "fio_workload" || ours.get(key).is_some(), "{name}: {key}");
        }
        if let Some(summary) = run["summary"].as_object() {
            assert_eq!(missing(&name, summary, &ours["summary"]), Vec::<String>::new());
        }
    }
}

#[test]
fn the_text_fits_on_a_screen() {
    let run = collect(&setting(), window(10, &rich()));
    let text = table("wavetank bench: tiny-1b, 8 users", &run, &run.warnings());
    assert!(text.lines().count() <= 45, "{}", text.lines().count());
    insta::assert_snapshot!(text);
}

fn parameters() -> Vec<(String, Value)> {
    let named = [
        ("Model", json!("tiny, \"1b\"")),
        ("Num Users", json!(8)),
        ("Duration (s)", json!(10)),
        ("GPU Mem (GB)", json!(0)),
        ("CPU Mem (GB)", json!(4.5)),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Broken by: a column that is written from anything else than the report.
#[test]
fn the_workbook_says_what_the_report_says() {
    use calamine::{Data, Reader, Xlsx};
    let report = finished(&setting(), &rich());
    let mut bytes = Vec::new();
    xlsx(&report, &parameters(), &mut bytes).expect("a vector takes everything");
    let mut book: Xlsx<_> = Xlsx::new(std::io::Cursor::new(bytes)).expect("a workbook");
    assert_eq!(book.sheet_names(), ["Summary", "Run Parameters", "Performance Metrics", "QoS Metrics"]);
    let rows: Vec<Vec<Data>> =
        book.worksheet_range("Summary").expect("a sheet").rows().map(<[Data]>::to_vec).collect();
    let cell = |name: &str| {
        let column = rows[0].iter().position(|cell| *cell == *name).expect(name);
        rows[1][column].to_string()
    };
    let summary = &report["summary"];
    let expected = [
        ("Model", &json!("tiny, \"1b\"")),
        ("CPU Mem (GB)", &json!(4.5)),
        ("Total Requests", &summary["total_requests"]),
        ("Storage IO P95 (ms)", &summary["storage_io_latency_ms"]["p95"]),
        ("cache_stats.storage_read_device_p99_ms", &summary["cache_stats"]["storage_read_device_p99_ms"]),
        ("qos_metrics.batch.latency_ms.mean", &summary["qos_metrics"]["batch"]["latency_ms"]["mean"]),
    ];
    for (name, value) in expected {
        let value = value.as_f64().map_or_else(|| value.as_str().unwrap_or("").to_owned(), |v| v.to_string());
        assert_eq!(cell(name), value, "{name}");
    }
    let qos = book.worksheet_range("QoS Metrics").expect("a sheet");
    let classes: Vec<String> = qos.rows().map(|row| row[0].to_string()).collect();
    assert_eq!(classes, ["Class", "batch", "interactive", "responsive"]);
}

#[test]
fn the_csv_is_the_summary_row() {
    let report = finished(&setting(), &rich());
    let mut bytes = Vec::new();
    csv(&report, &parameters(), &mut bytes).expect("a vector takes everything");
    let text = String::from_utf8(bytes).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with(
        "Model,Num Users,Duration (s),GPU Mem (GB),CPU Mem (GB),Total Requests,Total Tokens,\
         Avg Throughput (tok/s),Storage Throughput (tok/s),Cache Hit Rate,\
         E2E Latency P95 (ms),Storage IO P95 (ms),"
    ));
    assert!(lines[1].starts_with("\"tiny, \"\"1b\"\"\",8,10,0,4.5,40,4000,400.0,"), "{}", lines[1]);
}
