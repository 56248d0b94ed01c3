//! `throttle`: a slower device than there is. Pieces share one modelled link; completions wait for it.
//!
//! A piece handed over at `t` first takes its turn among the operations (`iops`), then the link for its bytes
//! (`gbps`), then `latency_us` on its own. It completes when both the link and the real device are done, so the
//! device's own time counts inside the modelled one. The link is shared by all ports of the backend.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wavetank_model::{Error, Result};

use super::Entry;
use crate::around::{Late, Slots};
use crate::backend::{Backend, Completion, Found, Held, NewEntry, Piece, Port, Recovery, Seal};
use crate::buffer::{Buffer, Region};
use crate::options::Options;

pub(super) const ENTRY: Entry = Entry {
    name: "throttle",
    about: "holds completions back to a modelled bandwidth, latency and operation rate",
    options: &[
        ("gbps", "gigabytes a second that reads and writes share"),
        ("read_gbps", "gigabytes a second of reads alone"),
        ("write_gbps", "gigabytes a second of writes alone"),
        ("latency_us", "microseconds on top of a piece's time on the link; 0 unless given"),
        ("iops", "reads and writes a second"),
    ],
    wrap: |inner, options| {
        options.only(ENTRY.name, ENTRY.options)?;
        Ok(wrap(inner, Limits::from_options(options)?))
    },
};

/// How fast the modelled device is; what is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// How many gigabytes a second.
    pub bandwidth: Bandwidth,
    /// How long a piece takes besides.
    pub latency: Duration,
    /// How many pieces a second.
    pub operations_per_second: Option<f64>,
}

/// Gigabytes a second, together or apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bandwidth {
    /// Reads and writes share one link.
    Shared(Option<f64>),
    /// Each has its own.
    Apart {
        /// Of reads.
        read: Option<f64>,
        /// Of writes.
        write: Option<f64>,
    },
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self::Shared(None)
    }
}

impl Limits {
    fn from_options(options: &Options) -> Result<Self> {
        let [shared, read, write] = ["gbps", "read_gbps", "write_gbps"].map(|name| options.above_zero(name));
        let (shared, read, write) = (shared?, read?, write?);
        let bandwidth = match (shared, read.or(write)) {
            (Some(_), Some(_)) => {
                return Err(Error::usage("option gbps is both directions, read_gbps and write_gbps are one")
                    .hint("give gbps alone, or the other two"));
            }
            (None, Some(_)) => Bandwidth::Apart { read, write },
            (shared, None) => Bandwidth::Shared(shared),
        };
        let latency_us: f64 = options.option("latency_us", 0.0)?;
        let latency = Duration::try_from_secs_f64(latency_us / 1e6)
            .map_err(|_| Error::usage("option latency_us: must not be negative"))?;
        Ok(Self { bandwidth, latency, operations_per_second: options.above_zero("iops")? })
    }
}

/// Puts the modelled device around `inner`.
pub fn wrap(inner: Arc<dyn Backend>, limits: Limits) -> Arc<dyn Backend> {
    let now = Instant::now();
    let free = Mutex::new(Free { bytes: [now; 2], operations: now });
    Arc::new(Throttled { inner, link: Arc::new(Link { limits, free }) })
}

/// The modelled device, shared by all ports.
struct Link {
    limits: Limits,
    free: Mutex<Free>,
}

/// When the link is next free: for bytes by direction (a shared one is the first), for operations.
struct Free {
    bytes: [Instant; 2],
    operations: Instant,
}

impl Link {
    /// Takes the link for a piece that comes at `now`; gives when the piece is through.
    fn reserve(&self, now: Instant, way: &Way, bytes: usize) -> Instant {
        let (index, rate) = match (self.limits.bandwidth, way) {
            (Bandwidth::Shared(rate), _) => (0, rate),
            (Bandwidth::Apart { read, .. }, Way::Read) => (0, read),
            (Bandwidth::Apart { write, .. }, Way::Write(_)) => (1, write),
        };
        // A gigabyte a second is a byte a nanosecond.
        let carry = nanos(rate.map(|rate| bytes as f64 / rate));
        let turn = nanos(self.limits.operations_per_second.map(|rate| 1e9 / rate));
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.operations = free.operations.max(now) + turn;
        free.bytes[index] = free.bytes[index].max(free.operations) + carry;
        free.bytes[index] + self.limits.latency
    }
}

