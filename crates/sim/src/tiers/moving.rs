//! What is under way in a tier: transfers, and runs of transfers that are alike.

use wavetank_cache::BusyGroup;
use wavetank_model::{Nanos, Operation, RequestId, TierObject, TierRoom, WorkerId};

/// A transfer of objects, or a run of transfers of one object each that are of one length.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) worker: WorkerId,
    /// For whom it is read.
    pub(super) reader: Option<Reader>,
    pub(super) began: Nanos,
    pub(super) room: TierRoom,
    pub(super) objects: Vec<TierObject>,
    /// Where each of them is.
    pub(super) places: Vec<BusyGroup>,
    /// Of its transfer, or of each object's.
    pub(super) numbers: Vec<u32>,
}

/// Who waits for what is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    pub(super) worker: WorkerId,
    pub(super) request: RequestId,
    pub(super) load: u64,
}

impl Moving {
    pub(super) fn operation(&self) -> Operation {
        if self.reader.is_some() { Operation::Read } else { Operation::Write }
    }

    /// Whether one more object, into such room, may be the next of the run.
    pub(super) fn is_like(&self, object: TierObject, room: TierRoom) -> bool {
        let as_long = |last: &TierObject| last.slots.count_ones() == object.slots.count_ones();
        self.room == room && self.objects.last().is_some_and(as_long)
    }

    /// What the transfer at `position` has moved, in the order in which it counts as used.
    pub(super) fn moved(&self, position: u32) -> impl DoubleEndedIterator<Item = (TierObject, BusyGroup)> {
        let part = if self.numbers.len() == 1 {
            0..self.objects.len()
        } else {
            position as usize..position as usize + 1
        };
        let (objects, places) = (&self.objects[part.clone()], &self.places[part]);
        objects.iter().copied().zip(places.iter().copied()).rev()
    }
}

/// Transfers and runs under way. A transfer that ends gives its number back, and the last that was given back
/// is taken first; of what ends at once, the lowest number ends first.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// Those that have ended are used again, with their lists.
    rows: Vec<Moving>,
    vacant: Vec<u32>,
    free_numbers: Vec<u32>,
    numbers: u32,
}

impl UnderWay {
    /// Nothing moves yet: which row that is.
    pub(super) fn open(&mut self, worker: WorkerId, reader: Option<Reader>, began: Nanos) -> u32 {
        let Some(row) = self.vacant.pop() else {
            let (objects, places, numbers) = (Vec::new(), Vec::new(), Vec::new());
            let room = TierRoom::Used;
            self.rows.push(Moving { worker, reader, began, room, objects, places, numbers });
            return self.rows.len() as u32 - 1;
        };
        let moving = &mut self.rows[row as usize];
        (moving.worker, moving.reader, moving.began) = (worker, reader, began);
        row
    }

    pub(super) fn row(&self, row: u32) -> &Moving {
        &self.rows[row as usize]
    }

    pub(super) fn row_mut(&mut self, row: u32) -> &mut Moving {
        &mut self.rows[row as usize]
    }

    /// There is one more transfer in a row.
    pub(super) fn add_number(&mut self, row: u32) {
        let number = self.free_numbers.pop().unwrap_or_else(|| {
            self.numbers += 1;
            self.numbers - 1
        });
        self.rows[row as usize].numbers.push(number);
    }

    /// The transfers of `rows` in the order in which they end: row and position.
    pub(super) fn in_order(&self, rows: &[u64], order: &mut Vec<(u32, u32, u32)>) {
        order.clear();
        for &row in rows {
            let numbers = self.rows[row as usize].numbers.iter().enumerate();
            // Numbers are mostly taken from the highest down.
            order.extend(numbers.rev().map(|(position, &number)| (number, row as u32, position as u32)));
        }
        if order.len() > 1 {
            order.sort_unstable();
        }
    }

    /// A row is used again, and its numbers are.
    pub(super) fn close(&mut self, row: u32) {
        let moving = &mut self.rows[row as usize];
        moving.objects.clear();
        moving.places.clear();
        moving.numbers.clear();
        self.vacant.push(row);
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.free_numbers.push(number);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Broken by: numbers that come back in another order than transfers ended in, two transfers with one
        /// number, or transfers that end in another order than that of their numbers.
        #[test]
        fn numbers_are_those_of_transfers_one_by_one(
            steps in proptest::collection::vec((1u32..6, any::<u8>(), any::<bool>()), 1..80)
        ) {
            let (mut under_way, mut order) = (UnderWay::default(), Vec::new());
            let (mut open, mut free, mut taken) = (Vec::new(), Vec::new(), 0);
            for (transfers, which, ends) in steps {
                if !ends || open.is_empty() {
                    let row = under_way.open(WorkerId(0), None, Nanos::ZERO);
                    prop_assert!(under_way.row(row).numbers.is_empty());
                    let numbers: Vec<u32> = (0..transfers).map(|_| {
                        under_way.add_number(row);
                        free.pop().unwrap_or_else(|| {
                            taken += 1;
                            taken - 1
                        })
                    }).collect();
                    prop_assert_eq!(&under_way.row(row).numbers, &numbers);
                    open.push((row, numbers));
                    continue;
                }
                // One row or two end at once.
                let mut rows = vec![open.remove(which as usize % open.len())];
                rows.extend(if which % 2 == 0 { open.pop() } else { None });
                let mut expected: Vec<u32> = rows.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
                expected.sort_unstable();
                let ids: Vec<u64> = rows.iter().map(|(row, _)| u64::from(*row)).collect();
                under_way.in_order(&ids, &mut order);
                prop_assert!(order.iter().map(|(number, ..)| *number).eq(expected.iter().copied()));
                for &(number, row, position) in &order {
                    prop_assert_eq!(under_way.row(row).numbers[position as usize], number);
                    under_way.give_back(number);
                }
                rows.iter().for_each(|(row, _)| under_way.close(*row));
                free.extend(expected);
            }
        }
    }
}
