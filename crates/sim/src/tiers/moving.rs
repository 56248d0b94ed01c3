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
    /// How many transfers it is.
    pub(super) transfers: u32,
    /// Those that began later have higher ones.
    number: u64,
    pub(super) objects: Vec<TierObject>,
    /// Where each of them is.
    pub(super) places: Vec<BusyGroup>,
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
}

/// Transfers and runs under way, by row. Those that have ended are used again, with their lists.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    rows: Vec<Moving>,
    vacant: Vec<u32>,
    opened: u64,
}

impl UnderWay {
    /// Nothing moves yet: which row that is.
    pub(super) fn open(&mut self, worker: WorkerId, reader: Option<Reader>, began: Nanos) -> u32 {
        let (number, room, transfers) = (self.opened, TierRoom::Used, 0);
        self.opened += 1;
        let Some(row) = self.vacant.pop() else {
            let (objects, places) = (Vec::new(), Vec::new());
            self.rows.push(Moving { worker, reader, began, room, transfers, number, objects, places });
            return self.rows.len() as u32 - 1;
        };
        let moving = &mut self.rows[row as usize];
        (moving.worker, moving.reader, moving.began, moving.number) = (worker, reader, began, number);
        row
    }

    pub(super) fn row(&self, row: u32) -> &Moving {
        &self.rows[row as usize]
    }

    pub(super) fn row_mut(&mut self, row: u32) -> &mut Moving {
        &mut self.rows[row as usize]
    }

    /// Puts rows that end at once into the order in which they count as used: what began first, the beginning
    /// of a prompt, last.
    pub(super) fn in_order_of_use(&self, rows: &mut [u64]) {
        if rows.len() > 1 {
            rows.sort_unstable_by_key(|&row| std::cmp::Reverse(self.rows[row as usize].number));
        }
    }

    /// A row is used again.
    pub(super) fn close(&mut self, row: u32) {
        let moving = &mut self.rows[row as usize];
        moving.objects.clear();
        moving.places.clear();
        self.vacant.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: an order of rows, which are used again, instead of that in which they began.
    #[test]
    fn what_began_first_counts_as_used_last() {
        let mut under_way = UnderWay::default();
        let mut open = || under_way.open(WorkerId(0), None, Nanos::ZERO);
        let (first, second) = (open(), open());
        under_way.close(first);
        let mut open = || under_way.open(WorkerId(0), None, Nanos::ZERO);
        let (third, fourth) = (open(), open());
        assert_eq!((first, second, third, fourth), (0, 1, 0, 2), "a row is used again");
        let mut rows = [second, third, fourth].map(u64::from);
        under_way.in_order_of_use(&mut rows);
        assert_eq!(rows, [fourth, third, second].map(u64::from));
    }
}
