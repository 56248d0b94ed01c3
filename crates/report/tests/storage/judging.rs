//! What is made of the numbers: promises, criteria, drift, the bottleneck, the metric to look at.

use crate::given::*;

/// Broken by: `>=` for `>`, another percentile's target, or judging a tail by too few requests.
#[test]
fn promises_are_judged_by_class() {
    let request = |total| served(Class::Interactive, ms(total), Nanos::ZERO, Nanos::ZERO);
    let mut facts = vec![request(50.0); 95];
    facts.extend([request(50.1); 5]);
    let run = collect(&setting(), window(10, &facts));
    let class = &run.requests.classes[0];
    assert_eq!((class.violations, class.compliance(), class.met()), (5, 0.95, true));
    assert_eq!(class.tail().map(|tail| tail.met), [Some(true), None, None]);
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
    let pushed = moved(MIB, StoreFact::Demoted { from: CPU, to: DRIVE }, ms(1.0));
    let found = [
        sentence(&[request(86.0, 14.0, 0.0), reads]),
        sentence(&[request(20.0, 80.0, 0.0), reads, copy, asked]),
        sentence(&[request(48.0, 52.0, 0.0), queued]),
        sentence(&[request(20.0, 80.0, 0.0), copy, asked]),
        sentence(&[request(10.0, 90.0, 0.0), quick, asked]),
        sentence(&[request(10.0, 90.0, 0.0), quick, asked, pushed]),
        sentence(&[request(0.0, 10.0, 30.0), reads]),
        sentence(&[]),
    ];
    let expected = [
        "queue wait: 86 % of end-to-end latency; requests come faster than they are served",
        "storage reads: 71 % of end-to-end latency, of which 90 % at the device and 10 % waiting for it",
        "storage reads: 52 % of end-to-end latency, of which 7 % at the device and 93 % waiting for it",
        "memory tiers: 80 % of end-to-end latency; copies in memory",
        "waiting for other operations: 80 % of end-to-end latency; entries for memory behind each other, \
         storage had no traffic",
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
