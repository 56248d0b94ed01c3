//! What is in the cache before the first request: documents, entries for those who only read, and ballast
//! that puts a drive to use.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use wavetank_model::{Error, Nanos, Operation, Result, Why};
use wavetank_store::{Events, Outcome, Store};

use crate::desk::entry;
use crate::document::Library;
use crate::floor::full;
use crate::log::Log;
use crate::plan::{Plan, Time};
use crate::prompt::PROMPTS;
use crate::request::{Name, Phase};
use crate::run::Watch;
use crate::user::UNASKED_TOKENS;

/// Between two words about how it goes.
const PULSE: Duration = Duration::from_millis(250);
/// Entries at a time, where the plan does not say.
const DEPTH: usize = 8;
/// Failures in a row that end preconditioning.
const MOST_FAILURES: u32 = 50;

/// What was written before the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Filled {
    /// Ballast.
    pub preconditioned: Part,
    /// Entries for those who only read.
    pub prepared: Part,
    /// Chunks of documents.
    pub documents: Part,
}

/// One kind of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// How many entries.
    pub entries: u64,
    /// How many bytes.
    pub bytes: u64,
    /// How many were refused or failed.
    pub failed: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Writes everything that has to be there.
pub(crate) struct Filler<'a, 'l> {
    pub(crate) plan: &'a Plan,
    pub(crate) store: &'a Arc<Store>,
    pub(crate) events: &'a Events,
    pub(crate) log: Option<&'a mut Log<'l>>,
    /// Raised to end it with what there is.
    pub(crate) stop: &'a AtomicBool,
    /// Told how it goes.
    pub(crate) watch: &'a mut (dyn Watch + Send),
}

impl Filler<'_, '_> {
    pub(crate) fn fill(&mut self, library: &Library) -> Result<Filled> {
        let mut filled = Filled::default();
        if let Some(bytes) = self.plan.precondition_bytes {
            let size = u64::from(UNASKED_TOKENS) * self.plan.bytes_per_token;
            let count = bytes.div_ceil(size.max(1)).min(u64::from(u32::MAX)) as u32;
            let ballast = (0..count).map(|number| (Name::Ballast(number), UNASKED_TOKENS));
            let depth = self.plan.precondition_depth as usize;
            filled.preconditioned = self.write("preconditioning", ballast, depth)?;
        }
        let habits = &self.plan.habits;
        let prepared = (0..habits.prepared).map(|number| (Name::Prepared(number), UNASKED_TOKENS));
        // Who only reads does not write shared prompts either.
        let reads_only = habits.prepared > 0 && habits.prompt_probability > 0.0;
        let prompts = (0..PROMPTS.len()).filter(|_| reads_only).filter_map(|at| habits.shared_prompt(at));
        let prompts = prompts.map(|prompt| (Name::Prompt(prompt.number), prompt.tokens));
        filled.prepared = self.write("prepared entries", prepared.chain(prompts), DEPTH)?;
        let chunk = |(document, chunk, tokens)| (Name::Chunk { document, chunk }, tokens);
        filled.documents = self.write("documents", library.all().map(chunk), DEPTH)?;
        Ok(filled)
    }

    /// Writes entries, `depth` at a time, one at a time where the order is logged.
    fn write(
        &mut self,
        what: &str,
        entries: impl Iterator<Item = (Name, u32)>,
        depth: usize,
    ) -> Result<Part> {
        let depth = if self.plan.time == Time::Virtual { 1 } else { depth.max(1) };
        let told = |error: io::Error| Error::usage(format!("cannot open a queue: {error}"));
        let mut entries = entries.peekable();
        if entries.peek().is_none() {
            return Ok(Part::default());
        }
        let mut lane = self.store.lane(self.plan.lanes().1).map_err(told)?;
        let (start, mut part, mut in_a_row) = (self.store.clock().now(), Part::default(), 0);
        let mut next = Instant::now() + PULSE;
        loop {
            if Instant::now() >= next {
                next = Instant::now() + PULSE;
                self.watch.filling(what, part.bytes);
            }
            let goes_on = in_a_row < MOST_FAILURES && !self.stop.load(Ordering::Relaxed);
            while lane.pending() < depth && goes_on {
                let Some((name, tokens)) = entries.next() else { break };
                if let Some(log) = &mut self.log {
                    log.begin(name, Operation::Write, Why::Prefill, Phase::Prefill);
                }
                lane.put(entry(self.plan, name, tokens));
            }
            let Some(done) = lane.wait() else { break };
            match done.outcome {
                Outcome::Stored(_) | Outcome::Existed => {
                    in_a_row = 0;
                    part.entries += 1;
                    part.bytes += done.bytes;
                }
                Outcome::Failed(error) if error.kind() == io::ErrorKind::StorageFull => {
                    return Err(Error::usage(full(self.plan, &error))
                        .hint("give a smaller --storage-capacity-gb or --precondition-size-gb"));
                }
                _ => {
                    in_a_row += 1;
                    part.failed += 1;
                }
            }
            self.listen();
        }
        part.seconds = self.store.clock().since(start).as_secs_f64();
        Ok(part)
    }

    fn listen(&mut self) {
        for event in self.events.take() {
            if let Some(log) = &mut self.log {
                log.heard(Nanos::ZERO, &event);
            }
        }
    }
}
