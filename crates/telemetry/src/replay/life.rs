//! What a simulated request went through, from its arrival to its end, phase after phase.

use wavetank_model::{
    HandoffTimes, InFlight, Nanos, RejectReason, Request, RequestId, ServeEvent, TierEvent, WorkerId,
};

/// A request that ended.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) id: RequestId,
    pub(super) session: String,
    pub(super) turn: u32,
    pub(super) arrival: Nanos,
    pub(super) end: Nanos,
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: u32,
    pub(super) first_token: Option<Nanos>,
    /// When it was first admitted, where, and what of its prompt was there.
    pub(super) admission: Option<Admission>,
    pub(super) preemptions: u32,
    /// They follow each other without a gap, but for a handoff that waited for room before.
    pub(super) phases: Vec<Phase>,
    /// What came from tiers, in order; each is within a phase.
    pub(super) loads: Vec<Load>,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    pub(super) at: Nanos,
    pub(super) worker: WorkerId,
    pub(super) reused_tokens: u32,
}

impl Load {
    /// Whether it began in a phase and took time.
    pub(super) fn is_within(&self, phase: &Phase) -> bool {
        let began = (phase.start..phase.end).contains(&self.asked);
        began && self.at > self.asked && phase.worker == Some(self.worker)
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    Completed,
    Rejected(RejectReason),
    /// The one who asked went away.
    Cancelled,
    /// The run was over before.
    Unfinished,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) kind: Kind,
    pub(super) worker: Option<WorkerId>,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// Prompt tokens computed, or tokens emitted.
    pub(super) tokens: u32,
}

/// KV that came from tiers.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) worker: WorkerId,
    pub(super) asked: Nanos,
    pub(super) at: Nanos,
    pub(super) tokens: u32,
    /// `cpu=512 disk=64`.
    pub(super) by_tier: String,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Waiting for a worker, or on it, for the first time or after a preemption.
    Queue,
    /// From admission to the first token, or to the whole prompt on a prefill worker.
    Prefill,
    /// From there to the decode worker.
    Handoff { to: WorkerId, times: HandoffTimes },
    /// From the first token, or from the arrival on the decode worker, to the last.
    Decode,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Prefill => "prefill",
            Self::Handoff { .. } => "handoff",
            Self::Decode => "decode",
        }
    }
}

/// All requests in flight.
#[derive(Default)]
pub(super) struct Lives {
    in_flight: InFlight<Life>,
    tiers: Vec<String>,
}

impl Lives {
    /// Says what tiers are called.
    pub(super) fn name(&mut self, tiers: &[String]) {
        self.tiers = tiers.to_vec();
    }

    fn loaded(&mut self, id: RequestId, load: Load, tokens: &[u32]) {
        let named = self.tiers.iter().zip(tokens).filter(|(_, tokens)| **tokens > 0);
        let by_tier: Vec<String> = named.map(|(name, tokens)| format!("{name}={tokens}")).collect();
        let load = Load { tokens: tokens.iter().sum(), by_tier: by_tier.join(" "), ..load };
        self.life(id).loads.push(load);
    }

    /// Takes note of an event; gives the request that ended with it.
    pub(super) fn record(&mut self, event: &ServeEvent<'_>) -> Option<Life> {
        match *event {
            ServeEvent::RequestArrived { request, at, details } => {
                self.in_flight.insert(request, born(request, at, details));
            }
            ServeEvent::RequestAdmitted { request, worker, at, reused_tokens } => {
                let life = self.life(request);
                life.begin(Kind::Prefill, Some(worker), at);
                life.admission.get_or_insert(Admission { at, worker, reused_tokens });
            }
            ServeEvent::PromptComputed { request, tokens, .. } => {
                self.life(request).current().tokens += tokens;
            }
            ServeEvent::TokensEmitted { worker, start, steps, requests } => {
                let first = start + steps[0];
                for &request in requests {
                    self.life(request).emit(worker, first, steps.len() as u32);
                }
            }
            ServeEvent::RequestPreempted { request, worker, at } => {
                let life = self.life(request);
                life.preemptions += 1;
                life.begin(Kind::Queue, Some(worker), at);
            }
            ServeEvent::RequestHandedOff { request, from, to, times, at } => {
                let life = self.life(request);
                life.begin(Kind::Handoff { to, times }, Some(from), times.held_at);
                life.begin(Kind::Decode, Some(to), at);
            }
            ServeEvent::RequestCompleted { request, at, .. } => {
                return self.end(request, at, Fate::Completed);
            }
            ServeEvent::RequestRejected { request, at, reason, .. } => {
                return self.end(request, at, Fate::Rejected(reason));
            }
            ServeEvent::RequestCancelled { request, worker, at } => {
                let current = self.life(request).current();
                current.worker = current.worker.or(worker);
                return self.end(request, at, Fate::Cancelled);
            }
            ServeEvent::Tier(TierEvent::Loaded { request, worker, tokens, asked, at }) => {
                let load = Load { worker, asked, at, tokens: 0, by_tier: String::new() };
                self.loaded(request, load, tokens);
            }
            ServeEvent::RequestRouted { .. }
            | ServeEvent::RequestQueued { .. }
            | ServeEvent::PassesRan { .. }
            | ServeEvent::WorkerChanged { .. }
            | ServeEvent::PoolScaled { .. }
            | ServeEvent::Tier(_) => {}
        }
        None
    }

    /// Those that are in flight at the end.
    pub(super) fn rest(&mut self, end: Nanos) -> Vec<Life> {
        self.in_flight.drain().map(|(_, life)| life.ended(end, Fate::Unfinished)).collect()
    }

    fn life(&mut self, id: RequestId) -> &mut Life {
        self.in_flight.value_mut(id).expect("events of a request come between its arrival and its end")
    }

    fn end(&mut self, id: RequestId, at: Nanos, fate: Fate) -> Option<Life> {
        self.in_flight.remove(id).map(|life| life.ended(at, fate))
    }
}

fn born(id: RequestId, at: Nanos, request: &Request) -> Life {
    let labels = request.labels.as_deref();
    Life {
        id,
        session: labels.map_or_else(|| format!("session_{}", request.session.0), |l| l.session.clone()),
        turn: request.turn,
        arrival: at,
        end: at,
        prompt_tokens: request.prompt.tokens(),
        output_tokens: 0,
        first_token: None,
        admission: None,
        preemptions: 0,
        phases: vec![Phase { kind: Kind::Queue, worker: None, start: at, end: at, tokens: 0 }],
        loads: Vec::new(),
        fate: Fate::Unfinished,
    }
}

impl Life {
    fn current(&mut self) -> &mut Phase {
        self.phases.last_mut().expect("there is one from the arrival on")
    }

    /// Ends the phase that is and begins another. Where a request waits is known when it is taken there.
    fn begin(&mut self, kind: Kind, worker: Option<WorkerId>, at: Nanos) {
        let current = self.current();
        current.end = at.max(current.start);
        current.worker = current.worker.or(worker);
        let start = current.end;
        self.phases.push(Phase { kind, worker, start, end: start, tokens: 0 });
    }

    fn emit(&mut self, worker: WorkerId, first: Nanos, tokens: u32) {
        self.output_tokens += tokens;
        self.first_token.get_or_insert(first);
        if matches!(self.current().kind, Kind::Prefill) {
            self.begin(Kind::Decode, Some(worker), first);
        }
        self.current().tokens += tokens;
    }

    fn ended(mut self, at: Nanos, fate: Fate) -> Self {
        let current = self.current();
        current.end = at.max(current.start);
        self.end = current.end.max(self.arrival);
        self.fate = fate;
        self
    }
}
