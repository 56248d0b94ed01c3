//! Requests of serving engines: what each has looked up and holds, until it ends or is silent for too long.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use tokio::sync::watch;
use wavetank_calls::{Held, Object};
use wavetank_model::{CacheEvent, CacheFact, FetchPolicy, Nanos, TraceParent};
use wavetank_telemetry::Bus;

use super::answer::Refusal;
use super::grid::Grid;

/// Requests that are known at a time.
const MOST: usize = 100_000;

/// What a lookup brought, cell by cell.
#[derive(Default)]
pub(super) struct Found {
    /// The objects that can be handed out.
    pub(super) objects: Vec<Option<Arc<Object>>>,
    /// Keeps them in memory.
    pub(super) _held: Option<Held>,
}

/// What was looked up, and what came of it once that is known.
#[derive(Clone)]
pub(super) struct Looked {
    pub(super) grid: Arc<Grid>,
    pub(super) found: watch::Receiver<Option<Arc<Found>>>,
}

/// One request.
pub(super) struct Session {
    pub(super) id: Arc<str>,
    looked: Mutex<Option<Looked>>,
    used: Mutex<Instant>,
    /// Operations under way: it does not end meanwhile.
    busy: AtomicU64,
}

impl Session {
    pub(super) fn looked(&self) -> Option<Looked> {
        locked(&self.looked).clone()
    }

    /// The last lookup is what the request holds.
    pub(super) fn look(&self, looked: Looked) {
        *locked(&self.looked) = Some(looked);
    }
}

/// Keeps a session from ending while something is done for it.
pub(super) struct Busy(pub(super) Arc<Session>);

