//! A table keyed by request that holds only what is in flight.

use std::collections::VecDeque;

use crate::RequestId;

/// Values by request. Requests enter in order of their number; memory follows the span of numbers in flight.
#[derive(Debug)]
pub struct InFlight<T> {
    first: u32,
    entries: VecDeque<Option<T>>,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self { first: 0, entries: VecDeque::new() }
    }
}

impl<T> InFlight<T> {
    /// Enters a request, whose number is higher than all before it.
    pub fn insert(&mut self, id: RequestId, value: T) {
        if self.entries.is_empty() {
            self.first = id.0;
        }
        let position = (id.0 - self.first) as usize;
        assert!(position >= self.entries.len(), "requests enter in order");
        self.entries.resize_with(position, || None);
        self.entries.push_back(Some(value));
    }

    /// The value of a request in flight.
    pub fn value_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.entries.get_mut(id.0.checked_sub(self.first)? as usize)?.as_mut()
    }

    /// Takes a request out.
    pub fn remove(&mut self, id: RequestId) -> Option<T> {
        let value = self.entries.get_mut(id.0.checked_sub(self.first)? as usize)?.take();
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
        value
    }

    /// Takes out everything that is left, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = (RequestId, T)> + '_ {
        let first = self.first;
        (first..).zip(self.entries.drain(..)).filter_map(|(id, value)| Some((RequestId(id), value?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_only_the_span_in_flight() {
        let mut table = InFlight::default();
        for id in 0..100 {
            table.insert(RequestId(id), id * 2);
            if id >= 3 {
                assert_eq!(table.remove(RequestId(id - 3)), Some((id - 3) * 2));
            }
        }
        assert_eq!(table.entries.len(), 3);
        assert_eq!(table.remove(RequestId(0)), None);
        *table.value_mut(RequestId(98)).unwrap() += 1;
        assert_eq!(table.drain().collect::<Vec<_>>().len(), 3);
    }

    #[test]
    fn numbers_may_be_skipped() {
        let mut table = InFlight::default();
        table.insert(RequestId(2), 'a');
        table.insert(RequestId(5), 'b');
        assert_eq!(table.value_mut(RequestId(3)), None);
        assert_eq!(table.remove(RequestId(2)), Some('a'));
        assert_eq!(table.remove(RequestId(5)), Some('b'));
    }
}
