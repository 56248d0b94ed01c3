//! Requests: what came, what was served and how long it took, by class.

use wavetank_model::{Class, Nanos, Served};

use crate::Latencies;
use crate::storage::{ClassSummary, ClassTarget, LatencyLists, RequestsSummary};

/// Lists of latencies in a report are complete up to this many values.
const LIST_LIMIT: usize = 100_000;

#[derive(Debug)]
pub(super) struct Requests {
    classes: [ByClass; 3],
    context_tokens: u64,
    generated_tokens: u64,
    end_to_end: Latencies,
    storage: Latencies,
    generation: Latencies,
    waited: Latencies,
    prefill: Latencies,
    decode: Latencies,
}

#[derive(Debug)]
struct ByClass {
    target: ClassTarget,
    arrived: u64,
    turned_away: u64,
    violations: u64,
    end_to_end: Latencies,
}

impl Requests {
    pub(super) fn new(targets: &[ClassTarget; 3]) -> Self {
        let class = |&target| ByClass {
            target,
            arrived: 0,
            turned_away: 0,
            violations: 0,
            end_to_end: Latencies::default(),
        };
        Self {
            classes: targets.each_ref().map(class),
            context_tokens: 0,
            generated_tokens: 0,
            end_to_end: Latencies::default(),
            storage: Latencies::default(),
            generation: Latencies::default(),
            waited: Latencies::default(),
            prefill: Latencies::default(),
            decode: Latencies::default(),
        }
    }

    pub(super) fn arrived(&mut self, class: Class) {
        self.classes[class as usize].arrived += 1;
    }

    pub(super) fn turned_away(&mut self, class: Class) {
        self.classes[class as usize].turned_away += 1;
    }

    pub(super) fn served(&mut self, served: &Served) {
        self.context_tokens += u64::from(served.context_tokens);
        self.generated_tokens += u64::from(served.generated_tokens);
        self.end_to_end.record(served.total);
        self.storage.record(served.storage);
        self.generation.record(served.generation);
        self.waited.record(served.waited);
        served.prefill.into_iter().for_each(|span| self.prefill.record(span));
        served.decode.into_iter().for_each(|span| self.decode.record(span));
        self.classes[served.class as usize].served(served.total);
    }

    /// `unfinished` are those that came and did not end, by class.
    pub(super) fn summary(&self, unfinished: &[u64; 3]) -> RequestsSummary {
        let class = |index: usize| self.classes[index].summary(Class::ALL[index], unfinished[index]);
        RequestsSummary {
            classes: std::array::from_fn(class),
            context_tokens: self.context_tokens,
            generated_tokens: self.generated_tokens,
            total_storage: self.storage.sum(),
            total_generation: self.generation.sum(),
            end_to_end: self.end_to_end.spread(),
            storage: self.storage.spread(),
            generation: self.generation.spread(),
            waited: self.waited.spread(),
            prefill: self.prefill.spread(),
            decode: self.decode.spread(),
            lists: self.lists(),
        }
    }

    fn lists(&self) -> LatencyLists {
        let lists = [
            ("end_to_end_latencies", &self.end_to_end),
            ("storage_latencies", &self.storage),
            ("generation_latencies", &self.generation),
            ("prefill_latencies", &self.prefill),
            ("decode_latencies", &self.decode),
        ];
        let list = |(key, latencies): (_, &Latencies)| Some((key, latencies.values(LIST_LIMIT)?.to_vec()));
        lists.into_iter().map(list).collect()
    }
}

impl ByClass {
    fn served(&mut self, end_to_end: Nanos) {
        self.end_to_end.record(end_to_end);
        self.violations += u64::from(end_to_end.as_ms() > self.target.p95_ms);
    }

    fn summary(&self, class: Class, unfinished: u64) -> ClassSummary {
        let Self { target, arrived, turned_away, violations, ref end_to_end } = *self;
        ClassSummary {
            class,
            arrived,
            turned_away,
            unfinished,
            violations,
            target,
            end_to_end: end_to_end.spread(),
        }
    }
}
