//! What one thread sends to one tier: requests by way and size, and how many are under way over time. Two
//! updates per piece.
//!
//! Sizes are those of the requests that a backend of files makes of a piece: whole blocks, with the entry's
//! header in front of its first piece or, where that has been written already, on its own.

use std::time::{Duration, Instant};

use crate::buffer::{ALIGN, HEADROOM, PIECE};
use crate::pipes::Way;

/// Blocks of the largest request.
const BLOCKS: usize = (HEADROOM + PIECE) / ALIGN;

/// What was sent so far, or, by [`Flow::since`], between two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Requests by way and blocks.
    requests: [Vec<u64>; 2],
    /// Pieces that were sent: one request, or two with a header of its own.
    pub pieces: u64,
    /// Entries whose last piece was written.
    pub sealed: u64,
    /// How long at least one piece was under way.
    pub busy: Duration,
    /// How long none was.
    pub idle: Duration,
    /// Pieces under way, summed over time.
    pub depth_time: Duration,
    /// How often nothing was under way and then something.
    pub starts: u64,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            requests: [vec![0; BLOCKS + 1], vec![0; BLOCKS + 1]],
            pieces: 0,
            sealed: 0,
            busy: Duration::ZERO,
            idle: Duration::ZERO,
            depth_time: Duration::ZERO,
            starts: 0,
        }
    }
}

impl Flow {
    /// The same with these requests, as bytes and how many, instead of those it has.
    #[must_use]
    pub fn with_requests(mut self, reads: &[(u64, u64)], writes: &[(u64, u64)]) -> Self {
        self.requests = [reads, writes].map(|sizes| {
            let mut counts = vec![0; BLOCKS + 1];
            sizes.iter().for_each(|(bytes, count)| counts[*bytes as usize / ALIGN] += count);
            counts
        });
        self
    }

    /// What was read, as bytes of a request and how many there were of that size.
    pub fn reads(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sizes(Way::Read)
    }

    /// What was written, likewise.
    pub fn writes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sizes(Way::Write)
    }

    fn sizes(&self, way: Way) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.requests[way as usize].iter().enumerate();
        counts.filter(|(_, count)| **count > 0).map(|(blocks, count)| ((blocks * ALIGN) as u64, *count))
    }

    /// How many pieces were under way on average while any was.
    pub fn depth(&self) -> f64 {
        self.depth_time.as_secs_f64() / self.busy.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// What was sent after `before`, an earlier look at the same flow.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let requests = [0, 1].map(|way: usize| {
            let pairs = self.requests[way].iter().zip(&before.requests[way]);
            pairs.map(|(now, then)| now - then).collect()
        });
        Self {
            requests,
            pieces: self.pieces - before.pieces,
            sealed: self.sealed - before.sealed,
            busy: self.busy - before.busy,
            idle: self.idle - before.idle,
            depth_time: self.depth_time - before.depth_time,
            starts: self.starts - before.starts,
        }
    }

    /// Adds what another thread sent.
    pub fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.requests.iter_mut().zip(&other.requests) {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        }
        self.pieces += other.pieces;
        self.sealed += other.sealed;
        self.busy += other.busy;
        self.idle += other.idle;
        self.depth_time += other.depth_time;
        self.starts += other.starts;
    }
}

/// A flow that goes on.
pub(crate) struct Current {
    flow: Flow,
    under_way: u32,
    /// Until when time is accounted for.
    at: Instant,
}

/// A piece as it goes to the device.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) way: Way,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// Bytes of the header that goes with it; 0 without one.
    pub(crate) header: usize,
}

impl Current {
    pub(crate) fn start(now: Instant) -> Self {
        Self { flow: Flow::default(), under_way: 0, at: now }
    }

    /// A piece goes to the device.
    pub(crate) fn sent(&mut self, piece: Sent, now: Instant) {
        self.advance(now);
        self.flow.starts += u64::from(self.under_way == 0);
        self.under_way += 1;
        self.flow.pieces += 1;
        self.flow.sealed += u64::from(piece.header > 0);
        let payload = piece.len.div_ceil(ALIGN);
        let header = piece.header.div_ceil(ALIGN);
        let counts = &mut self.flow.requests[piece.way as usize];
        if piece.offset == 0 {
            counts[payload + header] += 1;
        } else {
            counts[payload] += 1;
            counts[header] += u64::from(header > 0);
        }
    }

