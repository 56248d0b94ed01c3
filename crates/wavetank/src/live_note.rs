//! How well the host kept up with a live run, in words and in a report.

use serde_json::{Value, json};
use wavetank_live::{Lateness, Punctuality};

/// Three lines for people.
pub fn lines(punctuality: &Punctuality) -> String {
    let Punctuality { dispatch, timer, delivery, .. } = punctuality;
    let line = |what: &str, late: &Lateness| match late.count() {
        0 => String::new(),
        _ => format!("{what}: p50 {}, p99 {}, max {}\n", ms(late, 50.0), ms(late, 99.0), ms(late, 100.0)),
    };
    let (dispatch, timer) = (line("Dispatch Lag (ms)", dispatch), line("Timer Error (ms)", timer));
    dispatch + &timer + &line("Delivery Lag (ms)", delivery)
}

fn ms(late: &Lateness, percent: f64) -> String {
    format!("{:.3}", at(late, percent))
}

fn at(late: &Lateness, percent: f64) -> f64 {
    if percent >= 100.0 { late.max().as_ms() } else { late.percentile(percent).as_ms() }
}

/// What a reader of the numbers must know.
pub(crate) fn warnings(punctuality: &Punctuality) -> Vec<String> {
    let mut warnings = Vec::new();
    if !punctuality.dispatch_kept_up() {
        warnings.push(format!(
            "the host could not keep up: requests were sent late, 1 % of them by {} ms or more; \
             it counts as time to the first token",
            ms(&punctuality.dispatch, 99.0)
        ));
    }
    if !punctuality.timers_kept_up() {
        warnings.push(format!(
            "the host could not keep up: passes of {:.3} ms ended late by {:.3} ms on average, 1 % of them \
             by {} ms or more; fewer workers or a lower speedup_ratio would help",
            punctuality.mean_pass_ms(),
            punctuality.timer.mean_ms(),
            ms(&punctuality.timer, 99.0)
        ));
    }
    if !punctuality.delivery_kept_up() {
        warnings.push(format!(
            "the host could not keep up: tokens were seen late, 1 % of them by {} ms or more",
            ms(&punctuality.delivery, 99.0)
        ));
    }
    warnings
}

/// The same in a report; `null` where nothing was due.
pub(crate) fn json(punctuality: &Punctuality) -> Value {
    let Punctuality { dispatch, timer, delivery, .. } = punctuality;
    let kept_up =
        [punctuality.dispatch_kept_up(), punctuality.timers_kept_up(), punctuality.delivery_kept_up()];
    let numbers = |late: &Lateness| match late.count() {
        0 => Value::Null,
        count => json!({
            "count": count,
            "mean": late.mean_ms(),
            "p50": at(late, 50.0),
            "p99": at(late, 99.0),
            "max": at(late, 100.0),
        }),
    };
    json!({
        "dispatch_lag_ms": numbers(dispatch),
        "timer_error_ms": numbers(timer),
        "delivery_lag_ms": numbers(delivery),
        "mean_modelled_pass_ms": punctuality.mean_pass_ms(),
        "kept_up": kept_up.iter().all(|kept_up| *kept_up),
    })
}
