//! What passes between prefill and decode workers inside one instant (spec/engine.md 17).

use wavetank_model::{HandoffTimes, Nanos, RequestId, Result, ServeEvent, WorkerId};

use super::World;
use crate::engines::{Backlog, Flow};
use crate::handoff::Handoff;
use crate::routers::Needs;

impl World<'_, '_> {
    /// Prompts whose transfer ends now have come to their decode workers.
    pub(super) fn end_transfers(&mut self) -> Result<()> {
        while let Some(worker) = self.handoffs.as_mut().and_then(|handoffs| handoffs.receive(self.now)) {
            self.advance(worker, self.now)?;
            self.touched.push(worker);
        }
        Ok(())
    }

    /// Workers between passes do what waits for them, then prompts computed now get a decode worker.
    pub(super) fn hand_off(&mut self) -> Result<()> {
        if self.handoffs.is_none() {
            return Ok(());
        }
        let served = self.serve_commands(0)?;
        for request in std::mem::take(&mut self.held) {
            let Some(handoffs) = &mut self.handoffs else { break };
            let (worker, asks) = (handoffs.hold(request, self.now), handoffs.flow == Flow::SourceFirst);
            if asks {
                self.roster.given(worker);
            }
            self.advance(worker, self.now)?;
            self.touched.push(worker);
            if self.workers[worker.index()].boundary() <= self.now {
                if asks {
                    self.reserve_one(worker)?;
                }
                self.activate_all(worker)?;
            }
        }
        self.serve_commands(served).map(drop)
    }

    /// A decode worker that could start nothing makes room for all prompts that fit. Requests that arrived
    /// now ask a decode worker for room before they are computed; the passes of this instant have started
    /// (spec/engine.md 17.1 D4, 17.3 G2). Tells whether anything came of it.
    pub(super) fn ask_for_room(&mut self) -> Result<bool> {
        for worker in std::mem::take(&mut self.gated) {
            while self.reserve_one(worker)? {
                self.activate_all(worker)?;
                self.touched.push(worker);
            }
        }
        for request in std::mem::take(&mut self.homeless) {
            let Some(handoffs) = &mut self.handoffs else { break };
            let worker = handoffs.ask_for_room(request, self.now);
            self.roster.given(worker);
            self.advance(worker, self.now + Nanos(1))?;
            self.touched.push(worker);
            if self.workers[worker.index()].boundary() <= self.now {
                self.reserve_one(worker)?;
            }
        }
        let roused = std::mem::take(&mut self.roused);
        if self.handoffs.is_some() {
            self.touched.extend(roused);
        }
        Ok(!self.touched.is_empty() || !self.held.is_empty())
    }

    /// Serves the touched workers from `position` on that are between passes.
    pub(super) fn serve_commands(&mut self, mut position: usize) -> Result<usize> {
        while let Some(&worker) = self.touched.get(position) {
            self.advance(worker, self.now)?;
            if self.workers[worker.index()].boundary() <= self.now {
                self.obey(worker)?;
            }
            position += 1;
        }
        Ok(position)
    }

    /// A worker between passes releases and activates what it can. The end of a pass and every activation are
    /// an opportunity for one reservation, as in the reference (spec/engine.md 17.1, D4).
    pub(super) fn obey(&mut self, worker: WorkerId) -> Result<()> {
        let Some(handoffs) = &mut self.handoffs else { return Ok(()) };
        let commands = &mut handoffs.commands[worker.index()];
        commands.fresh = false;
        // A decode worker releases what it kept in vain, which makes room too.
        let freed = !commands.releases.is_empty() && self.roster.decodes(worker);
        for request in commands.releases.drain(..) {
            self.workers[worker.index()].release(request, self.now);
            self.roster.done(worker);
        }
        if std::mem::take(&mut commands.pass_ended) || freed {
            self.reserve_one(worker)?;
        }
        self.activate_all(worker)
    }

    /// Gives the first prompt that waits for room its room, if there is any. Tells whether there was.
    pub(super) fn reserve_one(&mut self, worker: WorkerId) -> Result<bool> {
        let Some(handoffs) = &mut self.handoffs else { return Ok(false) };
        let (engine, commands) = (&mut self.workers[worker.index()], &mut handoffs.commands[worker.index()]);
        let mut computable = None;
        let room = commands.reservations.front().and_then(|head| engine.reserve(&head.job()));
        if let Some(missing) = room {
            let handoff = commands.reservations.pop_front().expect("it was the first");
            computable = handoffs.reserved(handoff, missing, self.now);
            while handoffs.receive(self.now).is_some() {}
        }
        let waits = !handoffs.commands[worker.index()].reservations.is_empty();
        engine.hold_back(if waits { Backlog::Waiting } else { Backlog::Empty }, self.now);
        if let Some(request) = computable {
            self.compute_reserved(request)?;
        }
        Ok(room.is_some())
    }

    /// Room is reserved for the prompt of a request: now it finds a prefill worker.
    pub(super) fn compute_reserved(&mut self, id: RequestId) -> Result<()> {
        if self.router.needs() == Needs::Caches {
            self.show_caches()?;
        }
        let Some(handoffs) = &self.handoffs else { return Ok(()) };
        let request = handoffs.request(id).clone();
        self.route(id, &request)
    }

    /// Lets the prompts in that have come; what they leave behind may be released.
    pub(super) fn activate_all(&mut self, worker: WorkerId) -> Result<()> {
        while let Some(handoffs) = &mut self.handoffs {
            let Some(handoff) = handoffs.commands[worker.index()].activations.pop_front() else { break };
            let Handoff { id: request, from, to, held_at, reserved_at, sent_at, received_at, .. } = handoff;
            let at = self.now;
            self.workers[worker.index()].activate(request, at);
            let times = HandoffTimes { held_at, reserved_at, sent_at, received_at };
            self.sink.record(&ServeEvent::RequestHandedOff { request, from, to, times, at });
            let source = &mut handoffs.commands[from.index()];
            source.releases.push_back(request);
            source.fresh = true;
            self.touched.push(from);
            self.reserve_one(worker)?;
        }
        Ok(())
    }

    /// The end of a pass of a decode worker is an opportunity.
    pub(super) fn note_pass_end(&mut self, worker: WorkerId) {
        if let Some(handoffs) = &mut self.handoffs {
            let ends = self.roster.decodes(worker) && self.workers[worker.index()].boundary() == self.now;
            handoffs.commands[worker.index()].pass_ended = ends;
        }
    }
}
