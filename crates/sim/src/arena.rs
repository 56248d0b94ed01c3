//! Requests inside an engine, by slot; slots are used again.

use std::ops::{Index, IndexMut};

/// A place in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// Values by slot.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    values: Vec<T>,
    vacant: Vec<Slot>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { values: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Arena<T> {
    pub(crate) fn insert(&mut self, value: T) -> Slot {
        match self.vacant.pop() {
            Some(slot) => {
                self[slot] = value;
                slot
            }
            None => {
                self.values.push(value);
                Slot(self.values.len() as u32 - 1)
            }
        }
    }

    /// Frees the slot.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.vacant.push(slot);
    }
}

impl<T> Index<Slot> for Arena<T> {
    type Output = T;
    fn index(&self, slot: Slot) -> &T {
        &self.values[slot.0 as usize]
    }
}

impl<T> IndexMut<Slot> for Arena<T> {
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        &mut self.values[slot.0 as usize]
    }
}
