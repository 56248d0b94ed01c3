//! A server from its first line to its last: storage, doors, and their end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use wavetank_calls::{Keeping, Storage, StorageOptions};
use wavetank_model::Result;
use wavetank_telemetry::Bus;

use crate::cache::Cache;
use crate::counters::Counters;
use crate::http::status::evicted;
use crate::http::{Desk, Door, duration};
use crate::phase::Phase;
use crate::plan::Plan;

/// Where a server is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// By HTTP clients.
    pub http: SocketAddr,
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.http)
    }
}

/// What a server did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests by HTTP.
    pub http_requests: u64,
    /// Objects asked for.
    pub lookups: u64,
    /// Those found.
    pub hits: u64,
    /// Bytes that clients wrote.
    pub bytes_in: u64,
    /// Bytes that clients read.
    pub bytes_out: u64,
    /// Objects that left a tier to make room.
    pub evicted: u64,
}

/// Serves until `stop` says so, or whoever would say so is gone. `ready` is told the addresses when clients
/// are served.
pub fn run(plan: &Plan, stop: &Receiver<()>, ready: impl FnOnce(&Addresses)) -> Result<Report> {
    let options = StorageOptions {
        prefetches_in_flight: plan.prefetches_in_flight,
        keeping: Keeping::All,
        ..StorageOptions::default()
    };
    let cache = Arc::new(Cache {
        storage: Storage::open(&plan.storage, &options, None)?,
        counters: Counters::default(),
        bus: Bus::off(),
        patience: duration(plan.patience),
    });
    let desk = Arc::new(Desk::new(Arc::clone(&cache), plan.clone()));
    let door = Door::open(Arc::clone(&desk))?;
    desk.phase.enter(Phase::Serving);
    ready(&Addresses { http: door.address() });
    // An error is that nobody can say it any more.
    let _ = stop.recv();
    desk.phase.enter(Phase::Draining);
    let deadline = Instant::now() + duration(plan.drain);
    door.drain(deadline.saturating_duration_since(Instant::now()));
    Ok(report(&desk))
}

fn report(desk: &Desk) -> Report {
    let counters = &desk.cache.counters;
    Report {
        http_requests: desk.counts.requests.total(),
        lookups: counters.lookups.total(),
        hits: counters.l1_hits.total() + counters.l2_hits.total(),
        bytes_in: counters.bytes_in.total(),
        bytes_out: counters.bytes_out.total(),
        evicted: evicted(&desk.cache.storage.background()),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: f64 = (1u64 << 20) as f64;
        writeln!(f, "Requests: {} by HTTP", self.http_requests)?;
        writeln!(f, "Objects asked for: {}, found: {}", self.lookups, self.hits)?;
        let mib = |bytes: u64| bytes as f64 / MIB;
        writeln!(f, "Written: {:.1} MiB, read: {:.1} MiB", mib(self.bytes_in), mib(self.bytes_out))?;
        writeln!(f, "Evicted: {}", self.evicted)
    }
}
