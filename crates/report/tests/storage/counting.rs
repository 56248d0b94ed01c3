//! What is counted, and where.

use crate::given::*;

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
