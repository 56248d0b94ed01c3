//! What was moved last, whatever tier it is in, as far back as that matters: all of it goes through the same
//! processor's cache, what a drive moves too.

use std::collections::VecDeque;

use wavetank_model::Operation;

/// What was moved: of which tier, which entry, and where in it.
pub(super) type What = (usize, u64, u64);

/// What was moved last, newest first, each once.
#[derive(Debug, Default)]
pub(super) struct Recent {
    moved: VecDeque<Touched>,
    bytes: u64,
    /// As many bytes are kept at most.
    limit: u64,
}

/// One of them, and what was done to it last.
#[derive(Debug)]
struct Touched {
    what: What,
    operation: Operation,
    bytes: u64,
}

impl Recent {
    /// Nothing yet, and `limit` bytes of what comes.
    pub(super) fn of(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Something is moved: what was done to it before, and how many bytes were moved since, each counted once
    /// and its own with them; `None` if nothing was, or longer ago than is kept.
    pub(super) fn touch(&mut self, what: What, operation: Operation, bytes: u64) -> Option<(Operation, u64)> {
        if bytes == 0 || self.limit == 0 {
            return None;
        }
        let before = self.moved.iter().position(|other| other.what == what);
        let since = |at: usize| self.moved.range(..=at).map(|moved| moved.bytes).sum();
        let apart = before.map(|at| (self.moved[at].operation, since(at)));
        if let Some(moved) = before.and_then(|at| self.moved.remove(at)) {
            self.bytes -= moved.bytes;
        }
        self.moved.push_front(Touched { what, operation, bytes });
        self.bytes += bytes;
        while self.bytes > self.limit
            && let Some(moved) = self.moved.pop_back()
        {
            self.bytes -= moved.bytes;
        }
        apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: bytes that are counted twice, an entry that is forgotten too soon or never.
    #[test]
    fn bytes_since_are_counted_once() {
        let read = Operation::Read;
        let mut recent = Recent::of(100);
        assert_eq!(recent.touch((0, 2, 0), Operation::Write, 30), None);
        assert_eq!(recent.touch((0, 2, 0), read, 30), Some((Operation::Write, 30)));
        let mut recent = Recent::of(100);
        let mut touch = |entry, bytes| recent.touch((0, entry, 0), read, bytes).map(|(_, apart)| apart);
        assert_eq!(touch(1, 40), None);
        assert_eq!(touch(2, 30), None);
        assert_eq!((touch(2, 30), touch(2, 30)), (Some(30), Some(30)));
        assert_eq!(touch(1, 40), Some(70));
        assert_eq!((touch(3, 50), touch(2, 30)), (None, None), "40, 30 and 50 are too many");
        assert_eq!(touch(4, 101), None);
        assert_eq!(touch(4, 101), None, "longer than all that is kept");
        let mut nothing = Recent::default();
        assert_eq!((nothing.touch((0, 1, 0), read, 1), nothing.touch((0, 1, 0), read, 1)), (None, None));
    }
}
