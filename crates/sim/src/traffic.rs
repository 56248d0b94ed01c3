//! What is asked and served between two looks of a scaling policy, counted from events.
//!
//! Workers tell of a pass before it has ended: what happens after the look is kept for the next one.

use std::cell::RefCell;
use std::rc::Rc;

use wavetank_model::{InFlight, Nanos, RequestId, ServeEvent, ServeSink, Sink};

use crate::snapshot::Traffic;

/// Passes events on and lets a meter see them.
pub(crate) struct Tap<'r, 's> {
    pub(crate) sink: &'r mut ServeSink<'s>,
    pub(crate) meter: Rc<RefCell<Meter>>,
}

impl Sink<ServeEvent<'_>> for Tap<'_, '_> {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.meter.borrow_mut().see(event);
        self.sink.record(event);
    }
}

/// Counts what is asked and served.
#[derive(Default)]
pub(crate) struct Meter {
    in_flight: InFlight<Progress>,
    since: Nanos,
    traffic: Traffic,
    /// What is known and may not have happened yet.
    facts: Vec<(Nanos, Fact)>,
}

struct Progress {
    arrival: Nanos,
    input_tokens: u32,
    admitted: bool,
    tokens: u32,
    first_token: Nanos,
    last_token: Nanos,
}

#[derive(Clone, Copy)]
enum Fact {
    FirstToken { ttft_ms: f64 },
    Completed { input_tokens: u32, output_tokens: u32, itl_ms: Option<f64> },
}

impl Meter {
    /// What happened up to `now` and after the last call.
    pub(crate) fn take(&mut self, now: Nanos) -> Traffic {
        let mut traffic = std::mem::take(&mut self.traffic);
        traffic.duration = now - std::mem::replace(&mut self.since, now);
        for (_, fact) in self.facts.extract_if(.., |(at, _)| *at <= now) {
            match fact {
                Fact::FirstToken { ttft_ms } => traffic.ttft_ms.add(ttft_ms),
                Fact::Completed { input_tokens, output_tokens, itl_ms } => {
                    traffic.input_tokens.add(f64::from(input_tokens));
                    traffic.output_tokens.add(f64::from(output_tokens));
                    itl_ms.into_iter().for_each(|ms| traffic.itl_ms.add(ms));
                }
            }
        }
        traffic
    }

    fn see(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::RequestArrived { request, at, details } => {
                let input_tokens = details.prompt.tokens();
                self.traffic.offered_tokens.add(f64::from(input_tokens));
                let (first_token, last_token) = (at, at);
                let (admitted, tokens) = (false, 0);
                let progress =
                    Progress { arrival: at, input_tokens, admitted, tokens, first_token, last_token };
                self.in_flight.insert(request, progress);
            }
            ServeEvent::RequestAdmitted { request, reused_tokens, .. } => {
                if !std::mem::replace(&mut self.progress(request).admitted, true) {
                    self.traffic.reused_tokens.add(f64::from(reused_tokens));
                }
            }
            ServeEvent::TokensEmitted { start, steps, requests, .. } => self.emitted(start, steps, requests),
            ServeEvent::RequestCompleted { request, at, .. } => self.completed(request, at),
            ServeEvent::RequestRejected { request, .. } | ServeEvent::RequestCancelled { request, .. } => {
                self.in_flight.remove(request);
            }
            ServeEvent::RequestRouted { .. }
            | ServeEvent::RequestHandedOff { .. }
            | ServeEvent::RequestQueued { .. }
            | ServeEvent::RequestPreempted { .. }
            | ServeEvent::PromptComputed { .. }
            | ServeEvent::PassesRan { .. }
            | ServeEvent::WorkerChanged { .. }
            | ServeEvent::PoolScaled { .. }
            | ServeEvent::Tier(_) => {}
        }
    }

    fn emitted(&mut self, start: Nanos, steps: &[Nanos], requests: &[RequestId]) {
        let (first, last) = (start + steps[0], start + steps.iter().copied().sum());
        for &request in requests {
            let progress = self.progress(request);
            progress.last_token = last;
            let before = progress.tokens;
            progress.tokens += steps.len() as u32;
            if before == 0 {
                progress.first_token = first;
                let ttft_ms = first.since(progress.arrival).as_ms();
                self.facts.push((first, Fact::FirstToken { ttft_ms }));
            }
        }
    }

    fn completed(&mut self, request: RequestId, at: Nanos) {
        let progress = self.in_flight.remove(request).expect("a request completes once");
        let Progress { input_tokens, tokens, first_token, last_token, .. } = progress;
        let gaps = tokens.saturating_sub(1);
        let itl_ms = (gaps > 0).then(|| (last_token - first_token).as_ms() / f64::from(gaps));
        self.facts.push((at, Fact::Completed { input_tokens, output_tokens: tokens, itl_ms }));
    }

    fn progress(&mut self, request: RequestId) -> &mut Progress {
        self.in_flight.value_mut(request).expect("events of a request come between its arrival and its end")
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::{Priority, Prompt, Request, SessionId, WorkerId};

    use super::*;

    /// Broken by: a pass in flight that counts before it has ended, or twice.
    #[test]
    fn what_has_not_happened_counts_at_the_next_look() {
        let mut meter = Meter::default();
        let details = Request {
            session: SessionId(0),
            turn: 0,
            prompt: Prompt::unique(0, 40),
            output_tokens: 3,
            priority: Priority::default(),
            think: None,
            labels: None,
        };
        let (request, worker, ms) = (RequestId(0), WorkerId(0), |ms: u64| Nanos(ms * 1_000_000));
        meter.see(&ServeEvent::RequestArrived { request, at: ms(1), details: &details });
        meter.see(&ServeEvent::RequestAdmitted { request, worker, at: ms(2), reused_tokens: 16 });
        let (start, steps) = (ms(2), &[ms(4), ms(5), ms(7)]);
        meter.see(&ServeEvent::TokensEmitted { worker, start, steps, requests: &[request] });
        meter.see(&ServeEvent::RequestCompleted { request, worker, at: ms(18) });
        let first = meter.take(ms(10));
        assert_eq!((first.offered(), first.duration), (1, ms(10)));
        assert_eq!((first.ttft_ms.value(), first.reused_tokens.value()), (Some(5.0), Some(16.0)));
        assert_eq!((first.output_tokens.value(), first.itl_ms.value()), (None, None));
        let second = meter.take(ms(20));
        assert_eq!((second.offered(), second.duration, second.ttft_ms.samples), (0, ms(10), 0));
        assert_eq!((second.input_tokens.value(), second.output_tokens.value()), (Some(40.0), Some(3.0)));
        assert_eq!(second.itl_ms.value(), Some(6.0));
        assert_eq!(meter.take(ms(20)), Traffic::default());
        assert_eq!(first.and(second).output_tokens.value(), Some(3.0));
    }
}
