//! A session stays where its first turn went, which is the least loaded worker at that time.

use wavetank_model::{Nanos, Request, RequestId, WorkerId};

use super::{Entry, Loads, Needs, Placement, Router};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "session_sticky",
    about: "a session stays on the worker of its first turn, the least loaded then",
    build: |fleet| Ok(Box::new(SessionSticky { loads: Loads::of(fleet.workers), homes: Vec::new() })),
};

struct SessionSticky {
    loads: Loads,
    /// By session number; a session that has not begun has none.
    homes: Vec<Option<WorkerId>>,
}

impl Router for SessionSticky {
    fn needs(&self) -> Needs {
        Needs::Signals
    }

    fn arrive(&mut self, id: RequestId, request: &Request, _now: Nanos) -> Option<Placement> {
        let session = request.session.index();
        if session >= self.homes.len() {
            self.homes.resize(session + 1, None);
        }
        let worker = *self.homes[session].get_or_insert_with(|| self.loads.least());
        self.loads.place(id, worker)
    }

    fn ended(&mut self, id: RequestId, _now: Nanos) {
        self.loads.ended(id);
    }
}
