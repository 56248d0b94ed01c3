//! A plan for tests.

use wavetank_cache::Rules;
use wavetank_model::{Class, Nanos, TierRole};

use crate::class::Target;
use crate::plan::{Feed, Load, Plan, TierPlan, Time};
use crate::queue::Ageing;
use crate::user::Habits;
use crate::worker::{Pace, Reads, Role};

/// One second of `users` users on a store that keeps nothing, on a virtual clock.
pub(crate) fn plan(users: u32) -> Plan {
    Plan {
        seed: 42,
        bytes_per_token: 24_576,
        users,
        workers_max: 500,
        habits: Habits::default(),
        feed: Feed::Users(Load::Open),
        queue_limit: None,
        ageing: Ageing::Never,
        targets: Class::ALL.map(Target::of),
        reads: Reads::PerBatch(32),
        role: Role::Both,
        pace: Pace(Nanos::ZERO),
        time: Time::Virtual,
        warmup: Nanos::ZERO,
        duration: Nanos::from_seconds(1.0),
        max_requests: None,
        max_concurrent_allocs: None,
        scaling: None,
        precondition_bytes: None,
        precondition_depth: 4,
        io_threads: 1,
        io_depth: 16,
        tiers: vec![tier(TierRole::Storage, "null", None)],
        rules: Rules::default(),
        verify: false,
        keep_cache: false,
    }
}

/// A tier without a location.
pub(crate) fn tier(role: TierRole, backend: &str, capacity_bytes: Option<u64>) -> TierPlan {
    TierPlan {
        role,
        backend: backend.to_owned(),
        location: String::new(),
        capacity_bytes,
        eviction: "lru".to_owned(),
        options: (backend == "null").then(|| ("moves".to_owned(), "no".to_owned())).into_iter().collect(),
    }
}
