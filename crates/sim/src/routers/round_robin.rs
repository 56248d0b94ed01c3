//! Each worker in turn, beginning with worker 0 (spec/replay.md 5.1).

use wavetank_model::{Nanos, Request, RequestId, WorkerId};

use super::{Entry, Needs, Placement, Router};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "round_robin",
    about: "each worker in turn, whatever it is doing",
    build: |fleet| Ok(Box::new(RoundRobin { workers: fleet.workers, next: 0 })),
};

struct RoundRobin {
    workers: u32,
    next: u32,
}

impl Router for RoundRobin {
    fn needs(&self) -> Needs {
        Needs::Arrivals
    }

    fn arrive(&mut self, id: RequestId, _request: &Request, _now: Nanos) -> Option<Placement> {
        let worker = WorkerId(self.next);
        self.next = (self.next + 1) % self.workers;
        Some(Placement { request: id, worker, overlap_tokens: 0 })
    }
}
