//! A session stays where its first turn went, which is the least loaded worker at that time. When that one
//! takes no more requests, the next turn finds another.

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
        let home = self.homes[session].filter(|&home| self.loads.members.has(home));
        let worker = home.unwrap_or_else(|| self.loads.least());
        self.homes[session] = Some(worker);
        self.loads.place(id, worker)
    }

    fn ended(&mut self, id: RequestId, _now: Nanos) {
        self.loads.ended(id);
    }
    fn joined(&mut self, worker: WorkerId) {
        self.loads.joined(worker);
    }

    fn left(&mut self, worker: WorkerId) {
        self.loads.left(worker);
    }
}
