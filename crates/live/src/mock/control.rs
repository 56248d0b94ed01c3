//! The thread between those who ask and the workers: it routes what is asked and hands out what comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};

use wavetank_cache::Change;
use wavetank_model::{
    Error, ErrorKind, InFlight, Priority, Prompt, Request, RequestId, Result, ServeEvent, SessionId, Sink,
    WorkerId,
};
use wavetank_sim::Plan;
use wavetank_sim::routers::Needs;

use super::answer::{Answer, End, Progress};
use crate::clock::sharpen_timers;
use crate::fleet::Fleet;
use crate::worker::Report;

/// What is asked of the workers.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What is sent, in blocks.
    pub prompt: Prompt,
    /// The same in tokens, and after them those that will be answered.
    pub tokens: Arc<[u32]>,
    /// How many tokens are answered.
    pub output_tokens: u32,
    /// Why the answer ends with them.
    pub finish: Finish,
    /// How a router may order it.
    pub priority: Priority,
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Everything is said.
    Stop,
    /// No more tokens were wanted.
    Length,
}

/// Whoever follows what live workers do; told by the control thread, so it must not wait for anything.
pub trait Follow: for<'e> Sink<ServeEvent<'e>> + Send {
    /// What it must be told beside events.
    fn needs(&self) -> Needs {
        Needs::Arrivals
    }

    /// A request was handed in; its arrival is the next event.
    fn asked(&mut self, _request: RequestId, _ask: &Ask) {}

    /// The cache of a worker changed.
    fn cache_changed(&mut self, _worker: WorkerId, _changes: &[Change]) {}

    /// The workers have ended; nothing more is told.
    fn ended(&mut self) {}
}

/// What the control is told.
#[derive(Debug)]
pub(super) enum Word {
    /// By a worker.
    Report(Report),
    /// By someone who asks.
    Asked(RequestId, Ask, Arc<Progress>),
    /// By someone who does not want an answer any more.
    Gone(RequestId),
    /// To end.
    Stop,
}

impl From<Report> for Word {
    fn from(report: Report) -> Self {
        Self::Report(report)
    }
}

/// Where requests are handed in, from any thread.
#[derive(Clone, Debug)]
pub struct Desk {
    words: Sender<Word>,
    next: Arc<AtomicU32>,
}

impl Desk {
    /// Hands in a request.
    pub fn ask(&self, ask: Ask) -> Answer {
        let request = RequestId(self.next.fetch_add(1, Ordering::Relaxed));
        let progress = Arc::new(Progress::default());
        if self.words.send(Word::Asked(request, ask, Arc::clone(&progress))).is_err() {
            progress.ended(End::Stopped);
        }
        Answer::new(request, progress, self.words.clone())
    }
}

/// The workers of a plan, at the service of whoever asks.
#[derive(Debug)]
pub struct Control {
    words: Sender<Word>,
    thread: JoinHandle<Result<()>>,
}

impl Control {
    /// Starts the workers; requests are handed in at the desk.
    pub fn start(plan: &Plan, followers: Vec<Box<dyn Follow>>) -> Result<(Self, Desk)> {
        let (words, inbox) = mpsc::channel();
        let (ready, readiness) = mpsc::channel();
        let (plan, reports) = (plan.clone(), words.clone());
        let serve = move || {
            sharpen_timers();
            let needs = followers.iter().map(|follower| follower.needs()).max().unwrap_or(Needs::Arrivals);
            let started = Fleet::start(&plan, needs, &reports);
            let fleet = started.map_err(|error| drop(ready.send(error)));
            drop(ready);
            let Ok(fleet) = fleet else { return Ok(()) };
            Counter { fleet, inbox, ears: Ears { open: InFlight::default(), followers } }.run()
        };
        let thread = thread::Builder::new().name("control".to_owned()).spawn(serve);
        let thread = thread.map_err(|error| Error::new(ErrorKind::Io, format!("cannot start: {error}")))?;
        if let Ok(error) = readiness.recv() {
            return Err(error);
        }
        let desk = Desk { words: words.clone(), next: Arc::default() };
        Ok((Self { words, thread }, desk))
    }

    /// Whether it has ended by itself, which only an error makes it do.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the workers; whoever still waits for an answer is told.
    pub fn end(self) -> Result<()> {
        // One that has failed hears nothing; why is what it ended with.
        let _ = self.words.send(Word::Stop);
        self.thread.join().unwrap_or_else(|_| Err(Error::new(ErrorKind::Stuck, "the control has died")))
    }
}

