//! What became of events and spans, for `/status` and metrics.

use crate::assembly::SessionCounts;
use crate::prometheus::Row;
use crate::tally::Exports;

/// What became of events and spans so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStatus {
    /// Events that wait.
    pub queued_events: u64,
    /// Events that were taken.
    pub events: u64,
    /// Those that found the queue full.
    pub lost_events: u64,
    /// Sessions and spans.
    pub sessions: SessionCounts,
    /// Spans, by where they went.
    pub exports: Vec<Exports>,
}

/// What became of them in the end.
pub type Exported = TraceStatus;

impl TraceStatus {
    /// Spans that arrived, everywhere.
    pub fn sent(&self) -> u64 {
        self.exports.iter().map(|export| export.sent).sum()
    }

    /// Spans that did not.
    pub fn lost(&self) -> u64 {
        self.exports.iter().map(Exports::lost_in_all).sum()
    }

    /// The same as metrics.
    pub fn rows(&self) -> Vec<Row> {
        let counts = &self.sessions;
        let mut rows = vec![
            Row::gauge("trace_events_queued", "Events that wait to become spans.", self.queued_events as f64),
            Row::counter("trace_events", "Events that became spans or parts of them.", self.events),
            Row::counter("trace_events_lost", "Events that found the queue full.", self.lost_events),
            Row::gauge("trace_sessions_open", "Sessions whose root span is open.", counts.open as f64),
            Row::counter("trace_strays", "Events that belong to nothing that is open.", counts.strays),
            Row::counter("trace_sessions_unsampled", "Sessions that are not exported.", counts.unsampled),
            Row::counter("trace_spans", "Spans made.", counts.spans),
        ];
        let ends = [
            ("end", counts.ended),
            ("orphaned", counts.orphaned),
            ("displaced", counts.displaced),
            ("cut_short", counts.cut_short),
        ];
        rows.extend(ends.map(|(why, count)| {
            Row::counter("trace_sessions_ended", "Sessions that ended, by why.", count).label("reason", why)
        }));
        for export in &self.exports {
            let target = || export.target.clone();
            let sent = Row::counter("trace_spans_sent", "Spans that arrived.", export.sent);
            let waiting = Row::gauge("trace_spans_waiting", "Spans on their way.", export.waiting() as f64);
            rows.extend([sent.label("target", target()), waiting.label("target", target())]);
            rows.extend(export.lost.iter().map(|(why, count)| {
                let lost = Row::counter("trace_spans_lost", "Spans that did not arrive, by why.", *count);
                lost.label("target", target()).label("reason", why.name())
            }));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::{Names, render};
    use crate::tally::Reason;

    /// Broken by: a count that is not told, or told as another.
    #[test]
    fn every_count_is_a_metric() {
        let sessions = SessionCounts {
            open: 1,
            ended: 2,
            orphaned: 3,
            displaced: 4,
            cut_short: 5,
            unsampled: 6,
            strays: 7,
            spans: 8,
        };
        let exports = vec![Exports {
            target: "http://h (grpc)".to_owned(),
            offered: 100,
            sent: 50,
            lost: vec![(Reason::QueueFull, 20), (Reason::Rejected, 10)],
            problem: String::new(),
        }];
        let status = TraceStatus { queued_events: 9, events: 10, lost_events: 11, sessions, exports };
        let text = render(&status.rows(), Names::Ours);
        let numbers: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "wavetank_trace_events_queued 9",
            "wavetank_trace_events_total 10",
            "wavetank_trace_events_lost_total 11",
            "wavetank_trace_sessions_open 1",
            "wavetank_trace_strays_total 7",
            "wavetank_trace_sessions_unsampled_total 6",
            "wavetank_trace_spans_total 8",
            "wavetank_trace_sessions_ended_total{reason=\"end\"} 2",
            "wavetank_trace_sessions_ended_total{reason=\"orphaned\"} 3",
            "wavetank_trace_sessions_ended_total{reason=\"displaced\"} 4",
            "wavetank_trace_sessions_ended_total{reason=\"cut_short\"} 5",
            "wavetank_trace_spans_sent_total{target=\"http://h (grpc)\"} 50",
            "wavetank_trace_spans_waiting{target=\"http://h (grpc)\"} 20",
            "wavetank_trace_spans_lost_total{target=\"http://h (grpc)\",reason=\"queue_full\"} 20",
            "wavetank_trace_spans_lost_total{target=\"http://h (grpc)\",reason=\"rejected\"} 10",
        ];
        assert_eq!(numbers, expected);
    }
}
