//! Any worker with equal chance: the baseline every other router must beat.

use rand::RngExt;
use wavetank_model::{Draw, Nanos, Request, RequestId, WorkerId, seeded};

use super::{Entry, Needs, Placement, Router};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "random",
    about: "any worker with equal chance",
    build: |fleet| Ok(Box::new(Random { workers: fleet.workers, draw: seeded(fleet.seed, "random router") })),
};

struct Random {
    workers: u32,
    draw: Draw,
}

impl Router for Random {
    fn needs(&self) -> Needs {
        Needs::Arrivals
    }

    fn arrive(&mut self, id: RequestId, _request: &Request, _now: Nanos) -> Option<Placement> {
        let worker = WorkerId(self.draw.random_range(0..self.workers));
        Some(Placement { request: id, worker, overlap_tokens: 0 })
    }
}
