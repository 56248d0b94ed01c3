//! The way of batches to one receiver: a bounded queue, attempts with growing pauses, and what became of
//! them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::exporters::{Exporter, Target, Verdict};
use crate::plan::{Patience, Tell};
use crate::resource::Resource;
use crate::span::Span;
use crate::tally::{Reason, Tally};

/// Batches that may wait: with the largest ones 65,536 spans, some 50 MB.
const BATCHES: usize = 32;
/// Between two complaints about one receiver.
const QUIET: Duration = Duration::from_secs(60);

/// One receiver of spans, and what was counted of it.
pub(crate) struct Lane {
    sender: mpsc::Sender<Arc<[Span]>>,
    tally: Arc<Tally>,
    task: JoinHandle<()>,
}

impl Lane {
    /// Starts the task; called on the runtime.
    pub(crate) fn start(exporter: Box<dyn Exporter>, setting: Setting) -> Self {
        let (sender, batches) = mpsc::channel(BATCHES);
        let tally = Arc::clone(&setting.tally);
        let task = tokio::spawn(Courier { exporter, setting, complained: None }.run(batches));
        Self { sender, tally, task }
    }

    /// Hands a batch over; what finds the queue full is lost and counted.
    pub(crate) fn offer(&self, batch: &Arc<[Span]>) {
        self.tally.offer(batch.len() as u64);
        if self.sender.try_send(Arc::clone(batch)).is_err() {
            self.tally.lose(Reason::QueueFull, batch.len() as u64);
        }
    }

    /// Lets it send what waits until `deadline`; what is left then is lost and counted.
    pub(crate) async fn finish(self, deadline: Instant) {
        drop(self.sender);
        let mut task = self.task;
        if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
            task.abort();
            // It may just have counted something.
            let _ = task.await;
        }
        let left = self.tally.exports("").waiting();
        self.tally.lose(Reason::CutShort, left);
    }
}

/// What a courier is told.
pub(crate) struct Setting {
    pub(crate) target: Target,
    pub(crate) resource: Arc<Resource>,
    pub(crate) patience: Patience,
    pub(crate) tally: Arc<Tally>,
    pub(crate) tell: Tell,
}

/// Brings batches, one after the other.
struct Courier {
    exporter: Box<dyn Exporter>,
    setting: Setting,
    /// When something was last said.
    complained: Option<Instant>,
}

impl Courier {
    async fn run(mut self, mut batches: mpsc::Receiver<Arc<[Span]>>) {
        while let Some(batch) = batches.recv().await {
            self.bring(&batch).await;
        }
    }

    async fn bring(&mut self, batch: &[Span]) {
        let count = batch.len() as u64;
        let begun = Instant::now();
        let mut pause = self.setting.patience.first_pause;
        loop {
            let (why, message, after) = match self.attempt(batch).await {
                Verdict::Taken { rejected, message } => return self.taken(count, rejected, &message),
                Verdict::Lost { why, message } => return self.lost(count, why, &message),
                Verdict::Again { why, message, after } => (why, message, after),
            };
            let wait = after.unwrap_or(pause).min(self.setting.patience.longest_pause);
            if begun.elapsed() + wait > self.setting.patience.in_all {
                return self.lost(count, why, &message);
            }
            self.complain(&message);
            sleep(wait).await;
            pause = (pause * 2).min(self.setting.patience.longest_pause);
        }
    }

    async fn attempt(&mut self, batch: &[Span]) -> Verdict {
        let limit = self.setting.target.timeout;
        match timeout(limit, self.exporter.export(&self.setting.resource, batch)).await {
            Ok(verdict) => verdict,
            Err(_) => {
                let message = format!("no answer within {limit:?}");
                Verdict::Again { why: Reason::TimedOut, message, after: None }
            }
        }
    }

    fn taken(&mut self, count: u64, rejected: u64, message: &str) {
        let rejected = rejected.min(count);
        self.setting.tally.send(count - rejected);
        if rejected > 0 {
            self.lost(rejected, Reason::Rejected, message);
        }
    }

    fn lost(&mut self, count: u64, why: Reason, message: &str) {
        self.setting.tally.lose(why, count);
        self.complain(message);
    }

    fn complain(&mut self, message: &str) {
        self.setting.tally.fail(message);
        if self.complained.is_some_and(|last| last.elapsed() < QUIET) {
            return;
        }
        self.complained = Some(Instant::now());
        let name = self.setting.target.name();
        let counts = self.setting.tally.exports(&name);
        let (sent, lost) = (counts.sent, counts.lost_in_all());
        (self.setting.tell)(&format!("spans to {name}: {message} ({sent} sent, {lost} lost so far)"));
    }
}
