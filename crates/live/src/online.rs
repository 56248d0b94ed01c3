//! A workload replayed in real time: requests are sent when they are due, or in a closed loop, and what the
//! workers tell is seen as it comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use wavetank_model::{Nanos, RequestId, Result, ServeEvent, ServeSink, WorkerRole, Workload};
use wavetank_sim::engines::Signal;
use wavetank_sim::routers::Needs;
use wavetank_sim::{Arrivals, Load, Outcome, Plan};

use crate::clock::sharpen_timers;
use crate::fleet::{Fleet, Total};
use crate::pass::Pass;
use crate::punctuality::Punctuality;
use crate::worker::Report;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What was done.
    pub outcome: Outcome,
    /// How well the host kept up.
    pub punctuality: Punctuality,
}

/// Runs `plan` under `workload` in real time. Everything that happens goes to `sink`; raising `stop` ends the
/// run early, with what has happened so far reported.
pub fn run(
    plan: &Plan,
    workload: &mut dyn Workload,
    sink: &mut ServeSink<'_>,
    stop: &AtomicBool,
) -> Result<Ran> {
    sharpen_timers();
    let arrivals = Arrivals::of(workload, plan.load)?;
    let (tell, reports) = mpsc::channel();
    let fleet = Fleet::start(plan, Needs::Arrivals, &tell)?;
    let mut replay = Replay {
        fleet,
        arrivals,
        reports,
        is_scheduled: plan.load == Load::Schedule,
        arrived: 0,
        end: Nanos::ZERO,
        punctuality: Punctuality::default(),
    };
    let interrupted = replay.drive(sink, stop)?;
    let Total { work, provenance, gpus } = replay.fleet.end()?;
    let (gpus, roles) = (vec![gpus], vec![WorkerRole::Aggregated; work.len()]);
    let (ticks, tiers, end) = (None, Vec::new(), replay.end);
    let outcome = Outcome { interrupted, work, end, provenance, gpus, roles, ticks, tiers };
    Ok(Ran { outcome, punctuality: replay.punctuality })
}

struct Replay<'w> {
    fleet: Fleet,
    arrivals: Arrivals<'w>,
    reports: Receiver<Report>,
    is_scheduled: bool,
    arrived: u32,
    /// The end of the last pass.
    end: Nanos,
    punctuality: Punctuality,
}

impl Replay<'_> {
    /// Sends and hears until all is over. Tells whether it was stopped before.
    fn drive(&mut self, sink: &mut ServeSink<'_>, stop: &AtomicBool) -> Result<bool> {
        loop {
            self.send_due(sink)?;
            let next = self.arrivals.next_at(self.fleet.clock.now());
            if next.is_none() && self.arrivals.in_flight() == 0 {
                return Ok(false);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(true);
            }
            match self.reports.recv_timeout(self.fleet.clock.pause_until(next)) {
                Ok(Report::Passed(pass)) => self.hear(&pass, sink),
                Ok(Report::Dropped(_)) => unreachable!("a replay gives nothing up"),
                Ok(Report::Failed(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => self.fleet.check()?,
                Err(RecvTimeoutError::Disconnected) => unreachable!("the run keeps a way to report"),
            }
        }
    }

    /// Sends the requests that are due.
    fn send_due(&mut self, sink: &mut ServeSink<'_>) -> Result<()> {
        while let Some(arrival) = self.arrivals.pop(self.fleet.clock.now())? {
            let (id, request) = (RequestId(self.arrived), arrival.request);
            self.arrived += 1;
            sink.record(&ServeEvent::RequestArrived { request: id, at: arrival.at, details: &request });
            self.arrivals.entered(id, &request);
            self.fleet.route(id, &request, sink);
            if self.is_scheduled {
                self.punctuality.dispatched(self.fleet.clock.now().since(arrival.at));
            }
        }
        Ok(())
    }

    /// A pass is over.
    fn hear(&mut self, pass: &Pass, sink: &mut ServeSink<'_>) {
        self.punctuality.passed(pass, self.fleet.clock.now());
        self.end = self.end.max(pass.end);
        self.fleet.heard(pass, sink);
        let now = self.fleet.clock.now();
        for signal in &pass.signals {
            match *signal {
                Signal::Ended(request) => self.arrivals.served(request, now),
                Signal::Rejected(request) => self.arrivals.given_up(request, now),
                Signal::Prefilled(_) | Signal::Held(_) => {}
            }
        }
    }
}
