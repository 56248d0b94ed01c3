//! One thread's io_uring into a folder of files, with buffers registered where the memory-lock limit allows.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Instant;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use crate::backend::{Completion, Held, NewEntry, Piece, Port, Seal};
use crate::buffer::{Buffer, Region};
use crate::folder::{Folder, opened};
use crate::frame::{self, Span};
use crate::pipes::{Pipes, Way};

/// What the kernel is asked: at most two requests per piece, its payload and the entry's header.
struct Pending {
    token: u64,
    buffer: Buffer,
    /// Keeps the file open.
    _held: Arc<dyn Held>,
    requests: u8,
    error: Option<io::Error>,
    submitted: Instant,
}

/// A piece that the kernel has not been asked for: `depth` others are with it.
struct Waiting {
    token: u64,
    buffer: Buffer,
    held: Arc<dyn Held>,
    requests: [Option<Request>; 2],
}

/// The queue.
pub(crate) struct RingPort {
    ring: IoUring,
    folder: Arc<Folder>,
    buffers: Buffers,
    depth: usize,
    waiting: VecDeque<Waiting>,
    pending: Vec<Option<Pending>>,
    vacant: Vec<usize>,
    /// Keeps the buffers' memory until the ring is gone.
    _region: Arc<Region>,
}

/// Whether requests name registered buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// Yes.
    Registered,
    /// The memory-lock limit forbids it, or the plan.
    Plain,
}

impl RingPort {
    /// A ring for `depth` pieces.
    pub(crate) fn new(
        folder: Arc<Folder>,
        region: &Arc<Region>,
        depth: usize,
        wanted: Buffers,
    ) -> io::Result<(Self, Buffers)> {
        let depth = depth.max(1);
        let ring = build_ring((2 * depth).next_power_of_two() as u32)?;
        let buffers = if wanted == Buffers::Registered { register(&ring, region) } else { Buffers::Plain };
        let port = Self {
            ring,
            folder,
            buffers,
            depth,
            waiting: VecDeque::new(),
            pending: Vec::new(),
            vacant: Vec::new(),
            _region: Arc::clone(region),
        };
        Ok((port, buffers))
    }

    fn push(&mut self, waiting: Waiting, submitted: Instant) {
        let Waiting { token, buffer, held, requests } = waiting;
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        let fd = Fd(opened(&held).fd.as_raw_fd());
        let mut count = 0;
        for request in requests.iter().flatten() {
            let entry = request.entry(fd, self.buffers).user_data(user_data(index, request.len));
            // SAFETY: the buffer and the file live in `pending` until the kernel is done with the request.
            unsafe { self.ring.submission().push(&entry) }
                .expect("two requests for each of `depth` pieces fit");
            count += 1;
        }
        let (requests, _held) = (count, held);
        self.pending[index] = Some(Pending { token, buffer, _held, requests, error: None, submitted });
    }

    /// Fills the submission queue with what may be with the kernel; `true` when there was something.
    fn push_waiting(&mut self) -> bool {
        let room = self.depth - self.with_kernel();
        let count = room.min(self.waiting.len());
        let now = Instant::now();
        for _ in 0..count {
            if let Some(waiting) = self.waiting.pop_front() {
                self.push(waiting, now);
            }
        }
        count > 0
    }

    fn with_kernel(&self) -> usize {
        self.pending.len() - self.vacant.len()
    }

    fn drain(&mut self, done: &mut Vec<Completion>) {
        let mut finished = None;
        for event in self.ring.completion() {
            let (index, wanted) = from_user_data(event.user_data());
            let pending = self.pending[index].as_mut().expect("the kernel completes what it was given");
            pending.requests -= 1;
            if let Err(e) = outcome(event.result(), wanted) {
                pending.error.get_or_insert(e);
            }
            if pending.requests == 0 {
                let Pending { token, buffer, error, submitted, .. } =
                    self.pending[index].take().expect("just seen");
                self.vacant.push(index);
                let finished = *finished.get_or_insert_with(Instant::now);
                let result = error.map_or(Ok(()), Err);
                done.push(Completion { token, buffer, result, submitted, finished });
            }
        }
    }

    fn wait(&mut self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::new().sec(left.as_secs()).nsec(left.subsec_nanos());
        asked(self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout)))
    }

    /// Hands over what is in the submission queue, and lets the kernel finish what it finishes only when it
    /// is asked to. A wait of no time would do so too, but it is a sleep until the timer's slack is over.
    fn look(&mut self) -> io::Result<()> {
        let queue = self.ring.submission();
        if queue.is_empty() && !queue.taskrun() {
            return Ok(());
        }
        drop(queue);
        asked(self.ring.submit())
    }

    /// Waits until a piece is done, or for as long as there is time; what wakes us may be the first of a
    /// piece's two requests, or a signal.
    fn wait_for_one(&mut self, until: Instant, done: &mut Vec<Completion>) -> io::Result<()> {
        let before = done.len();
        while done.len() == before && self.with_kernel() > 0 && Instant::now() < until {
            self.wait(until)?;
            self.drain(done);
        }
        Ok(())
    }
}

/// What the kernel did as it was asked; that it was interrupted, or has nothing yet, is no error.
fn asked(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Err(e) if !matches!(e.raw_os_error(), Some(ETIME | EINTR | EAGAIN | EBUSY)) => Err(e),
        _ => Ok(()),
    }
}

const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;
const ETIME: i32 = 62;

fn build_ring(entries: u32) -> io::Result<IoUring> {
    let mut best = IoUring::builder();
    best.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
    // Kernels before 6.1 do not know these.
    best.build(entries).or_else(|_| IoUring::new(entries))
}

