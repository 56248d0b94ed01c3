//! Laws of a course.

use super::*;

const MS: u64 = 1_000_000;

fn course() -> CourseOf {
    CourseOf::new(&[Workers { count: 2, blocks: 100 }])
}

fn total(values: &[f64], course: &Course) -> f64 {
    let seconds = |span: usize| {
        let begun = span as u64 * course.step.0;
        (course.end.0 - begun).min(course.step.0) as f64 / 1e9
    };
    values
        .iter()
        .enumerate()
        .filter(|(_, value)| !value.is_nan())
        .map(|(at, value)| value * seconds(at))
        .sum()
}

/// Broken by: a moment that is not moved to the beginning of the longer span, counts that get lost in
/// widening, and levels that are not carried on to the next span.
#[test]
fn nothing_is_lost_when_spans_get_longer() {
    let mut of = course();
    for request in 0..1000 {
        let (arrival, routed) = (Nanos(request * 37 * MS), Nanos(request * 37 * MS + 11 * MS));
        of.arrived(arrival);
        of.moved(Place::Router, Place::Waiting(WorkerId(1)), routed);
        of.moved(Place::Waiting(WorkerId(1)), Place::Running(WorkerId(1)), Nanos(routed.0 + 5 * MS));
        of.moved(Place::Running(WorkerId(1)), Place::Elsewhere, Nanos(routed.0 + 400 * MS));
        of.emitted(routed, Nanos(routed.0 + 390 * MS), 17);
    }
    let end = Nanos(38_000 * MS);
    let course = of.course(end);
    assert!(course.fleet.arrived_per_s.len() > 200 && course.fleet.arrived_per_s.len() <= 400);
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    near(total(&course.fleet.arrived_per_s, &course), 1000.0);
    near(total(&course.fleet.output_tokens_per_s, &course), 17_000.0);
    near(total(&course.fleet.in_router, &course), 11.0);
    near(total(&course.tracks[1].waiting, &course), 5.0);
    near(total(&course.tracks[1].running, &course), 395.0);
    assert_eq!(total(&course.tracks[0].running, &course), 0.0);
}

/// Broken by: percentiles of the wrong span, or of all spans.
#[test]
fn latencies_are_those_of_their_span() {
    let mut of = course();
    for (at, ttft_ms) in [(10, 1.0), (11, 3.0), (900, 50.0)] {
        let at = Nanos(at * MS);
        let served =
            Served { first_token: at, last_token: at, ttft_ms, tpot_ms: None, e2e_ms: 2.0 * ttft_ms };
        of.completed(at, Some(served));
    }
    let course = of.course(Nanos(1000 * MS));
    let span = |at: u64| (at * MS / course.step.0) as usize;
    assert_eq!((course.fleet.ttft_ms.p50[span(10)], course.fleet.ttft_ms.p99[span(10)]), (3.0, 3.0));
    assert_eq!((course.fleet.ttft_ms.p50[span(900)], course.fleet.e2e_ms.p50[span(900)]), (50.0, 100.0));
    assert!(course.fleet.ttft_ms.p50[span(500)].is_nan() && course.fleet.tpot_ms.p50[span(900)].is_nan());
}

/// Broken by: spans that stay short with few requests, get long with many, or get too few.
#[test]
fn spans_have_requests_enough_for_percentiles() {
    let spans = |requests: u64| {
        let mut of = course();
        for number in 0..requests {
            let at = Nanos(number * 1000 * MS / requests);
            let served = Served { first_token: at, last_token: at, ttft_ms: 1.0, tpot_ms: None, e2e_ms: 1.0 };
            of.completed(at, Some(served));
        }
        of.course(Nanos(1000 * MS)).fleet.ttft_ms.p99.len()
    };
    assert_eq!([spans(10), spans(500), spans(2000), spans(20_000)], [63, 63, 63, 250]);
}

/// Broken by: blocks that are counted from the start of a pass on, or not kept between passes.
#[test]
fn caches_are_used_until_they_are_not() {
    let mut of = course();
    of.ran(WorkerId(0), (Nanos(0), Nanos(100 * MS)), 50);
    of.ran(WorkerId(0), (Nanos(300 * MS), Nanos(400 * MS)), 0);
    let course = of.course(Nanos(400 * MS));
    let track = &course.tracks[0];
    let at = |values: &[f64], ms: u64| values[(ms * MS / course.step.0) as usize];
    assert_eq!((at(&track.cache_use, 50), at(&track.cache_use, 200)), (0.0, 0.5));
    assert_eq!((at(&track.busy, 50), at(&track.busy, 200), at(&track.busy, 350)), (1.0, 0.0, 1.0));
    assert_eq!((track.first_worker, track.last_worker), (0, 0));
}

#[test]
fn large_fleets_share_tracks() {
    let mut of = CourseOf::new(&[Workers { count: 100, blocks: 10 }, Workers { count: 50, blocks: 20 }]);
    of.ran(WorkerId(149), (Nanos(0), Nanos(MS)), 20);
    let course = of.course(Nanos(2 * MS));
    assert_eq!((course.tracks.len(), course.tracks[49].last_worker), (50, 149));
    assert!((course.tracks[49].cache_use[1] - 20.0 / 60.0).abs() < 1e-12);
}
