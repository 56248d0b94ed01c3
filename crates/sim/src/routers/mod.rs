//! Which worker a request goes to: one file or folder per router, one row each in [`ALL`].

mod kv_router;
mod least_loaded;
mod power_of_two;
mod random;
mod round_robin;
mod session_sticky;

use wavetank_cache::Change;
use wavetank_model::{Nanos, Request, RequestId, Result, WorkerId, described, find};

pub use kv_router::KvConfig;

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Whose.
    pub request: RequestId,
    /// Where it goes.
    pub worker: WorkerId,
    /// Prompt tokens believed to be in that worker's cache.
    pub overlap_tokens: u32,
}

/// What a router must be told to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// Only arrivals.
    Arrivals,
    /// Also when requests are prefilled and ended.
    Signals,
    /// Also what workers have in their caches.
    Caches,
}

/// Chooses workers. All times are simulated and do not go back.
///
/// Workers are known by their numbers within the pool: those of the fleet it was built for are there from the
/// beginning, others have higher numbers than all before. There is always one that requests can go to.
pub trait Router {
    /// What it must be told.
    fn needs(&self) -> Needs;

    /// Decides about a request that arrives; `None` keeps it waiting inside the router.
    fn arrive(&mut self, id: RequestId, request: &Request, now: Nanos) -> Option<Placement>;

    /// A request got its first token.
    fn prefilled(&mut self, _id: RequestId, _now: Nanos) {}

    /// A request ended.
    fn ended(&mut self, _id: RequestId, _now: Nanos) {}

    /// A request that has arrived and not ended was given up, in the router's queue or on its worker; others
    /// may be let go by that.
    fn withdrawn(&mut self, id: RequestId, now: Nanos) {
        self.ended(id, now);
    }

    /// The cache of a worker changed.
    fn cache_changed(&mut self, _worker: WorkerId, _change: Change) {}

    /// A worker with a higher number than all before takes requests from now on.
    fn joined(&mut self, worker: WorkerId);

    /// A worker takes no more requests, never again; those it has will still end.
    fn left(&mut self, worker: WorkerId);

    /// A tier behind the cache of a worker changed, or one behind those of all; tiers are counted from the
    /// fastest.
    fn tier_changed(&mut self, _worker: Option<WorkerId>, _tier: u8, _change: Change) {}

    /// Lets a waiting request go, if one may.
    fn release(&mut self, _now: Nanos) -> Option<Placement> {
        None
    }
}

/// What routers are built from.
#[derive(Clone, Debug)]
pub struct Fleet<'a> {
    /// How many workers.
    pub workers: u32,
    /// Their engine.
    pub engine: &'a crate::EngineConfig,
    /// The configuration of `kv_router`.
    pub config: &'a KvConfig,
    /// For random choices.
    pub seed: u64,
}

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// Builds the router of a fleet.
    pub build: fn(&Fleet<'_>) -> Result<Box<dyn Router>>,
}

described!(Entry);

/// Every router, alphabetical. `wavetank list routers` prints this table.
pub const ALL: &[Entry] = &[
    kv_router::ENTRY,
    least_loaded::ENTRY,
    power_of_two::ENTRY,
    random::ENTRY,
    round_robin::ENTRY,
    session_sticky::ENTRY,
];

/// Builds the router called `name`.
pub fn build(name: &str, fleet: &Fleet<'_>) -> Result<Box<dyn Router>> {
    (find("router", ALL, name)?.build)(fleet)
}

/// The workers that take requests, in order of their numbers.
struct Members(Vec<WorkerId>);

impl Members {
    fn of(workers: u32) -> Self {
        Self((0..workers).map(WorkerId).collect())
    }

    fn len(&self) -> u32 {
        self.0.len() as u32
    }

    fn at(&self, position: u32) -> WorkerId {
        self.0[position as usize]
    }

    fn has(&self, worker: WorkerId) -> bool {
        self.0.binary_search(&worker).is_ok()
    }

    fn joined(&mut self, worker: WorkerId) {
        assert!(self.0.last().is_none_or(|&last| last < worker), "numbers are not used again");
        self.0.push(worker);
    }

    fn left(&mut self, worker: WorkerId) {
        self.0.retain(|&member| member != worker);
    }
}

