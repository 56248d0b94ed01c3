//! Acceptance cases M1 to M5 of spec/replay.md 11: what events mean in a report.

use wavetank_model::{
    Nanos, Priority, Prompt, Request, RequestId, ServeEvent, SessionId, Sink, TierEvent, WorkerId,
};
use wavetank_report::{Records, Serving, Sla, Summary};

const WORKER: WorkerId = WorkerId(0);

fn ms(value: u64) -> Nanos {
    Nanos(value * 1_000_000)
}

fn request(input_tokens: u32) -> Request {
    Request {
        session: SessionId(0),
        turn: 0,
        prompt: Prompt::unique(0, input_tokens),
        output_tokens: 4,
        priority: Priority::default(),
        think: None,
        labels: None,
    }
}

/// A request that arrives at 0, is admitted once per entry of `reuse`, and emits tokens at `tokens`.
fn tell(sink: &mut impl for<'a> Sink<ServeEvent<'a>>, id: u32, reuse: &[u32], tokens: &[u64]) {
    let (request_id, details) = (RequestId(id), &request(100));
    sink.record(&ServeEvent::RequestArrived { request: request_id, at: Nanos::ZERO, details });
    for &reused_tokens in reuse {
        sink.record(&ServeEvent::RequestAdmitted {
            request: request_id,
            worker: WORKER,
            at: Nanos::ZERO,
            reused_tokens,
        });
    }
    let mut start = Nanos::ZERO;
    for &at in tokens {
        let steps = &[ms(at) - start];
        sink.record(&ServeEvent::TokensEmitted { worker: WORKER, start, steps, requests: &[request_id] });
        start = ms(at);
    }
}

fn complete(sink: &mut impl for<'a> Sink<ServeEvent<'a>>, id: u32, at: u64) {
    sink.record(&ServeEvent::RequestCompleted { request: RequestId(id), worker: WORKER, at: ms(at) });
}

fn summary_of(sla: Sla, tokens: &[u64]) -> Summary {
    let mut serving = Serving::judging(sla);
    tell(&mut serving, 0, &[0], tokens);
    complete(&mut serving, 0, tokens[tokens.len() - 1]);
    serving.summary()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 5e-4 * expected, "{found} is not {expected}");
}

#[test]
fn m1_latencies_of_one_request() {
    let summary = summary_of(Sla::default(), &[50, 60, 75, 95]);
    assert_eq!((summary.ttft_ms.mean, summary.ttst_ms.mean, summary.e2e_ms.mean), (50.0, 10.0, 95.0));
    close(summary.itl_ms.mean, 15.0);
    assert_eq!(summary.tpot_ms.mean, 15.0);
    let summary = summary_of(Sla::default(), &[10, 12, 15]);
    close(summary.itl_ms.mean, 2.5);
    assert_eq!((summary.itl_ms.min, summary.itl_ms.max), (2.0, 3.0));
}

#[test]
fn m1_a_run_of_steps_is_the_same_as_its_steps() {
    let mut serving = Serving::default();
    tell(&mut serving, 0, &[0], &[50]);
    let steps = &[ms(10), ms(15), ms(20)];
    serving.record(&ServeEvent::TokensEmitted {
        worker: WORKER,
        start: ms(50),
        steps,
        requests: &[RequestId(0)],
    });
    complete(&mut serving, 0, 95);
    let (run, single) = (serving.summary(), summary_of(Sla::default(), &[50, 60, 75, 95]));
    assert_eq!(run.ttst_ms, single.ttst_ms);
    assert_eq!(run.e2e_ms, single.e2e_ms);
    close(run.itl_ms.std, single.itl_ms.std);
    assert_eq!(run.output_tokens, 4);
}

#[test]
fn m2_no_tokens_no_latency() {
    let mut serving = Serving::default();
    tell(&mut serving, 0, &[0], &[]);
    complete(&mut serving, 0, 25);
    let summary = serving.summary();
    assert_eq!((summary.counts.completed, summary.duration), (1, ms(25)));
    assert_eq!((summary.ttft_ms.max, summary.e2e_ms.max, summary.itl_ms.max), (0.0, 0.0, 0.0));
    assert_eq!(summary.input_tokens, 100);
}

#[test]
fn m2_tokens_without_completion_count_for_nothing() {
    let mut serving = Serving::default();
    tell(&mut serving, 0, &[0], &[10]);
    let summary = serving.summary();
    assert_eq!((summary.counts.completed, summary.counts.in_flight()), (0, 1));
    assert_eq!((summary.duration, summary.output_tokens), (Nanos::ZERO, 0));
}

/// Broken by: counting who went away as in flight, or its tokens as served.
#[test]
fn who_went_away_is_counted_apart() {
    let (mut serving, mut records) = (Serving::default(), Records::default());
    let nobody = Serving::default().summary().counts_json();
    assert_eq!(nobody.get("cancelled"), None, "a replay's report says nothing of it");
    let lives: [(&[u32], &[u64]); 3] = [(&[0], &[10, 20]), (&[], &[]), (&[0], &[10])];
    for (id, (reuse, tokens)) in (0..).zip(lives) {
        tell(&mut serving, id, reuse, tokens);
        tell(&mut records, id, reuse, tokens);
    }
    for (id, worker) in [(0, Some(WORKER)), (1, None)] {
        let event = ServeEvent::RequestCancelled { request: RequestId(id), worker, at: ms(25) };
        serving.record(&event);
        records.record(&event);
    }
    let summary = serving.summary();
    assert_eq!((summary.counts.arrived, summary.counts.cancelled, summary.counts.in_flight()), (3, 2, 1));
    assert_eq!((summary.counts_json()["cancelled"].as_u64(), summary.output_tokens), (Some(2), 0));
    let ended: Vec<_> =
        records.sorted().map(|record| (record.terminal_status, record.output_length)).collect();
    assert_eq!(ended, [("canceled".into(), 2), ("canceled".into(), 0)]);
}