/// Registers the memory of a region with a ring whose user keeps it until the ring is drained.
fn register(ring: &IoUring, region: &Region) -> Buffers {
    let (start, len) = region.span();
    let memory = [libc::iovec { iov_base: start.cast(), iov_len: len }];
    // SAFETY: the caller keeps the region as long as the kernel may use it.
    match unsafe { ring.submitter().register_buffers(&memory) } {
        Ok(()) => Buffers::Registered,
        Err(_) => Buffers::Plain,
    }
}

/// A ring that was made and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriedRing {
    /// How long the buffers of a lane are, all together.
    pub buffer_bytes: u64,
    /// Whether the kernel took them.
    pub buffers: Buffers,
}

/// Makes a ring and buffers as a lane of `depth` pieces has them, and has the kernel answer a request for
/// nothing; an error is why it does not.
pub fn try_ring(depth: usize) -> io::Result<TriedRing> {
    let region = Region::new(Pipes::buffers(depth))?;
    let mut ring = build_ring((2 * depth).next_power_of_two() as u32)?;
    let buffers = register(&ring, &region);
    // SAFETY: the request names no memory.
    unsafe { ring.submission().push(&opcode::Nop::new().build()) }.expect("an empty ring has room");
    let patience = Timespec::new().sec(1);
    ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&patience))?;
    let answer = ring.completion().next().ok_or(io::ErrorKind::TimedOut)?;
    outcome(answer.result(), 0)?;
    Ok(TriedRing { buffer_bytes: region.span().1 as u64, buffers })
}

/// One read or write of the kernel.
struct Request {
    way: Way,
    address: *mut u8,
    len: u32,
    offset: u64,
}

impl Request {
    fn new(way: Way, buffer: &mut Buffer, span: Span) -> Self {
        let bytes = span.bytes(buffer);
        Self { way, address: bytes.as_mut_ptr(), len: bytes.len() as u32, offset: span.at }
    }

    fn entry(&self, fd: Fd, buffers: Buffers) -> squeue::Entry {
        let Self { way, address, len, offset } = *self;
        match (way, buffers) {
            (Way::Write, Buffers::Registered) => {
                opcode::WriteFixed::new(fd, address, len, 0).offset(offset).build()
            }
            (Way::Write, Buffers::Plain) => opcode::Write::new(fd, address, len).offset(offset).build(),
            (Way::Read, Buffers::Registered) => {
                opcode::ReadFixed::new(fd, address, len, 0).offset(offset).build()
            }
            (Way::Read, Buffers::Plain) => opcode::Read::new(fd, address, len).offset(offset).build(),
        }
    }
}

fn user_data(index: usize, len: u32) -> u64 {
    (index as u64) << 32 | u64::from(len)
}

fn from_user_data(data: u64) -> (usize, u32) {
    ((data >> 32) as usize, data as u32)
}

fn outcome(result: i32, wanted: u32) -> io::Result<()> {
    match u32::try_from(result) {
        Ok(moved) if moved == wanted => Ok(()),
        Ok(moved) => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{moved} of {wanted} bytes were moved")))
        }
        Err(_) => Err(io::Error::from_raw_os_error(-result)),
    }
}

impl Port for RingPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        Ok(self.folder.create(entry)?)
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, mut buffer: Buffer, seal: Option<Seal>) {
        let (payload, header) = frame::to_write(&opened(held).filed, piece, &mut buffer, seal);
        let requests = [Some(payload), header].map(|span| Some(Request::new(Way::Write, &mut buffer, span?)));
        self.waiting.push_back(Waiting { token: piece.token, buffer, held: Arc::clone(held), requests });
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.folder.commit(&held)
    }

    fn open(&mut self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(self.folder.open_entry(held)?)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, mut buffer: Buffer) {
        let span = frame::to_read(&opened(held).filed, piece);
        let requests = [Some(Request::new(Way::Read, &mut buffer, span)), None];
        self.waiting.push_back(Waiting { token: piece.token, buffer, held: Arc::clone(held), requests });
    }

    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        self.folder.remove(&held)
    }

    fn submit(&mut self) -> io::Result<()> {
        if self.push_waiting() {
            asked(self.ring.submit())?;
        }
        Ok(())
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        let before = done.len();
        // Waiting hands them over too: one call of the kernel instead of two.
        self.push_waiting();
        self.drain(done);
        if done.len() == before {
            match deadline.filter(|&until| self.with_kernel() > 0 && Instant::now() < until) {
                Some(until) => self.wait_for_one(until, done)?,
                None => self.look()?,
            }
            self.drain(done);
        }
        self.push_waiting();
        // What the kernel has no room for now it is asked for again with the next.
        if !self.ring.submission().is_empty() {
            asked(self.ring.submit())?;
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.waiting.len() + self.with_kernel()
    }
}

impl Drop for RingPort {
    /// The kernel may still write into buffers: they are given back only after it is done with them.
    fn drop(&mut self) {
        let mut done = Vec::new();
        while self.with_kernel() > 0 {
            let _ = self.ring.submit_and_wait(1);
            self.drain(&mut done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: an answer that is not waited for, or more answers than requests.
    #[test]
    fn a_ring_that_can_be_made_answers() {
        let tried = try_ring(4);
        assert_eq!(tried.is_ok(), build_ring(8).is_ok(), "{tried:?}");
        assert!(tried.is_ok_and(|tried| tried.buffer_bytes >= 6 << 20) || build_ring(8).is_err());
    }
}
