//! Workers that came and went, in a few lines (spec/replay.md 1.4).

use serde_json::Value;

use super::table::{number, precise};
use crate::pointers;

/// Changes that are printed; the report has all.
const MOST_LINES: usize = 20;

/// What a report says of its scaling policy; nothing where there was none.
pub fn lines(report: &Value) -> String {
    let Some(scaling) = report.get("scaling") else { return String::new() };
    let events = pointers::items(scaling, "/events");
    let ticks = pointers::number(scaling, "/ticks");
    let mut text = format!("Scaling: {} in {ticks} looks\n", counted(events.len(), "change"));
    for event in events.iter().take(MOST_LINES) {
        let word = |key: &str| event[key].as_str().unwrap_or_default();
        let (from, to) = (pointers::number(event, "/from"), pointers::number(event, "/to"));
        let seconds = number(pointers::number(event, "/at_ms") / 1000.0);
        text += &format!("  {seconds} s: {} {from} -> {to} ({})\n", word("pool"), word("reason"));
    }
    if events.len() > MOST_LINES {
        text += &format!("  and {} more in the report\n", counted(events.len() - MOST_LINES, "change"));
    }
    for pool in pointers::items(scaling, "/pools") {
        let value = |key: &str| pointers::number(pool, key);
        text += &format!(
            "  {} workers: {} on average, {} at most, {} worker-seconds, {} GPU-hours\n",
            pool["pool"].as_str().unwrap_or_default(),
            number(value("/mean_workers")),
            value("/most_workers"),
            number(value("/worker_seconds")),
            precise(value("/gpu_hours")),
        );
    }
    text
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_told_one_by_one_and_then_counted() {
        assert_eq!(lines(&json!({})), "");
        let event = json!({ "at_ms": 1500.0, "pool": "decode", "from": 1, "to": 2, "reason": "why" });
        let pool = json!({
            "pool": "decode", "mean_workers": 1.25, "most_workers": 2, "worker_seconds": 4500.0,
            "gpu_hours": 0.5,
        });
        let report = |events: usize| {
            let events = vec![event.clone(); events];
            json!({ "scaling": { "ticks": 7, "events": events, "pools": [pool] } })
        };
        assert_eq!(
            lines(&report(1)),
            "Scaling: 1 change in 7 looks\n  1.50 s: decode 1 -> 2 (why)\n  decode workers: 1.25 on average, \
             2 at most, 4,500.00 worker-seconds, 0.5000 GPU-hours\n"
        );
        assert!(lines(&report(22)).contains("\n  and 2 changes more in the report\n"));
    }
}