/// What the control works with.
struct Counter {
    fleet: Fleet,
    inbox: Receiver<Word>,
    ears: Ears,
}

impl Counter {
    fn run(mut self) -> Result<()> {
        let served = self.serve();
        for (_, open) in self.ears.open.drain() {
            open.progress.ended(End::Stopped);
        }
        for word in self.inbox.try_iter() {
            if let Word::Asked(_, _, progress) = word {
                progress.ended(End::Stopped);
            }
        }
        // Who asks from now on is told at once.
        drop(self.inbox);
        let ended = self.fleet.end();
        self.ears.followers.iter_mut().for_each(|follower| follower.ended());
        served.and(ended.map(drop))
    }

    fn serve(&mut self) -> Result<()> {
        loop {
            match self.inbox.recv_timeout(self.fleet.clock.pause_until(None)) {
                Ok(Word::Asked(request, ask, progress)) => self.asked(request, &ask, progress),
                Ok(Word::Report(Report::Passed(pass))) => {
                    self.ears.cache_changed(pass.worker, &pass.changes);
                    self.fleet.heard(&pass, &mut self.ears);
                }
                Ok(Word::Report(Report::Dropped(request))) => {
                    let worker = self.ears.open.value_mut(request).and_then(|open| open.worker);
                    self.fleet.withdrawn(request, worker, &mut self.ears);
                }
                Ok(Word::Report(Report::Failed(error))) => return Err(error),
                Ok(Word::Gone(request)) => self.gone(request),
                Ok(Word::Stop) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => self.fleet.check()?,
                Err(RecvTimeoutError::Disconnected) => unreachable!("workers keep a way to report"),
            }
        }
    }

    fn asked(&mut self, id: RequestId, ask: &Ask, progress: Arc<Progress>) {
        let request = Request {
            session: SessionId(id.0),
            turn: 0,
            prompt: ask.prompt.clone(),
            output_tokens: ask.output_tokens,
            priority: ask.priority,
            think: None,
            labels: None,
        };
        self.ears.open.insert(id, Open { progress, worker: None });
        self.ears.followers.iter_mut().for_each(|follower| follower.asked(id, ask));
        let at = self.fleet.clock.now();
        self.ears.record(&ServeEvent::RequestArrived { request: id, at, details: &request });
        self.fleet.route(id, &request, &mut self.ears);
    }

    /// Someone does not want the rest of an answer. It may have ended meanwhile.
    fn gone(&mut self, request: RequestId) {
        if let Some(worker) = self.ears.open.value_mut(request).map(|open| open.worker) {
            self.fleet.withdraw(request, worker, &mut self.ears);
        }
    }
}

/// Hands out what happens: tokens to those who wait for them, everything to followers.
struct Ears {
    open: InFlight<Open>,
    followers: Vec<Box<dyn Follow>>,
}

/// A request that has not ended.
struct Open {
    progress: Arc<Progress>,
    /// Where it is; `None` while the router keeps it.
    worker: Option<WorkerId>,
}

impl Ears {
    fn ended(&mut self, request: RequestId, end: End) {
        self.open.remove(request).expect("a request ends once").progress.ended(end);
    }

    fn cache_changed(&mut self, worker: WorkerId, changes: &[Change]) {
        if !changes.is_empty() {
            self.followers.iter_mut().for_each(|follower| follower.cache_changed(worker, changes));
        }
    }
}

