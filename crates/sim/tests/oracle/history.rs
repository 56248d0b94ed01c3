//! What happened to each request, and how the simulator's events are turned into it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use wavetank_model::{RejectReason, RequestId, ServeEvent, Sink};

use crate::case::Case;

/// How a request left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Rejected(RejectReason),
}

/// All facts about one request. Times are nanoseconds; the second field of a tuple is the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Position in the order of arrival.
    pub(crate) number: u32,
    pub(crate) arrived: u64,
    /// With the reused tokens.
    pub(crate) admitted: Vec<(u64, u32, u32)>,
    pub(crate) preempted: Vec<(u64, u32)>,
    pub(crate) tokens: Vec<u64>,
    /// Exactly one.
    pub(crate) ends: Vec<(u64, u32, End)>,
}

/// By session and turn.
pub(crate) type Histories = BTreeMap<(u32, u32), History>;

/// Listens to a simulation.
#[derive(Default)]
struct Recorder {
    names: Vec<(u32, u32)>,
    histories: Histories,
    /// The time of the last event of each request: they come in order.
    last: Vec<u64>,
}

impl Recorder {
    fn of(&mut self, request: RequestId, at: u64) -> &mut History {
        let last = &mut self.last[request.index()];
        assert!(*last <= at, "an event of request {request:?} at {at} after one at {last}");
        *last = at;
        self.histories.get_mut(&self.names[request.index()]).expect("it arrived")
    }
}

impl Sink<ServeEvent<'_>> for Recorder {
    fn record(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::RequestArrived { request, at, details } => {
                assert_eq!(request.index(), self.names.len(), "requests are numbered as they arrive");
                self.names.push((details.session.0, details.turn));
                self.last.push(at.0);
                let history = History { number: request.0, arrived: at.0, ..History::default() };
                let before = self.histories.insert((details.session.0, details.turn), history);
                assert!(before.is_none(), "a turn is sent once");
            }
            ServeEvent::RequestAdmitted { request, worker, at, reused_tokens } => {
                self.of(request, at.0).admitted.push((at.0, worker.0, reused_tokens));
            }
            ServeEvent::RequestRouted { .. }
            | ServeEvent::RequestQueued { .. }
            | ServeEvent::PromptComputed { .. }
            | ServeEvent::PassesRan { .. }
            | ServeEvent::Tier(_)
            | ServeEvent::RequestHandedOff { .. } => {}
            ServeEvent::RequestPreempted { request, worker, at } => {
                self.of(request, at.0).preempted.push((at.0, worker.0));
            }
            ServeEvent::TokensEmitted { start, steps, requests, .. } => {
                let mut at = start;
                for &step in steps {
                    at += step;
                    for &request in requests {
                        self.of(request, at.0).tokens.push(at.0);
                    }
                }
            }
            ServeEvent::RequestCompleted { request, worker, at } => {
                self.of(request, at.0).ends.push((at.0, worker.0, End::Completed));
            }
            ServeEvent::RequestRejected { request, worker, at, reason } => {
                self.of(request, at.0).ends.push((at.0, worker.0, End::Rejected(reason)));
            }
            ServeEvent::RequestCancelled { request, .. } => panic!("{request:?}: nobody goes away in a run"),
            ServeEvent::WorkerChanged { .. } | ServeEvent::PoolScaled { .. } => {
                panic!("the fleet stays as it is")
            }
        }
    }
}

/// What the simulator says happens to every request of `case`.
pub(crate) fn simulated(case: &Case) -> Histories {
    let mut recorder = Recorder::default();
    let mut workload = case.workload();
    let outcome = wavetank_sim::run(&case.plan(), &mut workload, &mut recorder, &AtomicBool::new(false));
    assert!(!outcome.expect("the case is legal").interrupted);
    recorder.histories
}
