//! A benchmark to look at: its setting, its events, and what is made of them.

pub(crate) use proptest::prelude::*;
pub(crate) use serde_json::{Map, Value, json};
pub(crate) use wavetank_model::{
    Answer, BenchEvent, BenchFact, Class, IoTimes, Nanos, Operation, Served, Sink, StoreEvent, StoreFact,
    TierRole, Touch, Why,
};
pub(crate) use wavetank_report::render::storage::{csv, json as report_of, read_histograms, table, xlsx};
pub(crate) use wavetank_report::storage::{
    AtEnd, ClassTarget, Clock, Criteria, Profile, Setting, StorageSummary, TierUse,
};
pub(crate) use wavetank_report::{Buckets, Storage};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const BYTES_PER_TOKEN: u64 = 4096;
pub(crate) const GPU: u8 = 0;
pub(crate) const CPU: u8 = 1;
pub(crate) const DRIVE: u8 = 2;

pub(crate) fn ms(value: f64) -> Nanos {
    Nanos::from_ms(value)
}

pub(crate) fn setting() -> Setting {
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

pub(crate) fn at_end() -> AtEnd {
    let tier = |entries| TierUse { bytes: entries * 64 * MIB, entries };
    AtEnd { tiers: [1, 3, 12].map(tier).to_vec() }
}

pub(crate) fn served(class: Class, waited: Nanos, storage: Nanos, generation: Nanos) -> BenchFact {
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

pub(crate) fn times(total: Nanos) -> IoTimes {
    IoTimes { queue: Nanos::ZERO, host: Nanos(total.0 / 10), device: Nanos(total.0 / 10 * 9), total }
}

pub(crate) fn moved(bytes: u64, fact: StoreFact, total: Nanos) -> BenchFact {
    BenchFact::Stored(StoreEvent { at: Nanos::ZERO, key: 0, bytes, fact, times: times(total) })
}

pub(crate) fn touched(operation: Operation, why: Why, answer: Answer, total: Nanos) -> BenchFact {
    sized(operation, why, answer, MIB, total)
}

pub(crate) fn sized(operation: Operation, why: Why, answer: Answer, bytes: u64, total: Nanos) -> BenchFact {
    BenchFact::Touched(Touch { operation, why, answer, bytes, times: times(total) })
}

/// A hit as the store and the request tell it.
pub(crate) fn hit(tier: u8, bytes: u64, why: Why, total: Nanos) -> [BenchFact; 2] {
    let read = moved(bytes, StoreFact::Hit { tier }, total);
    [read, sized(Operation::Read, why, Answer::Hit(tier), bytes, total)]
}

/// A write as the store and the request tell it.
pub(crate) fn write(tier: u8, bytes: u64, total: Nanos) -> [BenchFact; 2] {
    let written = moved(bytes, StoreFact::Stored { tier }, total);
    [written, sized(Operation::Write, Why::Prefill, Answer::Stored(tier), bytes, total)]
}

pub(crate) fn closed() -> BenchFact {
    BenchFact::Closed { in_flight: 2, queued: 3 }
}

pub(crate) fn collect(
    setting: &Setting,
    events: impl IntoIterator<Item = (Nanos, BenchFact)>,
) -> StorageSummary {
    let mut storage = Storage::new(setting);
    events.into_iter().for_each(|(at, fact)| storage.record(&BenchEvent { at, fact }));
    storage.summary(at_end())
}

/// A window of `seconds` with these facts spread evenly over it.
pub(crate) fn window(seconds: u64, facts: &[BenchFact]) -> Vec<(Nanos, BenchFact)> {
    let end = seconds * 1_000_000_000;
    let place = |index: usize| Nanos(end / (facts.len() as u64 + 1) * (index as u64 + 1));
    let inside = facts.iter().enumerate().map(|(index, &fact)| (place(index), fact));
    [(Nanos::ZERO, BenchFact::Opened)].into_iter().chain(inside).chain([(Nanos(end), closed())]).collect()
}

/// Three tiers, all classes, every kind of fact.
pub(crate) fn rich() -> Vec<BenchFact> {
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

pub(crate) fn finished(setting: &Setting, facts: &[BenchFact]) -> Value {
    Value::Object(report_of(&collect(setting, window(10, facts))))
}

/// What a window may hold, at random.
pub(crate) fn fact() -> impl Strategy<Value = BenchFact> {
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

pub(crate) fn facts() -> impl Strategy<Value = Vec<BenchFact>> {
    prop::collection::vec(fact(), 0..60)
}

/// The paths at which a report has no value.
pub(crate) fn nulls(path: &str, value: &Value, found: &mut Vec<String>) {
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
pub(crate) fn unexpected_nulls(report: &Value) -> Vec<String> {
    let mut found = Vec::new();
    nulls("", report, &mut found);
    found.retain(|path| !path.ends_with("/passed") && !path.ends_with("/met"));
    found
}
