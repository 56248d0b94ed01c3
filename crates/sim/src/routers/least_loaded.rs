//! The worker with the fewest requests in flight.

use wavetank_model::{Nanos, Request, RequestId, WorkerId};

use super::{Entry, Loads, Needs, Placement, Router};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "least_loaded",
    about: "the worker with the fewest requests in flight",
    build: |fleet| Ok(Box::new(LeastLoaded(Loads::of(fleet.workers)))),
};

struct LeastLoaded(Loads);

impl Router for LeastLoaded {
    fn needs(&self) -> Needs {
        Needs::Signals
    }

    fn arrive(&mut self, id: RequestId, _request: &Request, _now: Nanos) -> Option<Placement> {
        let worker = self.0.least();
        self.0.place(id, worker)
    }

    fn ended(&mut self, id: RequestId, _now: Nanos) {
        self.0.ended(id);
    }
    fn joined(&mut self, worker: WorkerId) {
        self.0.joined(worker);
    }

    fn left(&mut self, worker: WorkerId) {
        self.0.left(worker);
    }
}
