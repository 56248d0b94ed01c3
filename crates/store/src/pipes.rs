//! A lane's ports and buffers: pieces of transfers go in, completions come out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavetank_cache::TierId;

use crate::backend::{Completion, Piece, Port};
use crate::buffer::{Buffer, Mover, Region};
use crate::clock::Clock;
use crate::flow::{Current, Flow, Sent};
use crate::layout::header_len;
use crate::sleep::Drowsy;
use crate::transfer::{Part, Source, Transfer};

/// How many pieces are made while all that may be with a device are there: completions come in bursts, and
/// what is ready then keeps the device busy.
fn ahead(depth: usize) -> usize {
    (depth / 2).clamp(2, 8)
}

/// How long one port is waited for while another has pieces too.
const SLICE: Duration = Duration::from_micros(100);

/// The ports of a lane, one per tier, and the buffers that go through them.
pub(crate) struct Pipes {
    ports: Vec<Box<dyn Port>>,
    /// What goes through each of them.
    flows: Vec<Current>,
    region: Arc<Region>,
    clock: Clock,
    depth: usize,
    in_flight: usize,
    ready: VecDeque<Made>,
    /// Pieces were queued since the last [`Self::flush`].
    unsent: bool,
    done: Vec<Completion>,
    /// How long this thread slept while devices had work, where that is counted.
    asleep: Option<Duration>,
}

/// A piece that waits for a device to be less busy.
struct Made {
    job: usize,
    part: Part,
    buffer: Buffer,
}

/// What became of an attempt to begin a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    Begun,
    /// No buffer is free, as many pieces as may be are with devices, or one is done and to be reaped.
    Full,
}

/// Whether a completed piece was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
}

/// Which piece of which job a completion is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) job: usize,
    pub(crate) part: u64,
    pub(crate) way: Way,
}

impl Tag {
    fn token(self) -> u64 {
        (self.job as u64) << 33 | self.part << 1 | u64::from(self.way == Way::Write)
    }

    pub(crate) fn of(token: u64) -> Self {
        let way = if token & 1 == 1 { Way::Write } else { Way::Read };
        Self { job: (token >> 33) as usize, part: token >> 1 & 0xffff_ffff, way }
    }
}

impl Pipes {
    pub(crate) fn new(ports: Vec<Box<dyn Port>>, region: Arc<Region>, depth: usize, clock: Clock) -> Self {
        Self {
            flows: ports.iter().map(|_| Current::start(clock.now())).collect(),
            ports,
            region,
            clock,
            depth,
            in_flight: 0,
            ready: VecDeque::new(),
            unsent: false,
            done: Vec::new(),
            asleep: None,
        }
    }

    /// How long this thread has slept since it was asked first.
    pub(crate) fn asleep(&mut self) -> Duration {
        *self.asleep.get_or_insert_default()
    }

    /// How many buffers a lane of `depth` needs.
    pub(crate) fn buffers(depth: usize) -> usize {
        depth + ahead(depth)
    }

    pub(crate) fn port(&mut self, tier: TierId) -> &mut dyn Port {
        &mut *self.ports[usize::from(tier)]
    }

    /// What went to each tier so far.
    pub(crate) fn flows(&mut self) -> Vec<Flow> {
        let now = self.clock.now();
        self.flows.iter_mut().map(|flow| flow.seen(now)).collect()
    }

