//! When requests arrive: the schedule of sessions and turns, or a closed loop (spec/replay.md 4).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use wavetank_model::{
    Dependencies, InFlight, Nanos, Opening, Request, RequestId, Result, SessionId, Workload,
};

use crate::{ConcurrencyUnit, Load};

/// A request and the time its waiting counts from.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// That time.
    pub at: Nanos,
    /// What is asked.
    pub request: Request,
}

/// A turn that becomes ready; the order is that of the fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    at: Nanos,
    session: SessionId,
    turn: u32,
}

/// What follows a request when it leaves.
struct Turn {
    session: SessionId,
    turn: u32,
    think: Option<Nanos>,
}

/// The requests still to come.
pub struct Arrivals<'w> {
    workload: &'w mut dyn Workload,
    load: Load,
    opening: Option<Opening>,
    follow_ups: BinaryHeap<Reverse<Ready>>,
    waits: Option<Waits>,
    /// Requests that have entered.
    turns: InFlight<Turn>,
    in_flight: u32,
    sessions: u32,
    /// When the last session ended: the place it left is free since then.
    free_since: Nanos,
}

impl<'w> Arrivals<'w> {
    /// All requests of `workload`, sent as `load` says.
    pub fn of(workload: &'w mut dyn Workload, load: Load) -> Result<Self> {
        let opening = workload.open()?;
        let waits = workload.dependencies().map(Waits::of);
        let (follow_ups, turns, free_since) = (BinaryHeap::new(), InFlight::default(), Nanos::ZERO);
        Ok(Self { workload, load, opening, follow_ups, waits, turns, in_flight: 0, sessions: 0, free_since })
    }

    /// Whether a request that ends can cause another to arrive.
    pub(crate) fn depend_on_completions(&self) -> bool {
        self.load != Load::Schedule || self.workload.has_follow_ups()
    }

    /// When the next request arrives if nothing completes before; not before `now`.
    pub fn next_at(&self, now: Nanos) -> Option<Nanos> {
        Some(self.next_ready()?.at.max(now))
    }

    /// The next request that is ready at `now`.
    pub fn pop(&mut self, now: Nanos) -> Result<Option<Arrival>> {
        let Some(ready) = self.next_ready().filter(|ready| ready.at <= now) else { return Ok(None) };
        self.sessions += u32::from(ready.turn == 0);
        let request = match self.opening.take_if(|opening| opening.request.session == ready.session) {
            Some(opening) => {
                self.opening = self.workload.open()?;
                opening.request
            }
            None => {
                match &mut self.waits {
                    Some(waits) if ready.turn == 0 => waits.released.pop(),
                    _ => self.follow_ups.pop(),
                };
                self.workload.follow_up(ready.session, ready.turn)?
            }
        };
        self.in_flight += 1;
        let at = if self.load == Load::Schedule { ready.at } else { now };
        Ok(Some(Arrival { at, request }))
    }

    /// A request that is ready is called `id` from now on.
    pub fn entered(&mut self, id: RequestId, request: &Request) {
        let turn = Turn { session: request.session, turn: request.turn, think: request.think };
        self.turns.insert(id, turn);
    }

    /// A request that had entered was served: what follows it may come.
    pub fn served(&mut self, id: RequestId, now: Nanos) {
        let Turn { session, turn, think } = self.leave(id);
        self.ended(session, turn, think, now);
    }

    /// A request that had entered was given up; what follows it may come all the same.
    pub fn given_up(&mut self, id: RequestId, now: Nanos) {
        let Turn { session, turn, think } = self.leave(id);
        self.workload.rejected(session, turn);
        self.ended(session, turn, think, now);
    }

    fn leave(&mut self, id: RequestId) -> Turn {
        self.turns.remove(id).expect("a request that leaves has entered")
    }

    /// Requests that came and have not left.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// A turn ended at `now`; `think` leads to the next one.
    fn ended(&mut self, session: SessionId, turn: u32, think: Option<Nanos>, now: Nanos) {
        self.in_flight -= 1;
        match think {
            Some(pause) => self.follow_ups.push(Reverse(Ready { at: now + pause, session, turn: turn + 1 })),
            None => {
                self.sessions -= 1;
                self.free_since = now;
                if let Some(waits) = &mut self.waits {
                    waits.ended(session, now);
                }
            }
        }
    }

    fn next_ready(&self) -> Option<Ready> {
        let follow_up = self.follow_ups.peek().map(|&Reverse(ready)| ready);
        let (has_room, has_place) = match self.load {
            Load::Schedule => (true, true),
            Load::Closed { concurrency, unit: ConcurrencyUnit::Requests } => {
                (self.in_flight < concurrency, true)
            }
            Load::Closed { concurrency, unit: ConcurrencyUnit::Sessions } => {
                (true, self.sessions < concurrency)
            }
        };
        let released = self.waits.as_ref().and_then(|waits| waits.released.peek());
        let sessions = [self.next_opening(), released.map(|&Reverse(ready)| ready)];
        let sessions = sessions.into_iter().flatten().filter(|_| has_place);
        sessions.chain(follow_up).min().filter(|_| has_room)
    }

    fn next_opening(&self) -> Option<Ready> {
        let Opening { at, request } = self.opening.as_ref()?;
        let at = match self.load {
            Load::Schedule => *at,
            Load::Closed { unit: ConcurrencyUnit::Sessions, .. } => self.free_since,
            Load::Closed { unit: ConcurrencyUnit::Requests, .. } => Nanos::ZERO,
        };
        Some(Ready { at, session: request.session, turn: 0 })
    }
}

