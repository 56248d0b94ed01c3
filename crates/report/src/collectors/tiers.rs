//! What tiers behind the GPU's memory did for requests.

use wavetank_model::{InFlight, Nanos, Operation, RequestId, ServeEvent, Sink, TierEvent};

use crate::tiers::{TierShape, TierSummary, TiersSummary};
use crate::{Samples, Spans};

/// Milliseconds that a prompt's time is shorter by loaded tokens: of the prompt's tokens, those found before
/// them, and themselves.
pub type Saved = Box<dyn Fn(u32, u32, u32) -> f64>;

/// Collects what tiers did.
pub struct Tiers {
    block_size: u32,
    saved: Saved,
    tiers: Vec<Tier>,
    load_wait_ms: Samples,
    in_flight: InFlight<Seen>,
    gpu_tokens: u64,
    computed_tokens: u64,
}

struct Tier {
    shape: TierShape,
    loads: u64,
    requests: u64,
    hit_tokens: u64,
    prompt_tokens: u64,
    reads: Moved,
    writes: Moved,
    evicted_blocks: u64,
    dropped_blocks: u64,
    load_wait_ms: Samples,
    saved_ms: f64,
}

/// Transfers one way.
#[derive(Default)]
struct Moved {
    count: u64,
    bytes: u64,
    times: Spans,
}

/// What is known of a request.
#[derive(Default)]
struct Seen {
    prompt: u32,
    /// When it was admitted last, and what was found of it then.
    admitted: Option<(Nanos, u32)>,
    is_preempted: bool,
    /// What was loaded for the next admission, by tier.
    coming: Vec<u32>,
    /// What the first admission found, in all and by tier.
    first_found: u32,
    first_loaded: Vec<u32>,
    /// A bit for each tier that it loaded from.
    served_by: u64,
}

impl Tiers {
    /// Of tiers with these shapes, from the fastest.
    pub fn of(shapes: Vec<TierShape>, block_size: u32, saved: Saved) -> Self {
        let tier = |shape: TierShape| Tier {
            loads: 0,
            requests: 0,
            hit_tokens: 0,
            prompt_tokens: 0,
            reads: Moved::default(),
            writes: Moved::default(),
            evicted_blocks: 0,
            dropped_blocks: 0,
            load_wait_ms: Samples::default(),
            saved_ms: 0.0,
            shape,
        };
        Self {
            block_size: block_size.max(1),
            saved,
            tiers: shapes.into_iter().map(tier).collect(),
            load_wait_ms: Samples::default(),
            in_flight: InFlight::default(),
            gpu_tokens: 0,
            computed_tokens: 0,
        }
    }

    /// The numbers of everything recorded in a run of so much time, of which each tier was `busy` for some.
    pub fn summary(self, busy: impl IntoIterator<Item = Nanos>, span: Nanos) -> TiersSummary {
        let block_size = u64::from(self.block_size);
        let tiers = self.tiers.into_iter().zip(busy);
        TiersSummary {
            tiers: tiers.map(|(tier, busy)| tier.summary(block_size, busy)).collect(),
            gpu_tokens: self.gpu_tokens,
            computed_tokens: self.computed_tokens,
            load_wait_ms: self.load_wait_ms.distribution(),
            span,
        }
    }

    fn tier_event(&mut self, event: &TierEvent<'_>) {
        match *event {
            TierEvent::Moved { tier, operation, transfers, bytes, began, ended, .. } => {
                self.tiers[usize::from(tier)].moved(operation, transfers, bytes, ended.since(began));
            }
            TierEvent::Loaded { request, tokens, asked, at, .. } => self.loaded(request, tokens, (asked, at)),
            TierEvent::Evicted { tier, blocks, .. } => {
                self.tiers[usize::from(tier)].evicted_blocks += u64::from(blocks);
            }
            TierEvent::Dropped { tier, blocks, .. } => {
                self.tiers[usize::from(tier)].dropped_blocks += u64::from(blocks);
            }
        }
    }

