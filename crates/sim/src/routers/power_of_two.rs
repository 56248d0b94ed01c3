//! The less loaded of two workers drawn at random (Mitzenmacher 2001): nearly as even as asking all.

use rand::RngExt;
use wavetank_model::{Draw, Nanos, Request, RequestId, WorkerId, seeded};

use super::{Entry, Loads, Needs, Placement, Router};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "power_of_two",
    about: "the less loaded of two workers drawn at random",
    build: |fleet| {
        let draw = seeded(fleet.seed, "power of two router");
        Ok(Box::new(PowerOfTwo { loads: Loads::of(fleet.workers), draw }))
    },
};

struct PowerOfTwo {
    loads: Loads,
    draw: Draw,
}

impl Router for PowerOfTwo {
    fn needs(&self) -> Needs {
        Needs::Signals
    }

    fn arrive(&mut self, id: RequestId, _request: &Request, _now: Nanos) -> Option<Placement> {
        let members = self.loads.members.len();
        let first = self.draw.random_range(0..members);
        // The second is drawn from the others.
        let second = match members {
            1 => first,
            members => (first + self.draw.random_range(1..members)) % members,
        };
        let pair = [first, second].map(|position| self.loads.members.at(position));
        let worker = if self.loads.on(pair[1]) < self.loads.on(pair[0]) { pair[1] } else { pair[0] };
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
