//! Each worker in turn, beginning with worker 0 (spec/replay.md 5.1).

use wavetank_model::{Request, WorkerId};

use super::{Entry, Router};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "round_robin",
    about: "each worker in turn, whatever it is doing",
    build: |workers| Box::new(RoundRobin { workers, next: 0 }),
};

struct RoundRobin {
    workers: u32,
    next: u32,
}

impl Router for RoundRobin {
    fn place(&mut self, _request: &Request) -> WorkerId {
        let chosen = self.next;
        self.next = (chosen + 1) % self.workers;
        WorkerId(chosen)
    }
}