    fn loaded(&mut self, id: RequestId, tokens: &[u32], (asked, at): (Nanos, Nanos)) {
        let wait_ms = at.since(asked).as_ms();
        self.load_wait_ms.record(wait_ms);
        let seen = self.in_flight.value_mut(id).expect(BETWEEN);
        for (number, (tier, &tokens)) in self.tiers.iter_mut().zip(tokens).enumerate() {
            if tokens > 0 {
                let mark = 1 << number;
                tier.loads += 1;
                tier.requests += u64::from(seen.served_by & mark == 0);
                seen.served_by |= mark;
                tier.hit_tokens += u64::from(tokens);
                tier.load_wait_ms.record(wait_ms);
            }
        }
        seen.coming = tokens.to_vec();
        // One that overlaps with compute is told of when its request has been admitted.
        if let Some((_, found)) = seen.admitted.filter(|(admitted, _)| *admitted >= asked) {
            self.used(id, found);
        }
    }

    fn admitted(&mut self, id: RequestId, at: Nanos, found: u32) {
        let seen = self.in_flight.value_mut(id).expect(BETWEEN);
        if seen.admitted.is_none() {
            seen.first_found = found;
        }
        seen.admitted = Some((at, found));
        if !seen.coming.is_empty() {
            self.used(id, found);
        }
    }

    /// A request was admitted with what was loaded for it.
    fn used(&mut self, id: RequestId, found: u32) {
        let seen = self.in_flight.value_mut(id).expect(BETWEEN);
        let mut tokens = std::mem::take(&mut seen.coming);
        // What left the GPU's memory again before the admission is no part of it.
        let mut left = found;
        for tokens in &mut tokens {
            *tokens = (*tokens).min(left);
            left -= *tokens;
        }
        let loaded = found - left;
        if loaded > 0 {
            let saved_ms = (self.saved)(seen.prompt.max(found), left, loaded);
            for (tier, &tokens) in self.tiers.iter_mut().zip(&tokens) {
                tier.saved_ms += saved_ms * f64::from(tokens) / f64::from(loaded);
            }
        }
        if !seen.is_preempted {
            seen.first_loaded = tokens;
        }
    }

    fn completed(&mut self, id: RequestId) {
        let seen = self.in_flight.remove(id).expect("a request ends once");
        let loaded: u32 = seen.first_loaded.iter().sum();
        for (tier, &tokens) in self.tiers.iter_mut().zip(&seen.first_loaded) {
            tier.prompt_tokens += u64::from(tokens);
        }
        self.gpu_tokens += u64::from(seen.first_found - loaded);
        self.computed_tokens += u64::from(seen.prompt.saturating_sub(seen.first_found));
    }
}

const BETWEEN: &str = "events of a request come between its arrival and its end";

impl Sink<ServeEvent<'_>> for Tiers {
    fn record(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::Tier(ref event) => self.tier_event(event),
            ServeEvent::RequestArrived { request, details, .. } => {
                let prompt = details.prompt.tokens();
                self.in_flight.insert(request, Seen { prompt, ..Seen::default() });
            }
            ServeEvent::RequestAdmitted { request, at, reused_tokens, .. } => {
                self.admitted(request, at, reused_tokens);
            }
            ServeEvent::RequestPreempted { request, .. } => {
                self.in_flight.value_mut(request).expect(BETWEEN).is_preempted = true;
            }
            ServeEvent::RequestCompleted { request, .. } => self.completed(request),
            ServeEvent::RequestRejected { request, .. } | ServeEvent::RequestCancelled { request, .. } => {
                self.in_flight.remove(request);
            }
            _ => {}
        }
    }
}

impl Tier {
    fn moved(&mut self, operation: Operation, transfers: u32, bytes: u64, took: Nanos) {
        let moved = match operation {
            Operation::Read => &mut self.reads,
            Operation::Write => &mut self.writes,
        };
        moved.count += u64::from(transfers);
        moved.bytes += bytes;
        moved.times.record_each(took, transfers);
    }

    fn summary(self, block_size: u64, busy: Nanos) -> TierSummary {
        TierSummary {
            shape: self.shape,
            loads: self.loads,
            requests: self.requests,
            hit_tokens: self.hit_tokens,
            hit_blocks: self.hit_tokens / block_size,
            prompt_tokens: self.prompt_tokens,
            bytes_read: self.reads.bytes,
            reads: self.reads.count,
            bytes_written: self.writes.bytes,
            writes: self.writes.count,
            evicted_blocks: self.evicted_blocks,
            dropped_blocks: self.dropped_blocks,
            load_wait_ms: self.load_wait_ms.distribution(),
            read_ms: self.reads.times.distribution_ms(),
            write_ms: self.writes.times.distribution_ms(),
            busy,
            saved_prefill_ms: self.saved_ms,
        }
    }
}

#[cfg(test)]
mod tests;
