//! What clients did, counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wavetank_http::Tally;

/// Requests by what was asked for and how it was answered, and what went out.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) connections: Arc<Tally>,
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    sent_bytes: AtomicU64,
    open_streams: AtomicU64,
}

impl Counts {
    /// A request to `route` was answered.
    pub(super) fn answered(&self, route: &'static str, status: u16) {
        *self.requests().entry((route, status)).or_default() += 1;
    }

    /// So many bytes of answers went out.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A stream was opened; it ends with what is returned.
    pub(super) fn open_stream(self: &Arc<Self>) -> OpenStream {
        self.open_streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(self))
    }

    /// Requests answered, and those of them refused.
    pub(super) fn total(&self) -> (u64, u64) {
        let requests = self.requests();
        let refused = requests.iter().filter(|((_, status), _)| *status >= 400).map(|(_, count)| count);
        (requests.values().sum(), refused.sum())
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Appends them as Prometheus reads them.
    pub(super) fn write(&self, text: &mut String) {
        text.push_str("# HELP http_requests_total Requests answered, by route and status.\n");
        text.push_str("# TYPE http_requests_total counter\n");
        for ((route, status), count) in self.requests().iter() {
            let _ = writeln!(text, "http_requests_total{{handler=\"{route}\",status=\"{status}\"}} {count}");
        }
        let open = self.open_streams.load(Ordering::Relaxed);
        let rows = [
            ("http_response_bytes_total", "counter", "Bytes of answers sent.", self.sent_bytes()),
            ("http_open_streams", "gauge", "Answers that are being streamed.", open),
            ("http_connections", "gauge", "Clients that are connected.", self.connections.connections()),
            ("http_connections_refused_total", "counter", "Clients turned away.", self.connections.refused()),
        ];
        for (name, kind, help, value) in rows {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
    }

    fn requests(&self) -> MutexGuard<'_, BTreeMap<(&'static str, u16), u64>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream while it is open.
#[derive(Debug)]
pub(super) struct OpenStream(Arc<Counts>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open_streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a stream that is counted after its end, or a status that is lost.
    #[test]
    fn everything_is_counted() {
        let counts = Arc::new(Counts::default());
        counts.answered("/health", 200);
        counts.answered("/v1/models", 401);
        counts.sent(5);
        let stream = counts.open_stream();
        let told = |counts: &Counts| {
            let mut text = String::new();
            counts.write(&mut text);
            text
        };
        let text = told(&counts);
        assert!(text.contains("http_requests_total{handler=\"/v1/models\",status=\"401\"} 1\n"), "{text}");
        assert!(text.contains("http_open_streams 1\n") && text.contains("http_response_bytes_total 5\n"));
        drop(stream);
        assert!(told(&counts).contains("http_open_streams 0\n"));
        assert_eq!(counts.total(), (2, 1));
    }
}