/// Sessions that start when others have ended.
struct Waits {
    graph: Arc<Dependencies>,
    /// For how many each one still waits.
    left: Vec<u32>,
    /// Those that wait for nobody any more, and when they are ready.
    released: BinaryHeap<Reverse<Ready>>,
}

impl Waits {
    fn of(graph: Arc<Dependencies>) -> Self {
        Self { left: graph.requirements().to_vec(), graph, released: BinaryHeap::new() }
    }

    fn ended(&mut self, session: SessionId, now: Nanos) {
        for &waiting in self.graph.waiting_for(session) {
            let left = &mut self.left[waiting.index()];
            *left -= 1;
            if *left == 0 {
                let at = now + self.graph.pause(waiting);
                self.released.push(Reverse(Ready { at, session: waiting, turn: 0 }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::{Priority, Prompt, Wait};

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

    /// 0 starts, 1 and 2 wait for it, 3 waits for both; 4 starts too. Pauses of 5.
    struct Diamond {
        opened: usize,
        rejected: Vec<(u32, u32)>,
    }

    impl Workload for Diamond {
        fn open(&mut self) -> Result<Option<Opening>> {
            let Some(&session) = [0, 4].get(self.opened) else { return Ok(None) };
            self.opened += 1;
            let request = Request { think: None, ..request(session, 0) };
            Ok(Some(Opening { at: Nanos(u64::from(session)), request }))
        }
        fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
            Ok(Request { think: None, ..request(session.0, turn) })
        }
        fn has_follow_ups(&self) -> bool {
            true
        }
        fn requests(&self) -> u64 {
            5
        }
        fn dependencies(&self) -> Option<Arc<Dependencies>> {
            let pairs = [(1, 0), (2, 0), (3, 1), (3, 2)].map(|pair| (SessionId(pair.0), SessionId(pair.1)));
            let waits = pairs.map(|(session, after)| Wait { session, after });
            Some(Arc::new(Dependencies::of(vec![Nanos(5); 5], &waits).unwrap()))
        }
        fn rejected(&mut self, session: SessionId, turn: u32) {
            self.rejected.push((session.0, turn));
        }
    }

    fn diamond() -> Diamond {
        Diamond { opened: 0, rejected: Vec::new() }
    }

    fn end(arrivals: &mut Arrivals<'_>, session: u32, now: u64) {
        arrivals.ended(SessionId(session), 0, None, Nanos(now));
    }

    /// Broken by: a session released by the first of those it waits for, or ready without its pause.
    #[test]
    fn a_session_starts_after_the_last_of_those_it_waits_for() {
        let mut workload = diamond();
        let mut arrivals = Arrivals::of(&mut workload, Load::Schedule).unwrap();
        assert_eq!(pop(&mut arrivals, 4), Some((0, 0, 0)));
        assert_eq!(pop(&mut arrivals, 4), Some((4, 4, 0)));
        assert_eq!(arrivals.next_at(Nanos(4)), None);
        end(&mut arrivals, 0, 10);
        assert_eq!(arrivals.next_at(Nanos(10)), Some(Nanos(15)));
        assert_eq!(pop(&mut arrivals, 14), None);
        assert_eq!([pop(&mut arrivals, 15), pop(&mut arrivals, 15)], [Some((15, 1, 0)), Some((15, 2, 0))]);
        end(&mut arrivals, 2, 20);
        assert_eq!(arrivals.next_at(Nanos(20)), None, "it waits for the other one too");
        arrivals.entered(RequestId(1), &Request { think: None, ..request(1, 0) });
        arrivals.given_up(RequestId(1), Nanos(30));
        assert_eq!(pop(&mut arrivals, 35), Some((35, 3, 0)), "what is given up has ended too");
        end(&mut arrivals, 3, 40);
        end(&mut arrivals, 4, 41);
        assert_eq!(arrivals.next_at(Nanos(41)), None);
        assert_eq!(workload.rejected, [(1, 0)]);
    }

    /// Broken by: a session that was released taking a place that there is not.
    #[test]
    fn caps_hold_for_sessions_that_were_released() {
        for unit in [ConcurrencyUnit::Requests, ConcurrencyUnit::Sessions] {
            let mut workload = diamond();
            let load = Load::Closed { concurrency: 1, unit };
            let mut arrivals = Arrivals::of(&mut workload, load).unwrap();
            assert_eq!(pop(&mut arrivals, 0), Some((0, 0, 0)));
            assert_eq!(pop(&mut arrivals, 0), None);
            end(&mut arrivals, 0, 10);
            assert_eq!(pop(&mut arrivals, 10), Some((10, 4, 0)), "while the others pause");
            assert_eq!(pop(&mut arrivals, 20), None);
            end(&mut arrivals, 4, 20);
            assert_eq!(pop(&mut arrivals, 20), Some((20, 1, 0)));
            assert_eq!(arrivals.next_at(Nanos(20)), None);
            end(&mut arrivals, 1, 25);
            assert_eq!(pop(&mut arrivals, 25), Some((25, 2, 0)));
            end(&mut arrivals, 2, 30);
            assert_eq!((pop(&mut arrivals, 34), pop(&mut arrivals, 36)), (None, Some((36, 3, 0))));
        }
    }
}
