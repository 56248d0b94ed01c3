//! Keys that clients saw stay in memory for a while: a client that asks whether a key is there and then reads
//! it must not find it gone (spec/storage-trace.md 7.1).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use wavetank_calls::{Held, Hold, Lookup};
use wavetank_model::FetchPolicy;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::mailbox::{Letter, Mailbox};
use super::shared::{Shared, Tally};

/// One key that one client saw.
struct Lease {
    /// A key may be leased again: which time this is.
    number: u64,
    until: Instant,
    bytes: u64,
    /// Absent until it is in memory.
    held: Option<Held>,
}

/// The leases of a thread's clients.
pub(super) struct Leases {
    shared: Arc<Shared>,
    live: HashMap<u128, Lease>,
    due: BinaryHeap<Reverse<(Instant, u128, u64)>>,
    numbers: u64,
}

/// A client's key as one number.
fn mark(connection: u64, name: &[u8]) -> u128 {
    xxh3_128_with_seed(name, connection)
}

impl Leases {
    /// None.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, live: HashMap::new(), due: BinaryHeap::new(), numbers: 0 }
    }

    /// A client saw a key of `bytes`: it stays as long as may be, and comes if it is behind memory.
    pub(super) fn begin(
        &mut self,
        (connection, name): (u64, &[u8]),
        bytes: u64,
        now: Instant,
        (mailbox, tally): (&Arc<Mailbox>, &mut Tally),
    ) {
        let until = now + self.shared.settings.lease;
        let mark = mark(connection, name);
        if self.renew(mark, name, until) {
            return;
        }
        let limit = self.shared.settings.leased_bytes().unwrap_or(u64::MAX);
        if until == now || !self.shared.leased.try_add(bytes, limit) {
            tally.leases_refused += 1;
            return;
        }
        tally.leases += 1;
        self.numbers += 1;
        let number = self.numbers;
        let held = match self.shared.cache.storage.hold(name) {
            Hold::Here(held) => Some(held),
            Hold::Behind | Hold::Absent => {
                let lookup = Lookup { rows: &[vec![name]], policy: FetchPolicy::Full, request: "" };
                let mailbox = Arc::clone(mailbox);
                let then = move |held| mailbox.post(Letter::Held(mark, number, held));
                self.shared.cache.storage.look(&lookup, Box::new(then));
                None
            }
        };
        self.live.insert(mark, Lease { number, until, bytes, held });
        self.due.push(Reverse((until, mark, number)));
    }

    /// Whether a lease goes on. What it holds may have been written again since: then it holds that.
    fn renew(&mut self, mark: u128, name: &[u8], until: Instant) -> bool {
        let Some(lease) = self.live.get_mut(&mark) else { return false };
        lease.until = until;
        if lease.held.is_some() {
            lease.held = match self.shared.cache.storage.hold(name) {
                Hold::Here(held) => Some(held),
                Hold::Behind | Hold::Absent => {
                    self.remove(mark);
                    return false;
                }
            };
        }
        true
    }

    /// What was looked up is in memory.
    pub(super) fn hold(&mut self, mark: u128, number: u64, held: Held) {
        if let Some(lease) = self.live.get_mut(&mark).filter(|lease| lease.number == number) {
            lease.held = Some(held);
        }
    }

    /// The client has read it.
    pub(super) fn end(&mut self, connection: u64, name: &[u8]) {
        if !self.live.is_empty() {
            self.remove(mark(connection, name));
        }
    }

    fn remove(&mut self, mark: u128) {
        if let Some(lease) = self.live.remove(&mark) {
            self.shared.leased.sub(lease.bytes);
        }
    }

    /// Ends those that are too old.
    pub(super) fn expire(&mut self, now: Instant, tally: &mut Tally) {
        while let Some(Reverse((when, mark, number))) = self.due.peek().copied() {
            if when > now {
                return;
            }
            self.due.pop();
            let Some(lease) = self.live.get(&mark).filter(|lease| lease.number == number) else { continue };
            if lease.until > now {
                self.due.push(Reverse((lease.until, mark, number)));
            } else {
                tally.leases_expired += 1;
                self.remove(mark);
            }
        }
    }

    /// When the next one may be too old.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((when, ..))| *when)
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        let bytes = self.live.values().map(|lease| lease.bytes).sum();
        self.shared.leased.sub(bytes);
    }
}
