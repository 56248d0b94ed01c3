//! What all threads of the front door share, and what each has for itself.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::inbox::Inbox;
use super::leases::Leases;
use super::mailbox::{Mailbox, Ticket};
use super::outbox::Memory;
use super::settings::Settings;
use crate::cache::Cache;
use crate::counters::Counters;

/// A quantity that grows and shrinks.
#[derive(Debug, Default)]
pub(super) struct Gauge(AtomicU64);

impl Gauge {
    /// Adds `more` unless that is over `limit`.
    pub(super) fn try_add(&self, more: u64, limit: u64) -> bool {
        let before = self.0.fetch_add(more, Ordering::Relaxed);
        let fits = before.saturating_add(more) <= limit;
        if !fits {
            self.sub(more);
        }
        fits
    }

    /// Adds `more`.
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// A part of it that was `before` is `now`.
    pub(super) fn change(&self, before: u64, now: u64) {
        if now >= before { self.add(now - before) } else { self.sub(before - now) }
    }

    /// Takes `less` away.
    pub(super) fn sub(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    /// How much it is.
    pub(super) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What all threads share.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) cache: Arc<Cache>,
    /// Port, as clients see it.
    pub(super) port: u16,
    pub(super) begun: Instant,
    pub(super) connected: AtomicUsize,
    /// Bytes of connections.
    pub(super) memory: Gauge,
    /// Bytes of values on their way out, which are in memory anyway unless they left it.
    pub(super) sending: Gauge,
    /// Bytes that are leased.
    pub(super) leased: Gauge,
    /// Connections there were.
    pub(super) numbers: AtomicU64,
    /// A number of this process: when it began.
    pub(super) run: u64,
}

impl Shared {
    /// Nobody is connected.
    pub(super) fn new(settings: Settings, cache: Arc<Cache>, port: u16) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            settings,
            cache,
            port,
            begun: Instant::now(),
            connected: AtomicUsize::new(0),
            memory: Gauge::default(),
            sending: Gauge::default(),
            leased: Gauge::default(),
            numbers: AtomicU64::new(0),
            run: since.as_nanos() as u64,
        }
    }
}

macro_rules! tally {
    ($($name:ident),+ $(,)?) => {
        /// What a thread counted since it last said so: shared counts are touched once a turn.
        #[derive(Debug, Default)]
        pub(super) struct Tally {
            $(pub(super) $name: u64,)+
        }

        impl Tally {
            /// Says it.
            pub(super) fn settle(&mut self, counters: &Counters) {
                $(if self.$name > 0 {
                    counters.$name.add(std::mem::take(&mut self.$name));
                })+
            }
        }
    };
}

tally! {
    lookups, l1_hits, l2_hits, misses, l2_failures, stores, refused_stores, removals, bytes_out, bytes_in,
    commands, command_errors, leases, leases_refused, leases_expired, protocol_errors,
    connections_opened, connections_closed, connections_refused, connections_timed_out,
}

/// What a thread has for itself, whichever connection it serves.
pub(super) struct Desk {
    pub(super) shared: Arc<Shared>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) tally: Tally,
    pub(super) leases: Leases,
    /// When this turn began.
    pub(super) now: Instant,
    /// Commands that wait for what is behind memory, and how long; in order, for all have the same patience.
    pub(super) waits: VecDeque<(Instant, Ticket)>,
    /// Those that ask again then; the fewer there are, the sooner.
    pub(super) retries: Retries,
    wait_numbers: u64,
    /// Lent to the connection that is served.
    pub(super) inbox: Inbox,
    pub(super) outboxes: Vec<Memory>,
    /// Where bytes go that nobody wants.
    pub(super) sink: Vec<u8>,
}

/// When what was refused is asked for again: about as long as a device takes for something, and longer the
/// more of them there are, so that asking never takes much of a thread.
const RETRY: Duration = Duration::from_millis(1);
const RETRY_EACH: Duration = Duration::from_micros(50);
const RETRY_MOST: Duration = Duration::from_millis(50);
/// Bytes thrown away at a time.
const SINK_BYTES: usize = 64 << 10;

impl Desk {
    /// An empty one.
    pub(super) fn new(shared: Arc<Shared>, mailbox: Arc<Mailbox>) -> Self {
        Self {
            leases: Leases::new(Arc::clone(&shared)),
            shared,
            mailbox,
            tally: Tally::default(),
            now: Instant::now(),
            waits: VecDeque::new(),
            retries: Retries::default(),
            wait_numbers: 0,
            inbox: Inbox::equipped(),
            outboxes: Vec::new(),
            sink: vec![0; SINK_BYTES],
        }
    }

    /// A wait begins: its number.
    pub(super) fn begin_wait(&mut self, slot: usize, connection: u64) -> Ticket {
        self.wait_numbers += 1;
        let ticket = Ticket { slot, connection, serial: self.wait_numbers };
        self.waits.push_back((self.now + self.shared.cache.patience, ticket));
        ticket
    }

    /// A command that waits asks again in a while.
    pub(super) fn begin_retry(&mut self, ticket: Ticket) {
        self.retries.add(ticket, self.now);
    }
}

/// Commands that ask again, each at a time of its own.
#[derive(Debug, Default)]
pub(super) struct Retries(BinaryHeap<Reverse<(Instant, Ticket)>>);

impl Retries {
    fn add(&mut self, ticket: Ticket, now: Instant) {
        let others = RETRY_EACH * u32::try_from(self.0.len()).unwrap_or(u32::MAX).min(1000);
        self.0.push(Reverse((now + (RETRY + others).min(RETRY_MOST), ticket)));
    }

    /// The next whose time has come.
    pub(super) fn due(&mut self, now: Instant) -> Option<Ticket> {
        self.next().filter(|when| *when <= now)?;
        self.0.pop().map(|Reverse((_, ticket))| ticket)
    }

    /// When the next one's time comes.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((when, _))| *when)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: one that waits behind another that came before it and has longer to wait.
    #[test]
    fn who_is_due_first_asks_first() {
        let ticket = |serial: u64| Ticket { slot: 0, connection: 0, serial };
        let (mut retries, begun) = (Retries::default(), Instant::now());
        let at = |ms: u64| begun + Duration::from_millis(ms);
        (0..3000).for_each(|serial| retries.add(ticket(serial), begun));
        while retries.due(at(49)).is_some() {}
        retries.add(ticket(3000), at(49));
        while retries.due(at(50)).is_some() {}
        retries.add(ticket(3001), at(50));
        assert_eq!(retries.due(at(52)), Some(ticket(3001)), "it is one of two, the other of thousands");
        assert_eq!((retries.due(at(52)), retries.next()), (None, Some(at(99))));
    }
}
