//! What is in the caches of live workers, published as vLLM does it: over ZeroMQ, for routers and indexers
//! that follow real engines. `ledger` knows what is in blocks, `encode` writes events, `publisher` sends
//! them.

mod encode;
mod guard;
mod ledger;
mod plan;
mod publisher;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use wavetank_cache::Change;
use wavetank_model::{RequestId, Result, ServeEvent, Sink, WorkerId};
use wavetank_sim::Plan;
use wavetank_sim::routers::Needs;

pub use encode::Encoding;
pub use ledger::block_hash;
pub use plan::{Endpoint, KvEventsArgs, KvEventsPlan};
pub use publisher::{Counts, Endpoints};

use crate::mock::{Ask, Follow};
use encode::{Batch, Event};
use ledger::Ledger;
use publisher::{Limits, Publisher};

/// Publishes what changes in the caches of workers it follows, one batch a pass.
#[derive(Debug)]
pub struct KvEvents {
    ledger: Ledger,
    encoding: Encoding,
    workers: u32,
    counts: Arc<Counts>,
    /// Until the workers have ended.
    publisher: Option<Publisher>,
}

impl KvEvents {
    /// Listens for subscribers to the workers of `simulation`; tells where.
    pub fn start(plan: &KvEventsPlan, simulation: &Plan) -> Result<(Self, Endpoints)> {
        Self::within(Limits::default(), plan, simulation)
    }

    fn within(limits: Limits, plan: &KvEventsPlan, simulation: &Plan) -> Result<(Self, Endpoints)> {
        let workers = simulation.num_workers;
        let (publisher, endpoints) = Publisher::start(plan, workers, limits)?;
        let ledger = Ledger::new(workers, simulation.engine.block_size);
        let (counts, encoding) = (Arc::clone(publisher.counts()), plan.encoding);
        Ok((Self { ledger, encoding, workers, counts, publisher: Some(publisher) }, endpoints))
    }

    /// What was published and what was not, while it goes on.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    fn publish(&mut self, worker: WorkerId, events: &[Event]) {
        let Some(publisher) = &mut self.publisher else { return };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (rank, block_size) = (worker.0, self.ledger.block_size());
        let batch = Batch { at: since.as_secs_f64(), events, rank, block_size };
        publisher.publish(rank, batch.encode(self.encoding));
    }
}

impl Follow for KvEvents {
    fn needs(&self) -> Needs {
        Needs::Caches
    }

    fn asked(&mut self, request: RequestId, ask: &Ask) {
        self.ledger.asked(request, ask);
    }

    fn cache_changed(&mut self, worker: WorkerId, changes: &[Change]) {
        let events = self.ledger.changed(worker, changes);
        self.counts.unknown_blocks.store(self.ledger.unknown(), Ordering::Relaxed);
        if !events.is_empty() {
            self.publish(worker, &events);
        }
    }

    /// Workers that are gone have nothing: whoever routes to them must forget it.
    fn ended(&mut self) {
        (0..self.workers).for_each(|worker| self.publish(WorkerId(worker), &[Event::Cleared]));
        self.publisher.take().into_iter().for_each(Publisher::end);
    }
}

impl Sink<ServeEvent<'_>> for KvEvents {
    fn record(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::PassesRan { worker, .. } => self.ledger.passed(worker),
            ServeEvent::RequestCompleted { request, worker, .. }
            | ServeEvent::RequestRejected { request, worker, .. } => {
                self.ledger.ended(request, Some(worker));
            }
            ServeEvent::RequestCancelled { request, worker, .. } => self.ledger.ended(request, worker),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
