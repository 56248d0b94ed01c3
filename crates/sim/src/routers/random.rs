//! Any worker with equal chance: the baseline every other router must beat.

use rand::RngExt;
use wavetank_model::{Draw, Nanos, Request, RequestId, WorkerId, seeded};

use super::{Entry, Members, Needs, Placement, Router};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "random",
    about: "any worker with equal chance",
    build: |fleet| {
        let draw = seeded(fleet.seed, "random router");
        Ok(Box::new(Random { members: Members::of(fleet.workers), draw }))
    },
};

struct Random {
    members: Members,
    draw: Draw,
}

impl Router for Random {
    fn needs(&self) -> Needs {
        Needs::Arrivals
    }

    fn arrive(&mut self, id: RequestId, _request: &Request, _now: Nanos) -> Option<Placement> {
        let worker = self.members.at(self.draw.random_range(0..self.members.len()));
        Some(Placement { request: id, worker, overlap_tokens: 0 })
    }
    fn joined(&mut self, worker: WorkerId) {
        self.members.joined(worker);
    }

    fn left(&mut self, worker: WorkerId) {
        self.members.left(worker);
    }
}