fn nanos(count: Option<f64>) -> Duration {
    Duration::from_nanos(count.unwrap_or(0.0) as u64)
}

struct Throttled {
    inner: Arc<dyn Backend>,
    link: Arc<Link>,
}

impl Backend for Throttled {
    fn port(self: Arc<Self>, region: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        Ok(Box::new(ThrottledPort {
            inner: Arc::clone(&self.inner).port(region, depth)?,
            link: Arc::clone(&self.link),
            depth: depth.max(1),
            queued: VecDeque::new(),
            on_way: Slots::default(),
            handed_over: 0,
            late: Late::default(),
        }))
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        Arc::clone(&self.inner).recover(found)
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}

struct ThrottledPort {
    inner: Box<dyn Port>,
    link: Arc<Link>,
    /// How many pieces the modelled device works on at a time.
    depth: usize,
    queued: VecDeque<Queued>,
    /// With the backend inside: the caller's token, and when the link is through.
    on_way: Slots<(u64, Instant)>,
    /// With the backend inside or held back.
    handed_over: usize,
    late: Late,
}

struct Queued {
    held: Arc<dyn Held>,
    piece: Piece,
    buffer: Buffer,
    way: Way,
}

enum Way {
    Read,
    Write(Option<Seal>),
}

impl ThrottledPort {
    /// Hands over as many pieces as the modelled device takes at a time.
    fn hand_over(&mut self) -> io::Result<()> {
        while self.handed_over < self.depth {
            let Some(Queued { held, piece, buffer, way }) = self.queued.pop_front() else { break };
            let due = self.link.reserve(Instant::now(), &way, piece.len);
            let piece = Piece { token: self.on_way.put((piece.token, due)), ..piece };
            match way {
                Way::Read => self.inner.read(&held, piece, buffer),
                Way::Write(seal) => self.inner.write(&held, piece, buffer, seal),
            }
            self.handed_over += 1;
        }
        self.inner.submit()
    }

    fn hold_back(&mut self, arrived: Vec<Completion>) {
        for mut completion in arrived {
            let (token, due) = self.on_way.take(completion.token);
            completion.token = token;
            self.late.add(completion, due);
        }
    }

    /// Releases what is due; says whether there was any, or there is nothing to wait for.
    fn release(&mut self, done: &mut Vec<Completion>) -> bool {
        let before = done.len();
        self.late.release(done);
        self.handed_over -= done.len() - before;
        done.len() > before || self.in_flight() == 0
    }
}

impl Port for ThrottledPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        self.inner.create(entry)
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, seal: Option<Seal>) {
        self.queued.push_back(Queued { held: Arc::clone(held), piece, buffer, way: Way::Write(seal) });
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.inner.commit(held)
    }

    fn open(&mut self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.inner.open(held)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        self.queued.push_back(Queued { held: Arc::clone(held), piece, buffer, way: Way::Read });
    }

    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        self.inner.remove(held)
    }

    fn submit(&mut self) -> io::Result<()> {
        self.hand_over()
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        loop {
            self.hand_over()?;
            let mut arrived = Vec::new();
            let result = self.inner.reap(None, &mut arrived);
            self.hold_back(arrived);
            result?;
            if self.release(done) {
                return self.hand_over();
            }
            let Some(deadline) = deadline.filter(|deadline| Instant::now() < *deadline) else {
                return Ok(());
            };
            let mut arrived = Vec::new();
            let result = self.late.wait(&mut *self.inner, deadline, &mut arrived);
            self.hold_back(arrived);
            result?;
        }
    }

    fn in_flight(&self) -> usize {
        self.queued.len() + self.handed_over
    }
}
