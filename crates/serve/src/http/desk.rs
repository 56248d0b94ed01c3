//! What every connection of the HTTP door works with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::block_in_place;
use tokio::time::timeout;
use wavetank_http::Tally;
use wavetank_model::Nanos;

use super::answer::Refusal;
use super::health::Health;
use super::session::Sessions;
use super::status::History;
use crate::cache::Cache;
use crate::counters::Counter;
use crate::phase::CurrentPhase;
use crate::plan::Plan;

/// What objects under way are counted in.
const SHARE: u64 = 4096;
/// Bodies in JSON up to this are read where they came.
const LIGHT: usize = 64 << 10;

/// What connections share.
pub(crate) struct Desk {
    pub(crate) cache: Arc<Cache>,
    pub(crate) plan: Plan,
    pub(crate) phase: CurrentPhase,
    pub(crate) counts: HttpCounts,
    pub(super) tally: Arc<Tally>,
    pub(super) health: Health,
    pub(crate) parts: super::status::Parts,
    pub(crate) started: Instant,
    pub(super) sessions: Sessions,
    pub(super) history: History,
    /// What may be under way from clients into memory.
    room: Arc<Semaphore>,
    /// Long work at a time: each takes a thread away, and there are as many to stand in.
    heavy: Semaphore,
    transfers: AtomicU64,
    lookups: AtomicU64,
}

macro_rules! counts {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// What the door counts.
        #[derive(Debug, Default)]
        pub(crate) struct HttpCounts {
            $($(#[doc = $doc])+ pub(crate) $name: Counter,)+
        }

        impl HttpCounts {
            /// Every count by name, with what it counts.
            fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), concat!($($doc),+), self.$name.total()),)+]
            }
        }
    };
}

counts! {
    /// HTTP requests answered.
    http_requests,
    /// HTTP requests answered with an error.
    http_errors,
    /// Lookups of requests.
    lookup_requests,
    /// Lookups of nothing.
    lookup_early_exits,
    /// Tokens of whole chunks that were looked up.
    lookup_requested_tokens,
    /// Those found.
    lookup_hit_tokens,
    /// Those that memory alone could serve.
    lookup_l1_hit_tokens,
    /// Those that came from behind.
    lookup_l2_hit_tokens,
    /// Objects that lookups found in memory.
    lookup_l1_hit_keys,
    /// Objects that lookups found behind memory.
    lookup_l2_hit_keys,
    /// Requests to store.
    stores_submitted,
    /// Those that ended.
    stores_finished,
    /// Requests to retrieve.
    retrieves_submitted,
    /// Those that ended.
    retrieves_finished,
    /// Objects that were retrieved.
    chunks_loaded,
}

impl Desk {
    pub(crate) fn new(cache: Arc<Cache>, plan: Plan) -> Self {
        let shares = plan.limits.memory_bytes.div_ceil(SHARE).clamp(1, Semaphore::MAX_PERMITS as u64);
        Self {
            sessions: Sessions::new(cache.bus.clone(), duration(plan.session_ttl), plan.limits.memory_bytes),
            heavy: Semaphore::new(plan.http_threads),
            room: Arc::new(Semaphore::new(shares as usize)),
            cache,
            plan,
            phase: CurrentPhase::default(),
            counts: HttpCounts::default(),
            tally: Arc::default(),
            health: Health::default(),
            parts: super::status::Parts::default(),
            started: Instant::now(),
            history: History::default(),
            transfers: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
        }
    }

    /// Every count of the door by name, with what it counts.
    pub(super) fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
        let tally = &self.tally;
        let mut rows = vec![
            ("http_connections_opened", "HTTP connections taken.", tally.opened()),
            ("http_connections_closed", "HTTP connections that ended.", tally.closed()),
            (
                "http_connections_refused",
                "HTTP connections turned away because there were too many.",
                tally.refused(),
            ),
        ];
        rows.extend(self.counts.rows());
        rows
    }

    /// A number that no other lookup of this process has.
    pub(super) fn lookup_number(&self) -> u64 {
        self.lookups.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that no other transfer of this process has.
    pub(super) fn transfer_number(&self) -> u64 {
        self.transfers.fetch_add(1, Ordering::Relaxed)
    }

    /// Does `work` on a body of `length` bytes; if it is long, other clients are served meanwhile.
    pub(super) async fn apart<T>(&self, length: usize, work: impl FnOnce() -> T) -> T {
        if length <= LIGHT {
            return work();
        }
        let _turn = self.heavy.acquire().await;
        block_in_place(work)
    }

    /// The right to have `bytes` under way; clients wait for each other.
    pub(super) async fn share(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Refusal> {
        let most = self.plan.limits.memory_bytes;
        if bytes > most {
            let error = format!("{bytes} bytes are more than may be under way, {most}");
            return Err(Refusal::of(StatusCode::PAYLOAD_TOO_LARGE, error, "--max-memory says how much"));
        }
        let patience = duration(self.plan.limits.client_timeout);
        match timeout(patience, Arc::clone(&self.room).acquire_many_owned(shares(bytes))).await {
            Ok(Ok(share)) => Ok(share),
            _ => Err(Refusal::of(
                StatusCode::SERVICE_UNAVAILABLE,
                "too much is under way",
                "try again, or give --max-memory",
            )),
        }
    }
}

/// How many shares of what may be under way `bytes` take.
pub(super) fn shares(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(SHARE)).unwrap_or(u32::MAX)
}

/// A time of the plan, for clocks.
pub(crate) fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(time.0)
}