/// Requests on each worker, for routers that balance them.
struct Loads {
    members: Members,
    on_worker: Vec<u32>,
    placed: wavetank_model::InFlight<WorkerId>,
}

impl Loads {
    fn of(workers: u32) -> Self {
        let (on_worker, placed) = (vec![0; workers as usize], wavetank_model::InFlight::default());
        Self { members: Members::of(workers), on_worker, placed }
    }

    fn joined(&mut self, worker: WorkerId) {
        self.members.joined(worker);
        self.on_worker.resize(worker.index() + 1, 0);
    }

    fn left(&mut self, worker: WorkerId) {
        self.members.left(worker);
    }

    fn on(&self, worker: WorkerId) -> u32 {
        self.on_worker[worker.index()]
    }

    /// The worker with the fewest requests, the lowest number among equals.
    fn least(&self) -> WorkerId {
        let least = self.members.0.iter().min_by_key(|worker| self.on_worker[worker.index()]);
        *least.expect("there is always a worker")
    }

    fn place(&mut self, request: RequestId, worker: WorkerId) -> Option<Placement> {
        self.on_worker[worker.index()] += 1;
        self.placed.insert(request, worker);
        Some(Placement { request, worker, overlap_tokens: 0 })
    }

    fn ended(&mut self, request: RequestId) {
        if let Some(worker) = self.placed.remove(request) {
            self.on_worker[worker.index()] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wavetank_model::{Priority, Prompt, SessionId};

    use super::*;
    use crate::EngineConfig;

    fn request(session: u32) -> Request {
        Request {
            session: SessionId(session),
            turn: 0,
            prompt: Prompt::unique(u64::from(session), 10),
            output_tokens: 1,
            priority: Priority::default(),
            think: None,
            labels: None,
        }
    }

    #[test]
    fn every_router_stays_inside_the_fleet_and_repeats() {
        let (engine, config) = (EngineConfig::default(), KvConfig::default());
        for entry in ALL {
            for workers in [1, 2, 7] {
                let fleet = Fleet { workers, engine: &engine, config: &config, seed: 42 };
                let placements = || {
                    let mut router = (entry.build)(&fleet).unwrap();
                    let mut place = |i| router.arrive(RequestId(i), &request(i % 5), Nanos::ZERO).unwrap();
                    (0..50).map(|i| place(i).worker.0).collect::<Vec<_>>()
                };
                assert!(placements().iter().all(|&worker| worker < workers), "{}", entry.name);
                assert_eq!(placements(), placements(), "{}", entry.name);
            }
        }
    }

    /// Broken by: a router that keeps to the workers it was built for, or goes on with one that left.
    #[test]
    fn every_router_goes_with_who_is_there() {
        let (engine, config) = (EngineConfig::default(), KvConfig::default());
        for entry in ALL {
            let fleet = Fleet { workers: 2, engine: &engine, config: &config, seed: 42 };
            let mut router = (entry.build)(&fleet).unwrap();
            let mut next = 0;
            let mut placed = |router: &mut dyn Router| {
                let placed = (next..next + 60).map(|id| place(router, id, id)).collect::<BTreeSet<_>>();
                // Half of them end, so that no worker is full of what came before.
                (next..next + 30).for_each(|id| router.ended(RequestId(id), Nanos(1)));
                next += 60;
                placed.into_iter().collect::<Vec<_>>()
            };
            assert_eq!(placed(router.as_mut()), [0, 1], "{}", entry.name);
            router.joined(WorkerId(2));
            // Number 3 was cancelled before it was there.
            router.joined(WorkerId(4));
            assert_eq!(placed(router.as_mut()), [0, 1, 2, 4], "{}", entry.name);
            router.left(WorkerId(4));
            router.left(WorkerId(1));
            assert_eq!(placed(router.as_mut()), [0, 2], "{}", entry.name);
            router.left(WorkerId(2));
            assert_eq!(placed(router.as_mut()), [0], "{}", entry.name);
            // Whoever was on a worker that left still ends.
            (0..4).flat_map(|turn| turn * 60 + 30..turn * 60 + 60).for_each(|id| {
                router.ended(RequestId(id), Nanos(2));
            });
            router.joined(WorkerId(5));
            assert_eq!(placed(router.as_mut()), [0, 5], "{}", entry.name);
        }
    }

    /// Broken by: a session that is sent to where it lived when nobody is there any more.
    #[test]
    fn session_sticky_finds_another_home_once() {
        let mut router = drive("session_sticky", 3);
        let homes: Vec<_> = (0..3).map(|id| place(router.as_mut(), id, id)).collect();
        assert_eq!(homes, [0, 1, 2]);
        router.left(WorkerId(1));
        let moved = place(router.as_mut(), 3, 1);
        assert_ne!(moved, 1);
        router.joined(WorkerId(3));
        assert_eq!((place(router.as_mut(), 4, 1), place(router.as_mut(), 5, 2)), (moved, 2));
    }

    fn drive(name: &str, workers: u32) -> Box<dyn Router> {
        let (engine, config) = (EngineConfig::default(), KvConfig::default());
        build(name, &Fleet { workers, engine: &engine, config: &config, seed: 42 }).unwrap()
    }

    fn place(router: &mut dyn Router, id: u32, session: u32) -> u32 {
        router.arrive(RequestId(id), &request(session), Nanos::ZERO).unwrap().worker.0
    }

    #[test]
    fn least_loaded_fills_the_emptiest() {
        let mut router = drive("least_loaded", 3);
        let first: Vec<_> = (0..4).map(|id| place(router.as_mut(), id, id)).collect();
        assert_eq!(first, [0, 1, 2, 0]);
        router.ended(RequestId(1), Nanos(5));
        assert_eq!(place(router.as_mut(), 4, 4), 1);
    }

    /// Broken by: a request that stays in the books or in the queue of its router.
    #[test]
    fn who_is_withdrawn_was_never_there() {
        let engine = EngineConfig { max_num_batched_tokens: Some(16), ..EngineConfig::default() };
        let config = KvConfig { router_queue_threshold: Some(1.0), ..KvConfig::default() };
        for entry in ALL {
            let fleet = Fleet { workers: 3, engine: &engine, config: &config, seed: 42 };
            let mut router = (entry.build)(&fleet).unwrap();
            let mut waiting: Vec<_> = (0..40).map(RequestId).collect();
            waiting.retain(|&id| router.arrive(id, &request(id.0 % 5), Nanos::ZERO).is_none());
            assert_eq!(waiting.is_empty(), entry.name != "kv_router", "only that one has a queue");
            // Some are prefilled, and let others go; of the rest some are computed and some wait.
            (0..3).for_each(|id| router.prefilled(RequestId(id), Nanos(1)));
            let released: Vec<_> = std::iter::from_fn(|| router.release(Nanos(1))).collect();
            assert_eq!(released.is_empty(), waiting.is_empty(), "{}", entry.name);
            (0..40).for_each(|id| router.withdrawn(RequestId(id), Nanos(2)));
            assert_eq!(router.release(Nanos(2)), None, "{}", entry.name);
            // As many as there are workers find all of them empty.
            let next = (40..43).map(|id| router.arrive(RequestId(id), &request(100 + id), Nanos(3)));
            let mut placed: Vec<_> = next.map(|placement| placement.unwrap().worker.0).collect();
            placed.sort_unstable();
            if router.needs() > Needs::Arrivals && entry.name != "power_of_two" {
                assert_eq!(placed, [0, 1, 2], "{}", entry.name);
            }
        }
    }

    #[test]
    fn session_sticky_keeps_a_session_where_it_began() {
        let mut router = drive("session_sticky", 3);
        let first: Vec<_> = (0..3).map(|id| place(router.as_mut(), id, id)).collect();
        assert_eq!(first, [0, 1, 2]);
        for id in 3..9 {
            assert_eq!(place(router.as_mut(), id, 1), 1);
        }
    }

    #[test]
    fn power_of_two_never_takes_the_fuller_of_two() {
        let mut router = drive("power_of_two", 2);
        let placed: Vec<_> = (0..40).map(|id| place(router.as_mut(), id, id)).collect();
        let on_first = placed.iter().filter(|&&worker| worker == 0).count();
        assert!((19..=21).contains(&on_first), "with two workers it balances: {on_first}");
    }

    #[test]
    fn random_uses_every_worker() {
        let mut router = drive("random", 4);
        let placed: Vec<_> = (0..100).map(|id| place(router.as_mut(), id, id)).collect();
        assert!((0..4).all(|worker| placed.contains(&worker)));
    }
}
