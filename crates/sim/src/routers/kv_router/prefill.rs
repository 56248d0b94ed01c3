//! Prompt tokens in flight on one worker, from placement to first token (spec/replay.md 6.4).

use std::collections::VecDeque;

use wavetank_model::{Nanos, RequestId};

struct Prefill {
    id: RequestId,
    tokens: u64,
    /// How long a model expects it to take; without a model it keeps its weight until it is done.
    expected: Option<Nanos>,
}

/// Prompts in order of placement. Only the oldest shrinks with time, from when it became the oldest.
#[derive(Default)]
pub(super) struct Prefills {
    prompts: VecDeque<Prefill>,
    sum: u64,
    oldest_since: Nanos,
}

impl Prefills {
    pub(super) fn add(&mut self, id: RequestId, tokens: u32, expected: Option<Nanos>, now: Nanos) {
        if tokens == 0 {
            return;
        }
        if self.prompts.is_empty() {
            self.oldest_since = now;
        }
        self.sum += u64::from(tokens);
        self.prompts.push_back(Prefill { id, tokens: u64::from(tokens), expected });
    }

    /// A prompt is done, or its request ended.
    pub(super) fn remove(&mut self, id: RequestId, now: Nanos) {
        let Some(position) = self.prompts.iter().position(|prompt| prompt.id == id) else { return };
        if position == 0 {
            self.oldest_since = now;
        }
        if let Some(done) = self.prompts.remove(position) {
            self.sum -= done.tokens;
        }
    }

    /// What is left at `now`.
    pub(super) fn tokens(&self, now: Nanos) -> u64 {
        match self.prompts.front() {
            Some(Prefill { tokens, expected: Some(expected), .. }) => {
                self.sum - tokens + left(*tokens, now.since(self.oldest_since), *expected)
            }
            _ => self.sum,
        }
    }
}

fn left(tokens: u64, elapsed: Nanos, expected: Nanos) -> u64 {
    if elapsed >= expected {
        return 0;
    }
    let part = (expected - elapsed).0 as f64 / expected.0 as f64;
    ((tokens as f64 * part).ceil() as u64).min(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Nanos {
        Nanos(seconds * SECOND)
    }

    #[test]
    fn k5_the_oldest_shrinks_as_predicted() {
        let mut prefills = Prefills::default();
        prefills.add(RequestId(0), 64, Some(at(10)), at(0));
        let left: Vec<_> = [0, 5, 10, 20].map(|seconds| prefills.tokens(at(seconds))).into();
        assert_eq!(left, [64, 32, 0, 0]);
    }

    #[test]
    fn only_the_oldest_shrinks() {
        let mut prefills = Prefills::default();
        prefills.add(RequestId(0), 64, Some(at(10)), at(0));
        prefills.add(RequestId(1), 100, Some(at(10)), at(0));
        assert_eq!(prefills.tokens(at(10)), 100);
        prefills.remove(RequestId(0), at(12));
        assert_eq!((prefills.tokens(at(12)), prefills.tokens(at(17))), (100, 50));
    }

    #[test]
    fn without_a_model_nothing_shrinks() {
        let mut prefills = Prefills::default();
        prefills.add(RequestId(0), 64, None, at(0));
        prefills.add(RequestId(1), 0, None, at(0));
        assert_eq!(prefills.tokens(at(100)), 64);
        prefills.remove(RequestId(1), at(1));
        prefills.remove(RequestId(0), at(1));
        assert_eq!(prefills.tokens(at(1)), 0);
    }
}
