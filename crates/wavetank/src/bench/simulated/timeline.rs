//! The media of all tiers on one clock: it goes from one end to the next, whatever tier that is in, so that
//! nothing that ends earlier is passed over.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wavetank_model::{Nanos, Operation, TierRoom};
use wavetank_sim::TransferId;
use wavetank_sim::media::{Medium, Transfer};
use wavetank_store::Clock;

use super::recent::Recent;

/// Longer than anything takes.
const A_DAY: Duration = Duration::from_secs(86_400);

/// Media and what moves on them.
pub(super) struct Timeline {
    clock: Clock,
    /// The zero of the media.
    start: Instant,
    state: Mutex<State>,
}

struct State {
    media: Vec<Box<dyn Medium>>,
    /// What was moved last, in any tier.
    recent: Recent,
    begun: TransferId,
    /// Transfers that ended and were not asked for.
    ended: HashMap<TransferId, Nanos>,
}

/// What is moved.
pub(super) struct Moved {
    /// An entry, and where in it.
    pub(super) what: (u64, u64),
    pub(super) bytes: u64,
    /// What it is written over.
    pub(super) room: TierRoom,
}

impl Timeline {
    /// Media with nothing under way, one for each tier.
    pub(super) fn of(clock: Clock, media: Vec<Box<dyn Medium>>) -> Self {
        let recent = Recent::of(media.iter().map(|medium| medium.remembers()).max().unwrap_or(0));
        let state = Mutex::new(State { media, recent, begun: 0, ended: HashMap::new() });
        Self { start: clock.now(), clock, state }
    }

    /// The time.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Begins to move bytes in a tier: which transfer that is, and what of its time who asks spends on it.
    pub(super) fn begin(
        &self,
        tier: usize,
        operation: Operation,
        Moved { what: (entry, offset), bytes, room }: Moved,
    ) -> (TransferId, Nanos) {
        let now = self.shown();
        let mut state = self.locked();
        state.settle(now);
        state.begun += 1;
        let before = state.recent.touch((tier, entry, offset), operation, bytes);
        let transfer = Transfer { id: state.begun, count: 1, operation, bytes, room, before };
        let spent = state.media[tier].holds_up(transfer);
        state.media[tier].begin(transfer, now);
        (transfer.id, spent)
    }

    /// Who asks does something for as long.
    pub(super) fn spend(&self, time: Nanos) {
        self.clock.wait_until(self.now() + Duration::from_nanos(time.0));
    }

    /// When a transfer ended, if it has by now; it is told once.
    pub(super) fn take_end(&self, id: TransferId) -> Option<Instant> {
        let now = self.shown();
        let mut state = self.locked();
        state.settle(now);
        state.ended.remove(&id).map(|at| self.start + Duration::from_nanos(at.0))
    }

    /// Goes on to when a transfer ends.
    pub(super) fn pass(&self, id: TransferId) {
        while !self.locked().ended.contains_key(&id) {
            self.go_on(self.now() + A_DAY);
        }
    }

    /// Goes on to when something ends in any tier, or to `deadline` if that is before.
    pub(super) fn go_on(&self, deadline: Instant) {
        let mut state = self.locked();
        let next = state.media.iter().filter_map(|medium| medium.next()).min();
        let next = next.map_or(deadline, |at| self.start + Duration::from_nanos(at.0));
        self.clock.wait_until(next.min(deadline));
        state.settle(self.shown());
    }

    fn shown(&self) -> Nanos {
        Nanos(self.clock.since(self.start).as_nanos() as u64)
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes what has ended by `now` from the media, which want that before anything begins.
    fn settle(&mut self, now: Nanos) {
        for medium in &mut self.media {
            let mut ended = Vec::new();
            while let Some(at) = medium.end(now, &mut ended) {
                self.ended.extend(ended.drain(..).map(|id| (id, at)));
            }
        }
    }
}
