//! Who is in the fleet: pools of workers, the stage each is in, and what each has to do.
//!
//! Workers have one number in the fleet, never used again, and a seat in their pool, by which its router
//! knows them: the first that joined a pool has seat 0.

use wavetank_model::{Nanos, WorkerId, WorkerRole, WorkerStage};

use crate::Plan;

/// All workers that were ever there.
pub(crate) struct Roster {
    /// The pool where requests begin, then the one that decodes, if there is one.
    pools: Vec<Pool>,
    /// By worker.
    entries: Vec<Entry>,
    /// Workers that will be active, in order of their numbers.
    starting: Vec<WorkerId>,
    /// Workers that finish what they have.
    draining: Vec<WorkerId>,
}

/// Workers alike.
struct Pool {
    role: WorkerRole,
    /// By seat.
    members: Vec<WorkerId>,
}

/// A worker.
#[derive(Clone, Copy)]
struct Entry {
    pool: usize,
    seat: WorkerId,
    stage: WorkerStage,
    /// When it will be active, while it starts.
    ready_at: Nanos,
    /// Requests that it has not done with.
    requests: u32,
}

impl Roster {
    /// The workers a plan begins with, all active.
    pub(crate) fn of(plan: &Plan) -> Self {
        let first = if plan.decode.is_some() { WorkerRole::Prefill } else { WorkerRole::Aggregated };
        let decode = plan.decode.as_ref().map(|pool| (WorkerRole::Decode, pool.num_workers));
        let (pools, entries, starting, draining) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut roster = Self { pools, entries, starting, draining };
        for (role, count) in std::iter::once((first, plan.num_workers)).chain(decode) {
            roster.pools.push(Pool { role, members: Vec::new() });
            let pool = roster.pools.len() - 1;
            for _ in 0..count {
                roster.enter(pool, WorkerStage::Active, Nanos::ZERO);
            }
        }
        roster
    }

    /// A new worker; its number.
    pub(crate) fn enter(&mut self, pool: usize, stage: WorkerStage, ready_at: Nanos) -> WorkerId {
        let worker = WorkerId(self.entries.len() as u32);
        let members = &mut self.pools[pool].members;
        let seat = WorkerId(members.len() as u32);
        members.push(worker);
        self.entries.push(Entry { pool, seat, stage, ready_at, requests: 0 });
        if stage == WorkerStage::Starting {
            self.starting.push(worker);
        }
        worker
    }

    /// A worker comes to another stage.
    pub(crate) fn set(&mut self, worker: WorkerId, stage: WorkerStage) {
        let entry = &mut self.entries[worker.index()];
        assert!(entry.stage < stage, "no stage is come back to");
        entry.stage = stage;
        self.starting.retain(|&other| other != worker);
        self.draining.retain(|&other| other != worker);
        if stage == WorkerStage::Draining {
            self.draining.push(worker);
        }
    }

    pub(crate) fn pools(&self) -> usize {
        self.pools.len()
    }

    pub(crate) fn workers(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(crate) fn role(&self, pool: usize) -> WorkerRole {
        self.pools[pool].role
    }

    pub(crate) fn pool_of(&self, worker: WorkerId) -> usize {
        self.entries[worker.index()].pool
    }

    /// Whether a worker decodes what others prefill.
    pub(crate) fn decodes(&self, worker: WorkerId) -> bool {
        self.entries[worker.index()].pool > 0
    }

    pub(crate) fn stage(&self, worker: WorkerId) -> WorkerStage {
        self.entries[worker.index()].stage
    }

    /// The number of a worker in its pool.
    pub(crate) fn seat(&self, worker: WorkerId) -> WorkerId {
        self.entries[worker.index()].seat
    }

    /// The worker that has a seat in a pool.
    pub(crate) fn member(&self, pool: usize, seat: WorkerId) -> WorkerId {
        self.pools[pool].members[seat.index()]
    }

    /// Workers of a pool in some stage, in order of their numbers.
    pub(crate) fn staged(
        &self,
        pool: usize,
        stage: WorkerStage,
    ) -> impl DoubleEndedIterator<Item = WorkerId> {
        let members = self.pools[pool].members.iter().copied();
        members.filter(move |&worker| self.stage(worker) == stage)
    }

    /// Workers of a pool that are active or will be.
    pub(crate) fn strength(&self, pool: usize) -> u32 {
        let wanted = |&worker: &WorkerId| self.stage(worker) <= WorkerStage::Active;
        self.pools[pool].members.iter().copied().filter(wanted).count() as u32
    }

    /// When the next worker that starts is ready.
    pub(crate) fn next_ready(&self) -> Option<Nanos> {
        self.starting.iter().map(|worker| self.entries[worker.index()].ready_at).min()
    }

    /// The first worker that is ready at `now` and was not before.
    pub(crate) fn ready(&self, now: Nanos) -> Option<WorkerId> {
        self.starting.iter().copied().find(|worker| self.entries[worker.index()].ready_at <= now)
    }

    /// Workers that finish what they have.
    pub(crate) fn draining(&self) -> &[WorkerId] {
        &self.draining
    }

    /// A worker has one request more.
    pub(crate) fn given(&mut self, worker: WorkerId) {
        let entry = &mut self.entries[worker.index()];
        assert!(entry.stage == WorkerStage::Active, "only active workers get requests");
        entry.requests += 1;
    }

    /// A worker is done with a request.
    pub(crate) fn done(&mut self, worker: WorkerId) {
        self.entries[worker.index()].requests -= 1;
    }

    pub(crate) fn requests(&self, worker: WorkerId) -> u32 {
        self.entries[worker.index()].requests
    }
}
