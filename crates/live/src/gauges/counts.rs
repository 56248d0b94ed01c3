//! What is counted of workers, as others see it.

/// What all workers were doing at one moment, and have done until then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// By worker.
    pub workers: Vec<WorkerCounts>,
    /// Requests that arrived.
    pub arrived: u64,
    /// Requests that wait in the router.
    pub waiting_in_router: u64,
    /// Requests given up by those who asked, before they reached a worker.
    pub cancelled_in_router: u64,
    /// Times to the first token.
    pub first_token: Tally,
    /// Times between two tokens.
    pub token_gap: Tally,
}

impl Snapshot {
    /// Requests that ended, in whatever way.
    pub fn ended(&self) -> u64 {
        self.workers.iter().map(|worker| worker.finished.total()).sum::<u64>() + self.cancelled_in_router
    }

    /// One of the counts, over all workers.
    pub fn total(&self, count: impl Fn(&WorkerCounts) -> u64) -> u64 {
        self.workers.iter().map(count).sum()
    }
}

/// What one worker is doing and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Requests on their way to it: it has not looked at them yet.
    pub sent: u64,
    /// Requests in its queue.
    pub waiting: u64,
    /// Requests in its batch.
    pub running: u64,
    /// Blocks of its cache that requests use.
    pub blocks_in_use: u64,
    /// Blocks of its cache.
    pub blocks: u64,
    /// Tokens of prompts that were answered, whether computed or found.
    pub prompt_tokens: u64,
    /// Tokens of answers.
    pub generated_tokens: u64,
    /// Prompt tokens looked up in its cache, when requests were first admitted.
    pub queried_tokens: u64,
    /// Of these, found.
    pub hit_tokens: u64,
    /// Requests that lost their blocks.
    pub preemptions: u64,
    /// Passes, or runs of them where they are told together.
    pub passes: u64,
    /// How requests ended there.
    pub finished: Finished,
}

/// How requests ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Everything was said.
    pub stop: u64,
    /// No more tokens were wanted.
    pub length: u64,
    /// Who asked went away.
    pub abort: u64,
    /// The engine could not serve it.
    pub error: u64,
}

impl Finished {
    /// All of them, by the name that vLLM has for how.
    pub fn by_reason(self) -> [(&'static str, u64); 4] {
        [("stop", self.stop), ("length", self.length), ("abort", self.abort), ("error", self.error)]
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.by_reason().into_iter().map(|(_, count)| count).sum()
    }
}

/// How many there were, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// All of them added up.
    pub seconds: f64,
}

impl Tally {
    /// The mean of what came after `earlier`; nothing if nothing came.
    pub fn mean_since(self, earlier: Self) -> Option<f64> {
        let count = self.count.saturating_sub(earlier.count);
        (count > 0).then(|| (self.seconds - earlier.seconds) / count as f64)
    }
}
