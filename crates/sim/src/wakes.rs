//! When each worker wants to be looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wavetank_model::{Nanos, WorkerId};

/// One wake time per worker; an entry of the heap that differs from it is out of date.
pub(crate) struct Wakes {
    current: Vec<Option<Nanos>>,
    heap: BinaryHeap<Reverse<(Nanos, WorkerId)>>,
}

impl Wakes {
    pub(crate) fn of(workers: u32) -> Self {
        Self { current: vec![None; workers as usize], heap: BinaryHeap::new() }
    }

    /// There is one worker more.
    pub(crate) fn grow(&mut self) {
        self.current.push(None);
    }

    /// Replaces the wake time of a worker.
    pub(crate) fn set(&mut self, worker: WorkerId, wake: Option<Nanos>) {
        let current = &mut self.current[worker.index()];
        if *current == wake {
            return;
        }
        *current = wake;
        self.heap.extend(wake.map(|at| Reverse((at, worker))));
    }

    /// Whether a worker wants to be looked at.
    pub(crate) fn is_set(&self, worker: WorkerId) -> bool {
        self.current[worker.index()].is_some()
    }

    /// The earliest wake time.
    pub(crate) fn next(&mut self) -> Option<Nanos> {
        while let Some(&Reverse((at, worker))) = self.heap.peek() {
            if self.current[worker.index()] == Some(at) {
                return Some(at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes out the workers that wake at `now`, in order of their numbers.
    pub(crate) fn take_due(&mut self, now: Nanos, due: &mut Vec<WorkerId>) {
        while self.next() == Some(now) {
            let Some(Reverse((_, worker))) = self.heap.pop() else { unreachable!("next() has just seen it") };
            self.current[worker.index()] = None;
            due.push(worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts() {
        let mut wakes = Wakes::of(3);
        let mut due = Vec::new();
        wakes.set(WorkerId(2), Some(Nanos(5)));
        wakes.set(WorkerId(0), Some(Nanos(5)));
        wakes.set(WorkerId(1), Some(Nanos(3)));
        wakes.set(WorkerId(1), Some(Nanos(7)));
        assert_eq!(wakes.next(), Some(Nanos(5)));
        wakes.take_due(Nanos(5), &mut due);
        assert_eq!(due, [WorkerId(0), WorkerId(2)]);
        wakes.set(WorkerId(1), Some(Nanos(3)));
        wakes.set(WorkerId(1), None);
        assert_eq!(wakes.next(), None);
    }
}
