//! How many requests run and wait on each worker, over simulated time.

use std::collections::{BTreeMap, btree_map};

use wavetank_model::{InFlight, Nanos, RequestId, ServeEvent, WorkerId, WorkerRole};

/// What one worker has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Load {
    pub(super) running: i64,
    pub(super) waiting: i64,
}

/// A worker's load from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) worker: WorkerId,
    pub(super) at: Nanos,
    pub(super) load: Load,
}

/// Follows the load of all workers. Changes are held until the worker has come past them: a pass tells of its
/// end before another request of the same pass is admitted.
#[derive(Default)]
pub(super) struct Loads {
    /// Workers below compute prompts only, where nothing else was told of them.
    prefill_workers: u32,
    /// What was told of workers.
    told: BTreeMap<WorkerId, WorkerRole>,
    workers: Vec<Worker>,
    requests: InFlight<Whereabouts>,
}

#[derive(Default)]
struct Worker {
    load: Load,
    to_come: BTreeMap<Nanos, Load>,
}

/// Where a request is, and what of its prompt is not computed.
#[derive(Clone, Copy)]
struct Whereabouts {
    place: Place,
    prompt: u32,
    missing: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Nowhere,
    Waiting(WorkerId),
    Running(WorkerId),
}

impl Loads {
    pub(super) fn new(prefill_workers: u32) -> Self {
        Self { prefill_workers, ..Self::default() }
    }

    /// What a worker does of a request.
    pub(super) fn role(&self, worker: WorkerId) -> WorkerRole {
        match (self.told.get(&worker), self.prefill_workers) {
            (Some(&role), _) => role,
            (None, 0) => WorkerRole::Aggregated,
            (None, prefill) if worker.0 < prefill => WorkerRole::Prefill,
            (None, _) => WorkerRole::Decode,
        }
    }

    /// Takes note of an event; `tell` hears what is settled by it.
    pub(super) fn record(&mut self, event: &ServeEvent<'_>, tell: &mut dyn FnMut(Change)) {
        match *event {
            ServeEvent::RequestArrived { request, details, .. } => {
                let prompt = details.prompt.tokens();
                let arrived = Whereabouts { place: Place::Nowhere, prompt, missing: prompt };
                self.requests.insert(request, arrived);
            }
            ServeEvent::RequestQueued { request, worker, at } => {
                self.settle(worker, at, tell);
                self.put(request, Place::Waiting(worker), at);
            }
            ServeEvent::RequestAdmitted { request, worker, at, reused_tokens } => {
                self.settle(worker, at, tell);
                self.put(request, Place::Running(worker), at);
                let whereabouts = self.whereabouts(request);
                whereabouts.missing = whereabouts.prompt.saturating_sub(reused_tokens);
            }
            ServeEvent::PromptComputed { request, worker, start, step, tokens } => {
                self.settle(worker, start, tell);
                let whereabouts = self.whereabouts(request);
                whereabouts.missing = whereabouts.missing.saturating_sub(tokens);
                if self.role(worker) == WorkerRole::Prefill && self.whereabouts(request).missing == 0 {
                    self.put(request, Place::Nowhere, start + step);
                }
            }
            ServeEvent::TokensEmitted { worker, start, .. } => self.settle(worker, start, tell),
            ServeEvent::RequestPreempted { request, worker, at } => {
                self.settle(worker, at, tell);
                self.put(request, Place::Waiting(worker), at);
            }
            ServeEvent::RequestHandedOff { request, to, at, .. } => self.put(request, Place::Running(to), at),
            ServeEvent::RequestCompleted { request, at, .. }
            | ServeEvent::RequestRejected { request, at, .. }
            | ServeEvent::RequestCancelled { request, at, .. } => {
                self.put(request, Place::Nowhere, at);
                self.requests.remove(request);
            }
            ServeEvent::WorkerChanged { worker, pool, .. } => drop(self.told.insert(worker, pool)),
            ServeEvent::RequestRouted { .. }
            | ServeEvent::PassesRan { .. }
            | ServeEvent::PoolScaled { .. }
            | ServeEvent::Tier(_) => {}
        }
    }

    /// Tells what is still held.
    pub(super) fn finish(&mut self, tell: &mut dyn FnMut(Change)) {
        for worker in (0..self.workers.len() as u32).map(WorkerId) {
            self.settle(worker, Nanos::MAX, tell);
        }
    }

    fn whereabouts(&mut self, id: RequestId) -> &mut Whereabouts {
        self.requests.value_mut(id).expect("events of a request come between its arrival and its end")
    }

    fn put(&mut self, id: RequestId, place: Place, at: Nanos) {
        let whereabouts = self.whereabouts(id);
        let before = std::mem::replace(&mut whereabouts.place, place);
        for (place, by) in [(before, -1), (place, 1)] {
            match place {
                Place::Nowhere => {}
                Place::Waiting(worker) => self.worker(worker).to_come.entry(at).or_default().waiting += by,
                Place::Running(worker) => self.worker(worker).to_come.entry(at).or_default().running += by,
            }
        }
    }

    fn worker(&mut self, worker: WorkerId) -> &mut Worker {
        if worker.index() >= self.workers.len() {
            self.workers.resize_with(worker.index() + 1, Worker::default);
        }
        &mut self.workers[worker.index()]
    }

    /// Nothing of a worker comes before `at` any more.
    fn settle(&mut self, worker: WorkerId, at: Nanos, tell: &mut dyn FnMut(Change)) {
        let own = self.worker(worker);
        while let Some(first) = own.to_come.first_entry().filter(|entry| *entry.key() < at) {
            let (then, by) = btree_map::OccupiedEntry::remove_entry(first);
            let load =
                Load { running: own.load.running + by.running, waiting: own.load.waiting + by.waiting };
            if load != own.load {
                own.load = load;
                tell(Change { worker, at: then, load });
            }
        }
    }
}
