//! Where requests wait for a worker: the most urgent first, then the oldest; bounded, and fair if asked to
//! be.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use wavetank_model::Nanos;

/// How waiting makes a request more urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ageing {
    /// It does not: as long as urgent requests come, others wait.
    #[default]
    Never,
    /// By one priority for every such span.
    Every(Nanos),
}

/// Waiting requests.
///
/// Ageing is a constant head start: a request of priority `p` that came at `t` goes before one of priority
/// `q` that came at `u` if `t - p * span < u - q * span`. The order of two requests never changes, so a heap
/// is enough.
#[derive(Debug)]
pub struct Queue<T> {
    waiting: BinaryHeap<Reverse<Place<T>>>,
    ageing: Ageing,
    limit: Option<usize>,
    arrivals: u64,
}

#[derive(Debug)]
struct Place<T> {
    order: (i128, i128, u64),
    item: T,
}

impl<T> PartialEq for Place<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for Place<T> {}

impl<T> PartialOrd for Place<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Place<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

impl<T> Queue<T> {
    /// An empty queue for at most `limit` requests.
    pub fn new(ageing: Ageing, limit: Option<usize>) -> Self {
        Self { waiting: BinaryHeap::new(), ageing, limit, arrivals: 0 }
    }

    /// Adds a request; gives it back when the queue is full.
    pub fn push(&mut self, item: T, priority: u32, at: Nanos) -> Result<(), T> {
        if self.limit.is_some_and(|limit| self.waiting.len() >= limit) {
            return Err(item);
        }
        let (priority, at) = (i128::from(priority), i128::from(at.0));
        let order = match self.ageing {
            Ageing::Never => (-priority, at),
            Ageing::Every(span) => (at - priority * i128::from(span.0), at),
        };
        self.waiting.push(Reverse(Place { order: (order.0, order.1, self.arrivals), item }));
        self.arrivals += 1;
        Ok(())
    }

    /// The next request.
    pub fn pop(&mut self) -> Option<T> {
        self.waiting.pop().map(|Reverse(place)| place.item)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(ageing: Ageing, arrivals: &[(&'static str, u32, u64)]) -> Vec<&'static str> {
        let mut queue = Queue::new(ageing, None);
        for (name, priority, at) in arrivals {
            queue.push(*name, *priority, Nanos(*at)).unwrap();
        }
        std::iter::from_fn(|| queue.pop()).collect()
    }

    const ARRIVALS: &[(&str, u32, u64)] =
        &[("batch", 1, 0), ("first", 3, 90), ("second", 3, 95), ("middle", 2, 10)];

    #[test]
    fn the_urgent_go_first_and_ageing_saves_the_rest() {
        assert_eq!(order(Ageing::Never, ARRIVALS), ["first", "second", "middle", "batch"]);
        assert_eq!(order(Ageing::Every(Nanos(10)), ARRIVALS), ["batch", "middle", "first", "second"]);
        assert_eq!(order(Ageing::Every(Nanos(1000)), ARRIVALS), ["first", "second", "middle", "batch"]);
    }

    #[test]
    fn a_full_queue_refuses() {
        let mut queue = Queue::new(Ageing::Never, Some(2));
        let kept: Vec<bool> = (0..5).map(|item| queue.push(item, 1, Nanos::ZERO).is_ok()).collect();
        assert_eq!((kept, queue.len()), (vec![true, true, false, false, false], 2));
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(0), Some(1), None));
    }
}