    /// Whether pieces are with devices.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight > 0
    }

    /// Whether as many pieces as may be are with devices.
    pub(crate) fn is_full(&self) -> bool {
        self.in_flight >= self.depth
    }

    /// Whether pieces are done that were not reaped.
    fn has_at_hand(&self) -> bool {
        self.ports.iter().any(|port| port.is_inline() && port.in_flight() > 0)
    }

    /// Who moves the bytes of a transfer into a buffer and out of it.
    fn mover_of(&self, transfer: &Transfer) -> Mover {
        let source = match &transfer.source {
            Source::Tier { tier, .. } => Some(*tier),
            Source::Payload(_) => None,
        };
        let target = transfer.target.as_ref().map(|target| target.tier);
        match [source, target].iter().flatten().all(|tier| self.ports[usize::from(*tier)].is_inline()) {
            true => Mover::Thread,
            false => Mover::Device,
        }
    }

    /// Begins with the next piece of a transfer that has more.
    pub(crate) fn feed(&mut self, job: usize, transfer: &mut Transfer) -> Fed {
        let made_here = matches!(transfer.source, Source::Payload(_));
        let is_full = (self.is_full() && !made_here) || self.ready.len() >= ahead(self.depth);
        if is_full || self.has_at_hand() {
            return Fed::Full;
        }
        let Some(mut buffer) = self.region.take(self.mover_of(transfer)) else { return Fed::Full };
        let part = transfer.next_part().expect("the transfer has more");
        if let Source::Tier { tier, held, .. } = &transfer.source {
            let piece = piece(job, part, Way::Read);
            let now = self.clock.now();
            transfer.watch.sent(now);
            let sent = Sent { way: Way::Read, offset: part.offset, len: part.len, header: 0 };
            self.flows[usize::from(*tier)].sent(sent, now);
            self.in_flight += 1;
            self.ports[usize::from(*tier)].read(held, piece, buffer);
            self.unsent = true;
            return Fed::Begun;
        }
        self.flush();
        let start = self.clock.now();
        transfer.fill(part, &mut buffer);
        transfer.arrived(part, transfer.contents(part, &buffer)).expect("only what is read can be wrong");
        transfer.watch.worked(self.clock.since(start));
        if self.is_full() {
            self.ready.push_back(Made { job, part, buffer });
            return Fed::Begun;
        }
        self.write(job, transfer, part, buffer);
        Fed::Begun
    }

    /// Sends a piece to the transfer's target.
    pub(crate) fn write(&mut self, job: usize, transfer: &mut Transfer, part: Part, buffer: Buffer) {
        let seal = transfer.next_seal();
        let now = self.clock.now();
        transfer.watch.sent(now);
        let target = transfer.target.as_ref().expect("what is written has a target");
        let header = if seal.is_some() { header_len(&transfer.entry.key) } else { 0 };
        let sent = Sent { way: Way::Write, offset: part.offset, len: part.len, header };
        let tier = usize::from(target.tier);
        self.flows[tier].sent(sent, now);
        let port = &mut self.ports[tier];
        port.write(&target.held, piece(job, part, Way::Write), buffer, seal);
        self.in_flight += 1;
        self.unsent = true;
    }

    /// Hands over what was queued, so that devices work while this thread does something else. What they do
    /// not take now they get with the next completions.
    pub(crate) fn flush(&mut self) {
        if std::mem::take(&mut self.unsent) {
            for port in &mut self.ports {
                let _ = port.submit();
            }
        }
    }

    /// The next piece that was made ahead and may go to its device now.
    pub(crate) fn next_ready(&mut self) -> Option<(usize, Part, Buffer)> {
        if self.is_full() {
            return None;
        }
        self.ready.pop_front().map(|Made { job, part, buffer }| (job, part, buffer))
    }

    /// Takes what is done; waits for something until `deadline`, if given.
    pub(crate) fn reap(&mut self, deadline: Option<Instant>) -> Vec<Completion> {
        let deadline = deadline.filter(|_| !self.has_at_hand());
        let drowsy = self.asleep.and(deadline).map(|_| Drowsy::now());
        let done = self.take_done(deadline);
        if let (Some(asleep), Some(drowsy)) = (&mut self.asleep, drowsy) {
            *asleep += drowsy.slept();
        }
        done
    }

    /// As [`Self::reap`].
    ///
    /// # Panics
    /// When the kernel refuses a queue that it has accepted.
    fn take_done(&mut self, deadline: Option<Instant>) -> Vec<Completion> {
        let mut done = std::mem::take(&mut self.done);
        self.unsent = false;
        loop {
            let busy = self.ports.iter().filter(|port| port.in_flight() > 0).count();
            let pairs = self.ports.iter_mut().zip(&mut self.flows);
            for (port, flow) in pairs.filter(|(port, _)| port.in_flight() > 0) {
                let before = done.len();
                let wait = match (deadline, busy) {
                    (Some(deadline), 1) => Some(deadline),
                    (Some(deadline), _) if done.is_empty() => Some(deadline.min(self.clock.now() + SLICE)),
                    _ => None,
                };
                match port.reap(wait, &mut done) {
                    Ok(()) => {}
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => panic!("a queue does not answer any more: {e}"),
                }
                done[before..].iter().for_each(|completion| flow.came_back(completion.finished));
            }
            let over = deadline.is_none_or(|deadline| self.clock.now() >= deadline);
            if !done.is_empty() || busy == 0 || over {
                self.in_flight -= done.len();
                return done;
            }
        }
    }

    /// Gives back the list that [`Self::reap`] returned, to be filled again.
    pub(crate) fn recycle(&mut self, mut list: Vec<Completion>) {
        list.clear();
        self.done = list;
    }
}

fn piece(job: usize, part: Part, way: Way) -> Piece {
    let token = Tag { job, part: part.index, way }.token();
    Piece { token, offset: part.offset, len: part.len }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_carry_job_piece_and_way() {
        for way in [Way::Read, Way::Write] {
            let tag = Tag { job: 0x7fff_ffff, part: 0xffff_fff0, way };
            assert_eq!(Tag::of(tag.token()), tag);
        }
    }
}
