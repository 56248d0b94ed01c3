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
    /// When the last session ended: the place it left is free since then.
    free_since: Nanos,
}

impl<'w> Arrivals<'w> {
    pub(crate) fn of(workload: &'w mut dyn Workload, load: Load) -> Result<Self> {
        let opening = workload.open()?;
        let (follow_ups, free_since) = (BinaryHeap::new(), Nanos::ZERO);
        Ok(Self { workload, load, opening, follow_ups, in_flight: 0, sessions: 0, free_since })
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
            None => {
                self.sessions -= 1;
                self.free_since = now;
            }
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
            Load::Closed { unit: ConcurrencyUnit::Sessions, .. } => self.free_since,
            Load::Closed { unit: ConcurrencyUnit::Requests, .. } => Nanos::ZERO,
        };
        Some(Ready { at, session: request.session, turn: 0 })
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::{Priority, Prompt};

    use super::*;

    /// Sessions of two turns with a pause of 10 between them; session `i` starts at `starts[i]`.
    struct TwoTurns {
        starts: Vec<u64>,
        opened: usize,
    }

    fn request(session: u32, turn: u32) -> Request {
        Request {
            session: SessionId(session),
            turn,
            prompt: Prompt::unique(u64::from(session), 1),
            output_tokens: 1,
            priority: Priority::default(),
            think: (turn == 0).then_some(Nanos(10)),
            labels: None,
        }
    }

    impl Workload for TwoTurns {
        fn open(&mut self) -> Result<Option<Opening>> {
            let Some(&start) = self.starts.get(self.opened) else { return Ok(None) };
            self.opened += 1;
            Ok(Some(Opening { at: Nanos(start), request: request(self.opened as u32 - 1, 0) }))
        }
        fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
            Ok(request(session.0, turn))
        }
        fn has_follow_ups(&self) -> bool {
            true
        }
        fn requests(&self) -> u64 {
            self.starts.len() as u64 * 2
        }
    }

    fn arrivals(workload: &mut TwoTurns, load: Load) -> Arrivals<'_> {
        Arrivals::of(workload, load).unwrap()
    }

    fn pop(arrivals: &mut Arrivals<'_>, now: u64) -> Option<(u64, u32, u32)> {
        let arrival = arrivals.pop(Nanos(now)).unwrap()?;
        Some((arrival.at.0, arrival.request.session.0, arrival.request.turn))
    }

    #[test]
    fn l5_a_turn_is_ready_after_the_pause_and_not_before() {
        let mut workload = TwoTurns { starts: vec![3], opened: 0 };
        let mut arrivals = arrivals(&mut workload, Load::Schedule);
        assert_eq!(pop(&mut arrivals, 2), None);
        assert_eq!(pop(&mut arrivals, 4), Some((3, 0, 0)), "waiting counts from the schedule");
        assert_eq!(arrivals.next_at(Nanos(4)), None, "nothing is ready while the turn is in flight");
        arrivals.ended(SessionId(0), 0, Some(Nanos(10)), Nanos(20));
        assert_eq!(arrivals.next_at(Nanos(20)), Some(Nanos(30)));
        assert_eq!(pop(&mut arrivals, 29), None);
        assert_eq!(pop(&mut arrivals, 30), Some((30, 0, 1)));
        arrivals.ended(SessionId(0), 1, None, Nanos(40));
        assert_eq!(arrivals.next_at(Nanos(40)), None);
    }

    #[test]
    fn ties_go_to_the_lower_session() {
        let mut workload = TwoTurns { starts: vec![0, 30], opened: 0 };
        let mut arrivals = arrivals(&mut workload, Load::Schedule);
        assert_eq!(pop(&mut arrivals, 0), Some((0, 0, 0)));
        arrivals.ended(SessionId(0), 0, Some(Nanos(10)), Nanos(20));
        assert_eq!(pop(&mut arrivals, 30), Some((30, 0, 1)));
        assert_eq!(pop(&mut arrivals, 30), Some((30, 1, 0)));
    }

    #[test]
    fn a_cap_on_requests_frees_the_place_while_a_session_thinks() {
        let mut workload = TwoTurns { starts: vec![5, 6], opened: 0 };
        let unit = ConcurrencyUnit::Requests;
        let mut arrivals = arrivals(&mut workload, Load::Closed { concurrency: 1, unit });
        assert_eq!(pop(&mut arrivals, 0), Some((0, 0, 0)), "start times are ignored");
        assert_eq!(pop(&mut arrivals, 0), None);
        arrivals.ended(SessionId(0), 0, Some(Nanos(10)), Nanos(20));
        assert_eq!(pop(&mut arrivals, 20), Some((20, 1, 0)));
    }

    #[test]
    fn a_cap_on_sessions_holds_the_place() {
        let mut workload = TwoTurns { starts: vec![5, 6], opened: 0 };
        let unit = ConcurrencyUnit::Sessions;
        let mut arrivals = arrivals(&mut workload, Load::Closed { concurrency: 1, unit });
        assert_eq!(pop(&mut arrivals, 0), Some((0, 0, 0)));
        arrivals.ended(SessionId(0), 0, Some(Nanos(10)), Nanos(20));
        assert_eq!(pop(&mut arrivals, 25), None);
        assert_eq!(pop(&mut arrivals, 31), Some((31, 0, 1)), "waiting counts from the dispatch");
        arrivals.ended(SessionId(0), 1, None, Nanos(40));
        assert_eq!(pop(&mut arrivals, 40), Some((40, 1, 0)));
    }
}
