//! Before a port: pieces wait until the device has room for them, completions until they are due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::{Completion, Held, Piece, Port, Seal};
use crate::buffer::Buffer;

/// A piece at the gate.
pub(crate) struct Queued {
    /// Of which entry.
    pub(crate) held: Arc<dyn Held>,
    /// Which.
    pub(crate) piece: Piece,
    /// Its bytes, or room for them.
    pub(crate) buffer: Buffer,
    /// Which way it goes.
    pub(crate) way: Way,
}

/// Which way a piece goes.
pub(crate) enum Way {
    Read,
    Write(Option<Seal>),
}

/// A completion and when it is due; due at once if that is before it finished.
pub(crate) type Due = (Completion, Instant);

/// What happens to pieces at a gate.
pub(crate) trait Rule {
    /// Hands a piece to the port inside, or completes it in its stead.
    fn hand_over(&mut self, inner: &mut dyn Port, queued: Queued) -> Option<Due>;

    /// Takes what the port inside has completed.
    fn take_back(&mut self, completion: Completion) -> Due;
}

/// A port and the rule before it. A piece that is held back counts as with the device.
pub(crate) struct Gate<R> {
    /// The port inside.
    pub(crate) inner: Box<dyn Port>,
    /// The rule.
    pub(crate) rule: R,
    depth: usize,
    queued: VecDeque<Queued>,
    /// With the port inside or held back.
    handed_over: usize,
    late: Late,
}

impl<R: Rule> Gate<R> {
    /// A gate that lets `depth` pieces in at a time.
    pub(crate) fn new(inner: Box<dyn Port>, rule: R, depth: usize) -> Self {
        let (queued, late) = (VecDeque::new(), Late::default());
        Self { inner, rule, depth: depth.max(1), queued, handed_over: 0, late }
    }

    /// Queues a piece.
    pub(crate) fn queue(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, way: Way) {
        self.queued.push_back(Queued { held: Arc::clone(held), piece, buffer, way });
    }

    /// As [`Port::submit`].
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        while self.handed_over < self.depth {
            let Some(queued) = self.queued.pop_front() else { break };
            self.handed_over += 1;
            if let Some((completion, due)) = self.rule.hand_over(&mut *self.inner, queued) {
                self.late.add(completion, due);
            }
        }
        self.inner.submit()
    }

    /// As [`Port::reap`].
    pub(crate) fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        let before = done.len();
        loop {
            self.submit()?;
            self.take_back(None)?;
            self.late.release(done);
            let released = done.len() - before;
            if released > 0 || self.in_flight() == 0 {
                self.handed_over -= released;
                return self.submit();
            }
            let Some(deadline) = deadline.filter(|deadline| Instant::now() < *deadline) else {
                return Ok(());
            };
            let until = self.late.next_due().map_or(deadline, |due| due.min(deadline));
            if self.inner.in_flight() > 0 {
                self.take_back(Some(until))?;
            } else {
                sleep_until(until);
            }
        }
    }

    fn take_back(&mut self, until: Option<Instant>) -> io::Result<()> {
        let mut arrived = Vec::new();
        let result = self.inner.reap(until, &mut arrived);
        for completion in arrived {
            let (completion, due) = self.rule.take_back(completion);
            self.late.add(completion, due);
        }
        result
    }

    /// As [`Port::in_flight`].
    pub(crate) fn in_flight(&self) -> usize {
        self.queued.len() + self.handed_over
    }
}

/// Completions held back until they are due, the earliest first.
#[derive(Default)]
struct Late {
    waiting: BinaryHeap<Reverse<Waiting>>,
    count: u64,
}

struct Waiting {
    /// When it is due; the order it came in settles ties.
    at: (Instant, u64),
    completion: Completion,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Late {
    fn add(&mut self, mut completion: Completion, due: Instant) {
        completion.finished = completion.finished.max(due);
        self.count += 1;
        self.waiting.push(Reverse(Waiting { at: (completion.finished, self.count), completion }));
    }

    fn release(&mut self, done: &mut Vec<Completion>) {
        let now = Instant::now();
        while self.next_due().is_some_and(|due| due <= now) {
            done.extend(self.waiting.pop().map(|Reverse(waiting)| waiting.completion));
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse(waiting)| waiting.at.0)
    }
}

/// What a sleeping thread wakes up late by, at most times.
const OVERSLEPT: Duration = Duration::from_micros(120);

/// Sleeps, then spins the rest: a modelled microsecond is not lost in the kernel's timers.
fn sleep_until(until: Instant) {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(OVERSLEPT) {
            Some(most) => std::thread::sleep(most),
            None => std::hint::spin_loop(),
        }
    }
}
