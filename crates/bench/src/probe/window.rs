//! The time in which operations of all threads are counted: it opens when things are under way, and closes
//! when it was long enough and enough has ended.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long something goes on: a time, and longer where too little ended in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) seconds: f64,
    pub(super) operations: u64,
    /// How much longer at most.
    pub(super) patience: f64,
}

impl Span {
    fn is_over(self, elapsed: Duration, ended: u64) -> bool {
        let elapsed = elapsed.as_secs_f64();
        elapsed >= self.seconds && (ended >= self.operations || elapsed >= self.seconds * self.patience)
    }
}

/// When operations of several threads are counted.
pub(super) struct Window {
    start: Instant,
    warm_up: Span,
    span: Span,
    begin: OnceLock<Instant>,
    end: OnceLock<Instant>,
    before: AtomicU64,
    inside: AtomicU64,
}

/// Where in its window an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before it opened.
    Before,
    /// This long after it opened.
    Inside(Duration),
    /// After it closed: nothing more is to be asked for.
    After,
}

impl Window {
    /// One that opens after a while.
    pub(super) fn after(warm_up: Span, span: Span) -> Self {
        Self {
            start: Instant::now(),
            warm_up,
            span,
            begin: OnceLock::new(),
            end: OnceLock::new(),
            before: AtomicU64::new(0),
            inside: AtomicU64::new(0),
        }
    }

    /// An operation was seen to end `now`. The one that opens the window is before it, the one that closes
    /// it is in it: what is counted ended in the time that is counted.
    pub(super) fn saw_end(&self, now: Instant) -> Moment {
        if self.end.get().is_some_and(|end| now > *end) {
            return Moment::After;
        }
        let Some(begin) = self.begin.get() else {
            let ended = self.before.fetch_add(1, Ordering::Relaxed) + 1;
            if self.warm_up.is_over(now.saturating_duration_since(self.start), ended) {
                self.begin.get_or_init(|| now);
            }
            return Moment::Before;
        };
        if now <= *begin {
            return Moment::Before;
        }
        let elapsed = now.duration_since(*begin);
        let ended = self.inside.fetch_add(1, Ordering::Relaxed) + 1;
        if self.span.is_over(elapsed, ended) {
            self.end.get_or_init(|| now);
        }
        Moment::Inside(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: counting the operation that opens the window, leaving out the one that closes it, or
    /// closing before enough has ended.
    #[test]
    fn what_ends_between_the_first_and_the_last_is_counted() {
        let span = |seconds, operations| Span { seconds, operations, patience: 10.0 };
        let window = Window::after(span(1.0, 2), span(2.0, 3));
        let at = |seconds| window.start + Duration::from_secs(seconds);
        let inside = |seconds| Moment::Inside(Duration::from_secs(seconds));
        assert_eq!(window.saw_end(at(1)), Moment::Before, "long enough, but the first to end");
        assert_eq!(window.saw_end(at(2)), Moment::Before);
        assert_eq!(window.saw_end(at(2)), Moment::Before, "another thread's, at the same time");
        assert_eq!(window.saw_end(at(3)), inside(1));
        assert_eq!(window.saw_end(at(5)), inside(3), "long enough, but the second to end");
        assert_eq!(window.saw_end(at(6)), inside(4));
        assert_eq!(window.saw_end(at(7)), Moment::After);
        assert_eq!(window.saw_end(at(6)), inside(4), "another thread's, seen later");
    }

    /// Broken by: a window that waits for operations for ever.
    #[test]
    fn patience_ends() {
        let window = Window::after(
            Span { seconds: 1.0, operations: 0, patience: 1.0 },
            Span { seconds: 1.0, operations: 100, patience: 3.0 },
        );
        let at = |seconds| window.start + Duration::from_secs(seconds);
        assert_eq!(window.saw_end(at(1)), Moment::Before);
        assert_eq!(window.saw_end(at(5)), Moment::Inside(Duration::from_secs(4)));
        assert_eq!(window.saw_end(at(6)), Moment::After);
    }
}
