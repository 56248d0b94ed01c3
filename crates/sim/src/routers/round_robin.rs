//! Each worker in turn, beginning with worker 0 (spec/replay.md 5.1).

use wavetank_model::{Nanos, Request, RequestId, WorkerId};

use super::{Entry, Members, Needs, Placement, Router};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "round_robin",
    about: "each worker in turn, whatever it is doing",
    build: |fleet| Ok(Box::new(RoundRobin { members: Members::of(fleet.workers), next: 0 })),
};

struct RoundRobin {
    members: Members,
    /// A position among them; after a change of their number it may be beyond the last.
    next: u32,
}

impl Router for RoundRobin {
    fn needs(&self) -> Needs {
        Needs::Arrivals
    }

    fn arrive(&mut self, id: RequestId, _request: &Request, _now: Nanos) -> Option<Placement> {
        let position = self.next % self.members.len();
        self.next = position + 1;
        let worker = self.members.at(position);
        Some(Placement { request: id, worker, overlap_tokens: 0 })
    }
    fn joined(&mut self, worker: WorkerId) {
        self.members.joined(worker);
    }

    fn left(&mut self, worker: WorkerId) {
        self.members.left(worker);
    }
}