    /// A piece came back from it.
    pub(crate) fn came_back(&mut self, finished: Instant) {
        self.advance(finished);
        self.under_way -= 1;
    }

    /// What was sent until `now`.
    pub(crate) fn seen(&mut self, now: Instant) -> Flow {
        self.advance(now);
        self.flow.clone()
    }

    /// Accounts for the time until `now`; threads of a device may tell of their ends in another order.
    fn advance(&mut self, now: Instant) {
        let span = now.saturating_duration_since(self.at);
        self.at += span;
        if self.under_way == 0 {
            self.flow.idle += span;
        } else {
            self.flow.busy += span;
            self.flow.depth_time += span * self.under_way;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn piece(way: Way, offset: u64, len: usize, header: usize) -> Sent {
        Sent { way, offset, len, header }
    }

    fn read(len: usize) -> Sent {
        piece(Way::Read, 0, len, 0)
    }

    /// A hand-made case: two overlapping pieces, a gap, one piece, a gap.
    /// Broken by: counting a gap at its end and at its start, or depth while nothing is under way.
    #[test]
    fn time_is_busy_or_idle_and_depth_is_what_was_under_way() {
        let mut current = Current::start(Instant::now());
        let begin = current.at;
        current.sent(read(PIECE), begin + MS);
        current.sent(read(PIECE), begin + 2 * MS);
        current.came_back(begin + 5 * MS);
        // Told late: it counts until the last moment that was accounted for.
        current.came_back(begin + 4 * MS);
        current.sent(read(PIECE), begin + 9 * MS);
        current.came_back(begin + 10 * MS);
        let flow = current.seen(begin + 12 * MS);
        assert_eq!((flow.busy, flow.idle), (5 * MS, 7 * MS));
        assert_eq!((flow.depth_time, flow.depth()), (8 * MS, 1.6));
        assert_eq!((flow.starts, flow.pieces), (2, 3));
    }

    /// Broken by: a size rounded down, a header forgotten, or counted with a piece that has none.
    #[test]
    fn sizes_are_those_of_requests() {
        let mut current = Current::start(Instant::now());
        let now = current.at;
        for sent in [
            read(PIECE),
            read(PIECE),
            read(1),
            piece(Way::Write, 0, PIECE, 0),
            piece(Way::Write, PIECE as u64, 5000, 4096),
            piece(Way::Write, 0, 100, 4096),
        ] {
            current.sent(sent, now);
        }
        let flow = current.seen(now);
        assert_eq!(flow.reads().collect::<Vec<_>>(), [(4096, 1), (PIECE as u64, 2)]);
        assert_eq!(flow.writes().collect::<Vec<_>>(), [(4096, 1), (8192, 2), (PIECE as u64, 1)]);
        assert_eq!((flow.pieces, flow.sealed), (6, 2));
    }

    proptest::proptest! {
        /// Broken by: a field that `since` or `add` forgets, or time that is lost between two looks.
        #[test]
        fn parts_add_up_to_the_whole(steps in proptest::collection::vec((0u8..3, 0u32..50), 1..100)) {
            let mut current = Current::start(Instant::now());
            let (begin, mut now) = (current.at, current.at);
            let mut sum = Flow::default();
            let mut last = Flow::default();
            for (what, wait) in steps {
                now += MS * wait;
                match what {
                    0 => current.sent(piece(Way::Write, u64::from(wait), wait as usize * 1000, 4096), now),
                    1 if current.under_way > 0 => current.came_back(now),
                    _ => {
                        let flow = current.seen(now);
                        sum.add(&flow.since(&last));
                        last = flow;
                    }
                }
            }
            sum.add(&current.seen(now).since(&last));
            proptest::prop_assert_eq!(&sum, &current.seen(now));
            proptest::prop_assert_eq!(sum.busy + sum.idle, now - begin);
            proptest::prop_assert!(sum.starts <= sum.pieces);
        }
    }
}
