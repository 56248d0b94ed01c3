//! When requests arrive: the schedule of sessions and turns, or a closed loop (spec/replay.md 4).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wavetank_model::{Nanos, Opening, Request, Result, SessionId, Workload};

use crate::{ConcurrencyUnit, Load};

/// A request and the time its waiting counts from.
pub(crate) struct Arrival {
    pub(crate) at: Nanos,
    pub(crate) request: Request,
}

/// A turn that becomes ready; the order is that of the fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    at: Nanos,
    session: SessionId,
    turn: u32,
}

/// The requests still to come.
pub(crate) struct Arrivals<'w> {
    workload: &'w mut dyn Workload,
    load: Load,
    opening: Option<Opening>,
    follow_ups: BinaryHeap<Reverse<Ready>>,
    in_flight: u32,
    sessions: u32,
}

impl<'w> Arrivals<'w> {
    pub(crate) fn of(workload: &'w mut dyn Workload, load: Load) -> Result<Self> {
        let opening = workload.open()?;
        Ok(Self { workload, load, opening, follow_ups: BinaryHeap::new(), in_flight: 0, sessions: 0 })
    }

    /// Whether a request that ends can cause another to arrive.
    pub(crate) fn depend_on_completions(&self) -> bool {
        self.load != Load::Schedule || self.workload.has_follow_ups()
    }

    /// When the next request arrives if nothing completes before; not before `now`.
    pub(crate) fn next_at(&self, now: Nanos) -> Option<Nanos> {
        Some(self.next_ready()?.at.max(now))
    }

    /// The next request that is ready at `now`.
    pub(crate) fn pop(&mut self, now: Nanos) -> Result<Option<Arrival>> {
        let Some(ready) = self.next_ready().filter(|ready| ready.at <= now) else { return Ok(None) };
        let request = match self.opening.take_if(|opening| opening.request.session == ready.session) {
            Some(opening) => {
                self.sessions += 1;
                self.opening = self.workload.open()?;
                opening.request
            }
            None => {
                self.follow_ups.pop();
                self.workload.follow_up(ready.session, ready.turn)?
            }
        };
        self.in_flight += 1;
        let at = if self.load == Load::Schedule { ready.at } else { now };
        Ok(Some(Arrival { at, request }))
    }

    /// A turn ended at `now`; `think` leads to the next one.
    pub(crate) fn ended(&mut self, session: SessionId, turn: u32, think: Option<Nanos>, now: Nanos) {
        self.in_flight -= 1;
        match think {
            Some(pause) => self.follow_ups.push(Reverse(Ready { at: now + pause, session, turn: turn + 1 })),
            None => self.sessions -= 1,
        }
    }

    fn next_ready(&self) -> Option<Ready> {
        let follow_up = self.follow_ups.peek().map(|&Reverse(ready)| ready);
        match self.load {
            Load::Closed { concurrency, unit: ConcurrencyUnit::Requests }
                if self.in_flight >= concurrency =>
            {
                None
            }
            _ => [self.next_opening(), follow_up].into_iter().flatten().min(),
        }
    }

    fn next_opening(&self) -> Option<Ready> {
        let Opening { at, request } = self.opening.as_ref()?;
        let at = match self.load {
            Load::Schedule => *at,
            Load::Closed { concurrency, unit: ConcurrencyUnit::Sessions } if self.sessions >= concurrency => {
                return None;
            }
            Load::Closed { .. } => Nanos::ZERO,
        };
        Some(Ready { at, session: request.session, turn: 0 })
    }
}
