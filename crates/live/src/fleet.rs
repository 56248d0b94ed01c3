//! Live workers behind a router: requests in, reports of passes out. A replay and a server drive it alike.

use std::collections::BTreeMap;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use wavetank_model::{Error, ErrorKind, Nanos, Request, RequestId, Result, ServeEvent, ServeSink, WorkerId};
use wavetank_sim::engines::{Job, Signal, Work};
use wavetank_sim::routers::{self, Needs, Placement, Router};
use wavetank_sim::{Plan, Provenance};

use crate::clock::Clock;
use crate::pass::Pass;
use crate::worker::{self, Desk, Done, Order, Report};

/// Workers and the router before them.
pub(crate) struct Fleet {
    pub(crate) clock: Clock,
    router: Box<dyn Router>,
    workers: Vec<Worker>,
    /// Requests that wait in the router, and since when.
    queued: BTreeMap<RequestId, (Job, Nanos)>,
    stop: Arc<AtomicBool>,
}

/// A live worker, from outside.
struct Worker {
    orders: Sender<Order>,
    thread: JoinHandle<Done>,
}

/// What all workers have done.
#[derive(Debug)]
pub(crate) struct Total {
    pub(crate) work: Vec<Work>,
    pub(crate) provenance: Option<Provenance>,
    pub(crate) gpus: u32,
}

impl Fleet {
    /// Starts the workers of `plan`, which tell `reports` what the router or others need. The clock starts
    /// when all are ready.
    pub(crate) fn start<R>(plan: &Plan, others: Needs, reports: &Sender<R>) -> Result<Self>
    where
        R: From<Report> + Send + 'static,
    {
        let (engine, config) = (&plan.engine, &plan.router_config);
        let fleet = routers::Fleet { workers: plan.num_workers, engine, config, seed: plan.seed };
        let router = routers::build(&plan.router_mode, &fleet)?;
        let shows_cache = others.max(router.needs()) == Needs::Caches;
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, built) = mpsc::channel();
        let hire = |worker| {
            let (orders, inbox) = mpsc::channel();
            let (config, stop) = (engine.clone(), Arc::clone(&stop));
            let desk = Desk { worker, config, shows_cache, orders: inbox, stop };
            let reports = reports.clone();
            // Who is told may have gone; then nobody wants to know.
            let tell = move |report: Report| drop(reports.send(report.into()));
            Ok(Worker { orders, thread: worker::start(desk, ready.clone(), tell)? })
        };
        let workers = (0..plan.num_workers).map(WorkerId).map(hire).collect::<Result<Vec<_>>>()?;
        drop(ready);
        built.iter().collect::<Result<()>>()?;
        let clock = Clock::start();
        workers.iter().for_each(|worker| worker.give(Order::Begin(clock)));
        Ok(Self { clock, router, workers, queued: BTreeMap::new(), stop })
    }

    /// A request is here: it goes to a worker, or waits in the router.
    pub(crate) fn route(&mut self, id: RequestId, request: &Request, sink: &mut ServeSink<'_>) {
        let (job, now) = (Job::of(id, request), self.clock.now());
        match self.router.arrive(id, request, now) {
            Some(placement) => self.dispatch(job, placement, None, sink),
            None => {
                self.queued.insert(id, (job, now));
                self.release_queued(sink);
            }
        }
    }

    /// A pass was heard of: everybody is told, first what changed in the cache.
    pub(crate) fn heard(&mut self, pass: &Pass, sink: &mut ServeSink<'_>) {
        let now = self.clock.now();
        for &change in &pass.changes {
            self.router.cache_changed(pass.worker, change);
        }
        pass.tell(now, sink);
        for signal in &pass.signals {
            match *signal {
                Signal::Prefilled(request) => self.router.prefilled(request, now),
                Signal::Ended(request) | Signal::Rejected(request) => self.router.ended(request, now),
                Signal::Held(_) => unreachable!("live workers hand nothing off"),
            }
            self.release_queued(sink);
        }
    }

    /// Lets go whom the router lets go.
    fn release_queued(&mut self, sink: &mut ServeSink<'_>) {
        while let Some(placement) = self.router.release(self.clock.now()) {
            let (job, since) = self.queued.remove(&placement.request).expect("it was queued");
            self.dispatch(job, placement, Some(since), sink);
        }
    }

    /// Nobody waits for a request any more, which was routed to `worker` or waits in the router. One on a
    /// worker is given up when that says so: it may end before.
    pub(crate) fn withdraw(
        &mut self,
        request: RequestId,
        worker: Option<WorkerId>,
        sink: &mut ServeSink<'_>,
    ) {
        match worker {
            Some(worker) => self.workers[worker.index()].give(Order::Drop(request)),
            None => {
                self.queued.remove(&request);
                self.withdrawn(request, None, sink);
            }
        }
    }

    /// A request was given up.
    pub(crate) fn withdrawn(
        &mut self,
        request: RequestId,
        worker: Option<WorkerId>,
        sink: &mut ServeSink<'_>,
    ) {
        let at = self.clock.now();
        self.router.withdrawn(request, at);
        sink.record(&ServeEvent::RequestCancelled { request, worker, at });
        self.release_queued(sink);
    }

    fn dispatch(
        &mut self,
        job: Job,
        placement: Placement,
        queued_since: Option<Nanos>,
        sink: &mut ServeSink<'_>,
    ) {
        let Placement { request, worker, overlap_tokens } = placement;
        let at = self.clock.now();
        sink.record(&ServeEvent::RequestRouted { request, worker, at, queued_since, overlap_tokens });
        self.workers[worker.index()].give(Order::Take(job));
    }

    /// An error if a worker is gone that should be there: whoever waits for it would wait for ever.
    pub(crate) fn check(&self) -> Result<()> {
        match self.workers.iter().position(|worker| worker.thread.is_finished()) {
            Some(worker) => Err(Error::new(ErrorKind::Stuck, format!("worker {worker} has died"))
                .hint("this is a defect of the simulator; please report the plan")),
            None => Ok(()),
        }
    }

    /// Ends the workers, in the middle of a pass if they are in one.
    pub(crate) fn end(mut self) -> Result<Total> {
        self.stop.store(true, Ordering::Relaxed);
        let dead = |_| Error::new(ErrorKind::Stuck, "a worker has died");
        let done = std::mem::take(&mut self.workers).into_iter().map(|Worker { orders, thread }| {
            drop(orders);
            thread.join().map_err(dead)
        });
        let done = done.collect::<Result<Vec<_>>>()?;
        Ok(Total {
            gpus: done.iter().map(|done| done.gpus).max().unwrap_or(0),
            work: done.iter().map(|done| done.work).collect(),
            provenance: done.into_iter().filter_map(|done| done.provenance).reduce(Add::add),
        })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Worker {
    fn give(&self, order: Order) {
        // A worker that has failed has said so; what it is told then is lost with it.
        let _ = self.orders.send(order);
    }
}