impl Drop for Busy {
    fn drop(&mut self) {
        *locked(&self.0.used) = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All requests that have not ended.
pub(crate) struct Sessions {
    table: Mutex<HashMap<Arc<str>, Arc<Session>>>,
    bus: Bus,
    ttl: Duration,
    expired: AtomicU64,
    /// What all requests together may have named, and what they have.
    most_named: u64,
    named: Arc<AtomicU64>,
}

/// What the names of a request take; given back when nobody has them any more.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: u64,
    named: Arc<AtomicU64>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.named.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Sessions {
    /// `most_named`: bytes that the names of all requests together may take.
    pub(super) fn new(bus: Bus, ttl: Duration, most_named: u64) -> Self {
        let (expired, named) = (AtomicU64::new(0), Arc::default());
        Self { table: Mutex::default(), bus, ttl, expired, most_named, named }
    }

    /// The right to keep `grid`, if there is room for its names.
    pub(super) fn keep(&self, grid: Grid) -> Result<Arc<Grid>, Refusal> {
        let bytes = grid.bytes();
        let before = self.named.fetch_add(bytes, Ordering::Relaxed);
        let kept = Kept { bytes, named: Arc::clone(&self.named) };
        if before + bytes > self.most_named {
            let error = "requests that have not ended name too many objects";
            let hint = "POST /v1/end ends one, or give --max-memory";
            return Err(Refusal::of(StatusCode::SERVICE_UNAVAILABLE, error, hint));
        }
        Ok(Arc::new(grid.kept_by(kept)))
    }

    /// Bytes that the names of requests take.
    pub(super) fn named_bytes(&self) -> u64 {
        self.named.load(Ordering::Relaxed)
    }

    /// The request called `id`; it begins if there is none.
    pub(super) fn enter(
        &self,
        id: &str,
        policy: FetchPolicy,
        parent: Option<TraceParent>,
    ) -> Result<Busy, Refusal> {
        let mut table = locked(&self.table);
        if let Some(session) = table.get(id) {
            return Ok(busy(session));
        }
        if table.len() >= MOST {
            let full = format!("{MOST} requests have not ended");
            return Err(Refusal::of(StatusCode::SERVICE_UNAVAILABLE, full, "POST /v1/end ends one"));
        }
        let session = Arc::new(Session {
            id: id.into(),
            looked: Mutex::default(),
            used: Mutex::new(Instant::now()),
            busy: AtomicU64::new(0),
        });
        table.insert(Arc::clone(&session.id), Arc::clone(&session));
        let busy = busy(&session);
        drop(table);
        self.publish(&session.id, || CacheFact::RequestStarted { policy, parent });
        Ok(busy)
    }

    /// The request called `id`, if it has begun.
    pub(super) fn find(&self, id: &str) -> Option<Busy> {
        locked(&self.table).get(id).map(busy)
    }

    /// Ends a request; whether there was one.
    pub(super) fn end(&self, id: &str) -> Option<Arc<Session>> {
        let ended = locked(&self.table).remove(id)?;
        self.publish(&ended.id, || CacheFact::RequestEnded);
        Some(ended)
    }

    /// Ends those that have been silent for too long.
    pub(super) fn sweep(&self) {
        let is_old = |session: &Session| {
            session.busy.load(Ordering::Relaxed) == 0 && locked(&session.used).elapsed() >= self.ttl
        };
        let ended: Vec<Arc<Session>> = locked(&self.table)
            .extract_if(|_, session| is_old(session))
            .map(|(_, session)| session)
            .collect();
        self.expired.fetch_add(ended.len() as u64, Ordering::Relaxed);
        for session in ended {
            self.publish(&session.id, || CacheFact::RequestEnded);
        }
    }

    /// How often to look for them.
    pub(super) fn pause(&self) -> Duration {
        (self.ttl / 4).clamp(Duration::from_millis(20), Duration::from_secs(5))
    }

    /// Ends all.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *locked(&self.table));
        for id in all.into_keys() {
            self.publish(&id, || CacheFact::RequestEnded);
        }
    }

    /// Requests there are, and those that ended because they were silent.
    pub(super) fn counts(&self) -> (u64, u64) {
        (locked(&self.table).len() as u64, self.expired.load(Ordering::Relaxed))
    }

    /// Tells what happened.
    pub(super) fn publish(&self, id: &Arc<str>, fact: impl FnOnce() -> CacheFact) {
        publish(&self.bus, id, fact);
    }
}

/// Tells whoever listens what happened just now.
pub(super) fn publish(bus: &Bus, id: &Arc<str>, fact: impl FnOnce() -> CacheFact) {
    bus.publish(|| CacheEvent { at: now(), session: Arc::clone(id), fact: fact() });
}

fn now() -> Nanos {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(since_1970.as_nanos() as u64)
}

fn busy(session: &Arc<Session>) -> Busy {
    session.busy.fetch_add(1, Ordering::Relaxed);
    Busy(Arc::clone(session))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::grid::Asked;
    use super::*;

    /// Broken by: a sweep that ends what is busy, or what was used a moment ago.
    #[test]
    fn only_silent_requests_end_by_themselves() {
        let sessions = Sessions::new(Bus::off(), Duration::ZERO, 0);
        let kept = sessions.enter("busy", FetchPolicy::Prefix, None).unwrap();
        drop(sessions.enter("silent", FetchPolicy::Prefix, None).unwrap());
        sessions.sweep();
        assert_eq!(sessions.counts(), (1, 1));
        assert!(sessions.find("busy").is_some() && sessions.find("silent").is_none());
        drop(kept);
        sessions.sweep();
        assert_eq!(sessions.counts(), (0, 2));
    }

    /// Broken by: names that are kept without a limit, or whose room is not given back.
    #[test]
    fn names_of_all_requests_have_a_limit() {
        let grid = || {
            let chunk_hashes = Some(vec!["ab".to_owned(); 100]);
            Grid::of(&Asked { model: "m".to_owned(), chunk_hashes, ..Asked::default() }, 1).unwrap()
        };
        let room = grid().bytes();
        assert!(room > 100 * 50, "{room}");
        let sessions = Sessions::new(Bus::off(), Duration::from_secs(9), room * 2);
        let kept = [sessions.keep(grid()).unwrap(), sessions.keep(grid()).unwrap()];
        assert_eq!(sessions.named_bytes(), room * 2);
        assert_eq!(sessions.keep(grid()).unwrap_err().answer().status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(kept);
        assert_eq!(sessions.named_bytes(), 0);
        assert!(sessions.keep(grid()).is_ok());
    }

    #[test]
    fn a_request_begins_once_and_ends_once() {
        let sessions = Sessions::new(Bus::off(), Duration::from_secs(9), 0);
        let first = sessions.enter("a", FetchPolicy::Prefix, None).unwrap();
        let again = sessions.enter("a", FetchPolicy::Prefix, None).unwrap();
        assert!(Arc::ptr_eq(&first.0, &again.0));
        assert!(sessions.end("a").is_some() && sessions.end("a").is_none());
    }
}
