//! `throttle`: a slower device than there is. Pieces share one modelled link; completions wait for it.
//!
//! A piece handed over at `t` first takes its turn among the operations (`iops`), then the link for its
//! bytes (`gbps`), then `latency_us` on its own. It completes when both the link and the real device are
//! done, so the device's own time counts inside the modelled one. The link is shared by all ports of the
//! backend.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wavetank_model::{Error, Result};

use super::Entry;
use crate::around::Slots;
use crate::backend::{Backend, Completion, Found, Held, NewEntry, Piece, Port, Recovery, Seal};
use crate::buffer::{Buffer, Region};
use crate::gate::{Due, Gate, Queued, Rule, Way};
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
        let latency = options.microseconds("latency_us", 0.0)?;
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
        let inner = Arc::clone(&self.inner).port(region, depth)?;
        let rule = Paced { link: Arc::clone(&self.link), on_way: Slots::default() };
        Ok(Box::new(ThrottledPort(Gate::new(inner, rule, depth))))
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        Arc::clone(&self.inner).recover(found)
    }

    fn trim(&self) -> io::Result<()> {
        self.inner.trim()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}

/// Hands pieces over at once, and says when the link is through with them.
struct Paced {
    link: Arc<Link>,
    /// The caller's token, and when the link is through.
    on_way: Slots<(u64, Instant)>,
}

impl Rule for Paced {
    fn hand_over(&mut self, inner: &mut dyn Port, queued: Queued) -> Option<Due> {
        let Queued { held, piece, buffer, way } = queued;
        let due = self.link.reserve(Instant::now(), &way, piece.len);
        let piece = Piece { token: self.on_way.put((piece.token, due)), ..piece };
        match way {
            Way::Read => inner.read(&held, piece, buffer),
            Way::Write(seal) => inner.write(&held, piece, buffer, seal),
        }
        None
    }

    fn take_back(&mut self, mut completion: Completion) -> Due {
        let (token, due) = self.on_way.take(completion.token);
        completion.token = token;
        (completion, due)
    }
}

struct ThrottledPort(Gate<Paced>);

impl Port for ThrottledPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        self.0.inner.create(entry)
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, seal: Option<Seal>) {
        self.0.queue(held, piece, buffer, Way::Write(seal));
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.0.inner.commit(held)
    }

    fn open(&mut self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.0.inner.open(held)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        self.0.queue(held, piece, buffer, Way::Read);
    }

    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        self.0.inner.remove(held)
    }

    fn submit(&mut self) -> io::Result<()> {
        self.0.submit()
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        self.0.reap(deadline, done)
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }
}