impl Sink<ServeEvent<'_>> for Ears {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.followers.iter_mut().for_each(|follower| follower.record(event));
        match *event {
            ServeEvent::RequestRouted { request, worker, .. } => {
                self.open.value_mut(request).expect("it was asked").worker = Some(worker);
            }
            ServeEvent::RequestAdmitted { request, reused_tokens, .. } => {
                let open = self.open.value_mut(request).expect("it has not ended");
                open.progress.admitted(reused_tokens);
            }
            ServeEvent::TokensEmitted { steps, requests, .. } => {
                for &request in requests {
                    let open = self.open.value_mut(request).expect("it has not ended");
                    open.progress.emitted(steps.len() as u32);
                }
            }
            ServeEvent::RequestCompleted { request, .. } => self.ended(request, End::Completed),
            ServeEvent::RequestRejected { request, reason, .. } => self.ended(request, End::Rejected(reason)),
            // Nobody looks at it.
            ServeEvent::RequestCancelled { request, .. } => self.ended(request, End::Stopped),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Wake, Waker};

    use wavetank_sim::{ConcurrencyUnit, EngineConfig, Load};

    use super::*;
    use crate::mock::More;

    pub(crate) fn plan(workers: u32) -> Plan {
        let engine = EngineConfig { speedup_ratio: 50.0, block_size: 16, ..EngineConfig::default() };
        Plan {
            engine,
            num_workers: workers,
            router_mode: "kv_router".to_owned(),
            load: Load::Closed { concurrency: 1, unit: ConcurrencyUnit::Requests },
            seed: 1,
            ..Plan::default()
        }
    }

    fn ask(seed: u64, input: u32, output_tokens: u32) -> Ask {
        Ask {
            prompt: Prompt::unique(seed, input),
            tokens: Arc::from(vec![0; input as usize]),
            output_tokens,
            finish: Finish::Length,
            priority: Priority::default(),
        }
    }

    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// All that comes, and how it ends.
    fn whole(answer: &mut Answer) -> (u32, End) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut tokens = 0;
        loop {
            match pin!(answer.more()).poll(&mut context) {
                Poll::Ready(More { tokens: more, end }) => {
                    tokens += more;
                    if let Some(end) = end {
                        return (tokens, end);
                    }
                }
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Broken by: a wake-up that is lost, or tokens counted twice.
    #[test]
    fn everyone_gets_all_tokens() {
        let (control, desk) = Control::start(&plan(2), Vec::new()).unwrap();
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let desk = desk.clone();
                thread::spawn(move || {
                    for turn in 0..8 {
                        let mut answer = desk.ask(ask(thread * 10 + turn, 40, 1 + turn as u32 * 5));
                        assert_eq!(whole(&mut answer), (1 + turn as u32 * 5, End::Completed));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        control.end().unwrap();
    }

    /// What happened to requests, in order.
    #[derive(Clone, Default)]
    struct Fates(Arc<Mutex<Vec<(&'static str, u32)>>>);

    impl Sink<ServeEvent<'_>> for Fates {
        fn record(&mut self, event: &ServeEvent<'_>) {
            let mut fates = self.0.lock().unwrap();
            match *event {
                ServeEvent::TokensEmitted { requests, .. } => {
                    fates.extend(requests.iter().map(|request| ("token", request.0)));
                }
                ServeEvent::RequestCompleted { request, .. } => fates.push(("completed", request.0)),
                ServeEvent::RequestCancelled { request, worker, .. } => {
                    let fate = if worker.is_some() { "cancelled" } else { "never routed" };
                    fates.push((fate, request.0));
                }
                _ => {}
            }
        }
    }

    impl Follow for Fates {}

    /// Broken by: a request that goes on when nobody wants it, is told of after it was given up, or keeps
    /// those behind it waiting.
    #[test]
    fn an_answer_that_is_dropped_is_given_up() {
        let mut plan = plan(2);
        plan.engine.speedup_ratio = 1.0;
        plan.engine.max_num_batched_tokens = Some(64);
        plan.router_config.router_queue_threshold = Some(0.5);
        let fates = Fates::default();
        let (control, desk) = Control::start(&plan, vec![Box::new(fates.clone())]).unwrap();
        let mut answers: Vec<Answer> = (0..6).map(|seed| desk.ask(ask(seed, 640, 100_000))).collect();
        let mut last = desk.ask(ask(99, 640, 2));
        answers.remove(0);
        drop(answers);
        assert_eq!(whole(&mut last), (2, End::Completed));
        control.end().unwrap();
        let fates = fates.0.lock().unwrap();
        for request in 0..6 {
            let of_request: Vec<_> = fates.iter().filter(|(_, other)| *other == request).collect();
            let (end, before) = of_request.split_last().unwrap();
            assert!(["cancelled", "never routed"].contains(&end.0), "{fates:?}");
            assert!(before.iter().all(|(fate, _)| *fate == "token"), "{fates:?}");
        }
        assert!(fates.iter().any(|(fate, _)| *fate == "never routed"), "{fates:?}");
    }

    /// Broken by: an answer that nobody ends when the workers are.
    #[test]
    fn the_end_of_the_workers_ends_answers() {
        let (control, desk) = Control::start(&plan(1), Vec::new()).unwrap();
        let mut answer = desk.ask(ask(1, 40, 1_000_000));
        control.end().unwrap();
        assert_eq!(whole(&mut answer).1, End::Stopped);
        assert_eq!(whole(&mut desk.ask(ask(2, 1, 1))), (0, End::Stopped));
    }
}