#[test]
fn m3_reuse_is_the_best_admission_and_the_first() {
    let mut serving = Serving::default();
    tell(&mut serving, 0, &[0, 80], &[10, 20]);
    complete(&mut serving, 0, 20);
    let summary = serving.summary();
    assert_eq!((summary.reused_ratio(), summary.first_reused_ratio()), (0.8, 0.0));
    assert_eq!(summary.counts.readmissions, 1);
}

#[test]
fn m4_bounds_are_inclusive() {
    let good = |ttft, itl, e2e| {
        let sla = Sla { ttft_ms: Some(ttft), itl_ms: Some(itl), e2e_ms: Some(e2e) };
        summary_of(sla, &[50, 60, 75, 95]).goodput.unwrap().0 == 1
    };
    assert!(good(50.0, 15.0, 95.0));
    assert!(!good(49.999, 15.0, 95.0));
    assert!(!good(50.0, 14.999, 95.0));
    assert!(!good(50.0, 15.0, 94.999));
    assert!(summary_of(Sla::default(), &[1]).goodput.is_none());
}

#[test]
fn m4_a_gap_bound_skips_single_tokens_and_refuses_none() {
    let gap = Sla { itl_ms: Some(0.0), ..Sla::default() };
    assert_eq!(summary_of(gap, &[50]).goodput, Some((1, 1)));
    let goodput_without_tokens = |sla| {
        let mut serving = Serving::judging(sla);
        tell(&mut serving, 0, &[0], &[]);
        complete(&mut serving, 0, 25);
        serving.summary().goodput
    };
    assert_eq!(goodput_without_tokens(gap), Some((0, 0)));
    assert_eq!(goodput_without_tokens(Sla { e2e_ms: Some(25.0), ..Sla::default() }), Some((1, 0)));
    assert_eq!(goodput_without_tokens(Sla { e2e_ms: Some(24.0), ..Sla::default() }), Some((0, 0)));
}

#[test]
fn m5_records_are_sorted_by_arrival() {
    let mut records = Records::default();
    let details = &request(10);
    for (id, at) in [(0, 7), (1, 3), (2, 3)] {
        records.record(&ServeEvent::RequestArrived { request: RequestId(id), at: ms(at), details });
    }
    for id in [2, 0, 1] {
        complete(&mut records, id, 20 + u64::from(id));
    }
    let sorted: Vec<_> = records.sorted().map(|record| (record.arrival_time_ms, record.uuid)).collect();
    let last_digits: Vec<_> = sorted.iter().map(|(at, uuid)| (*at, &uuid[35..])).collect();
    assert_eq!(last_digits, [(3.0, "2"), (3.0, "3"), (7.0, "1")]);
}

/// Broken by: a load that counts as waiting in the engine's queue too, or as nothing.
#[test]
fn what_tiers_take_is_a_part_of_the_time_to_first_token() {
    let (id, details) = (RequestId(0), &request(100));
    let parts = |load: Option<(u64, u64)>| {
        let mut serving = Serving::judging(Sla::default());
        let mut records = Records::default();
        let loaded = load.map(|(asked, at)| {
            let (asked, at) = (ms(asked), ms(at));
            ServeEvent::Tier(TierEvent::Loaded { request: id, worker: WORKER, tokens: &[64], asked, at })
        });
        let arrived = ServeEvent::RequestArrived { request: id, at: Nanos::ZERO, details };
        let admitted =
            ServeEvent::RequestAdmitted { request: id, worker: WORKER, at: ms(10), reused_tokens: 64 };
        let steps = &[ms(5)];
        let emitted = ServeEvent::TokensEmitted { worker: WORKER, start: ms(10), steps, requests: &[id] };
        for event in [Some(arrived), loaded, Some(admitted), Some(emitted)].iter().flatten() {
            serving.record(event);
            records.record(event);
        }
        complete(&mut serving, 0, 15);
        complete(&mut records, 0, 15);
        let record = records.sorted().next().unwrap();
        (serving.summary().attribution, record)
    };
    let (with, record) = parts(Some((2, 9)));
    assert_eq!(
        (with.tier_load_ms.mean, with.engine_queue_ms.mean, with.first_token_wait_ms.mean),
        (7.0, 3.0, 5.0)
    );
    assert_eq!(with.json()["ttft"]["tier_load_ms"]["mean"], 7.0);
    assert_eq!((record.tier_tokens, record.tier_load_ms), (vec![64], Some(7.0)));
    let (without, record) = parts(None);
    assert!(without.json()["ttft"].get("tier_load_ms").is_none() && record.tier_load_ms.is_none());
}
