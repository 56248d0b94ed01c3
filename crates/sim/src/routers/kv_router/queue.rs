//! Requests that wait in the router, ordered by strict priority, then by the policy's score, then by entry.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use wavetank_model::{Prompt, RequestId};

use crate::queues::{Entry, Waiting};

/// A waiting request and what was cached for it when it arrived, in blocks by worker.
pub(super) struct Queued {
    pub(super) id: RequestId,
    pub(super) prompt: Prompt,
    pub(super) cached: Box<[u32]>,
}

struct Ranked {
    strict: u32,
    score: f64,
    entered: u64,
    queued: Queued,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = || self.score.total_cmp(&other.score);
        self.strict.cmp(&other.strict).then_with(by_score).then(other.entered.cmp(&self.entered))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

/// The queue of a router.
pub(super) struct Queue {
    policy: Entry,
    heap: BinaryHeap<Ranked>,
    entered: u64,
}

impl Queue {
    pub(super) fn of(policy: Entry) -> Self {
        Self { policy, heap: BinaryHeap::new(), entered: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub(super) fn push(&mut self, queued: Queued, strict: u32, waiting: &Waiting) {
        let score = (self.policy.score)(waiting);
        self.heap.push(Ranked { strict, score, entered: self.entered, queued });
        self.entered += 1;
    }

    /// Takes a request out of the middle.
    pub(super) fn remove(&mut self, id: RequestId) {
        self.heap.retain(|ranked| ranked.queued.id != id);
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        self.heap.pop().map(|ranked| ranked.queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues;

    /// Order in which requests leave: (strict, soft priority, seconds, tokens) each.
    fn order(policy: &str, requests: &[(u32, f64, f64, u32)]) -> Vec<u32> {
        let mut queue = Queue::of(*queues::policy(policy).unwrap());
        for (id, &(strict, priority, since_seconds, input_tokens)) in requests.iter().enumerate() {
            let queued = Queued {
                id: RequestId(id as u32),
                prompt: Prompt::unique(0, input_tokens),
                cached: Box::default(),
            };
            queue.push(queued, strict, &Waiting { since_seconds, priority, input_tokens, cached_tokens: 0 });
        }
        std::iter::from_fn(|| queue.pop()).map(|queued| queued.id.0).collect()
    }

    #[test]
    fn k4_policies_order_one_tier() {
        let requests = [(0, 0.0, 0.0, 64), (0, 0.0, 0.1, 1)];
        assert_eq!(order("fcfs", &requests), [0, 1]);
        assert_eq!(order("lcfs", &requests), [1, 0]);
        assert_eq!(order("wspt", &requests), [1, 0]);
    }

    #[test]
    fn k4_a_tier_beats_any_soft_priority() {
        for policy in queues::ALL {
            assert_eq!(
                order(policy.name, &[(0, 1e6, 0.0, 64), (1, 0.0, 0.1, 64)]),
                [1, 0],
                "{}",
                policy.name
            );
            assert_eq!(
                order(policy.name, &[(0, 0.0, 0.0, 64), (0, 1000.0, 0.1, 64)]),
                [1, 0],
                "{}",
                policy.name
            );
        }
    }

    #[test]
    fn equal_scores_leave_in_order_of_entry() {
        for policy in queues::ALL {
            assert_eq!(order(policy.name, &[(0, 0.0, 1.0, 5); 4]), [0, 1, 2, 3], "{}", policy.name);
        }
    }
}
