//! A table keyed by request that holds only what is in flight.

use std::collections::VecDeque;

use crate::RequestId;

/// Values by request. Requests enter about in order of their number; memory follows the span in flight.
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
    /// Enters a request.
    pub fn insert(&mut self, id: RequestId, value: T) {
        if self.entries.is_empty() {
            self.first = id.0;
        }
        while id.0 < self.first {
            self.entries.push_front(None);
            self.first -= 1;
        }
        let position = (id.0 - self.first) as usize;
        if position >= self.entries.len() {
            self.entries.resize_with(position + 1, || None);
        }
        let before = self.entries[position].replace(value);
        assert!(before.is_none(), "a request enters once");
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
        table.insert(RequestId(9), 'c');
        table.insert(RequestId(7), 'd');
        table.insert(RequestId(8), 'e');
        assert_eq!([7, 8, 9].map(|id| table.remove(RequestId(id))), [Some('d'), Some('e'), Some('c')]);
    }
}
