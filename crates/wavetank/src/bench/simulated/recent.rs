//! What was moved last, whatever tier it is in, as far back as that matters: all of it goes through the same
//! processor's cache, what a drive moves too.

use std::collections::VecDeque;

use wavetank_model::Operation;
use wavetank_sim::media::Before;

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
    /// How often it was read again, and nothing else.
    repeats: u32,
    bytes: u64,
}

impl Recent {
    /// Nothing yet, and `limit` bytes of what comes.
    pub(super) fn of(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Something is moved: what was done to it before, bytes moved since counted once; `None` if nothing was,
    /// or longer ago than is kept.
    pub(super) fn touch(&mut self, what: What, operation: Operation, bytes: u64) -> Option<Before> {
        if bytes == 0 || self.limit == 0 {
            return None;
        }
        let before = self.moved.iter().position(|other| other.what == what).map(|at| self.take(at));
        let is_repeat = |before: &Before| (before.after, operation) == (Operation::Read, Operation::Read);
        let repeats = before.filter(is_repeat).map_or(0, |before| before.repeats + 1);
        self.moved.push_front(Touched { what, operation, repeats, bytes });
        self.bytes += bytes;
        while self.bytes > self.limit
            && let Some(moved) = self.moved.pop_back()
        {
            self.bytes -= moved.bytes;
        }
        before
    }

    /// Takes out what was moved at this place.
    fn take(&mut self, at: usize) -> Before {
        let apart_bytes = self.moved.range(..=at).map(|moved| moved.bytes).sum();
        let moved = self.moved.remove(at).expect("it was found there");
        self.bytes -= moved.bytes;
        Before { after: moved.operation, repeats: moved.repeats, apart_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: bytes that are counted twice, an entry that is forgotten too soon or never, repeats that go
    /// on over a write.
    #[test]
    fn bytes_since_are_counted_once() {
        let read = Operation::Read;
        let mut recent = Recent::of(100);
        let mut touch = |operation| recent.touch((0, 2, 0), operation, 30);
        let before = |after, repeats| Some(Before { after, repeats, apart_bytes: 30 });
        assert_eq!((touch(Operation::Write), touch(read)), (None, before(Operation::Write, 0)));
        assert_eq!((touch(read), touch(read)), (before(read, 0), before(read, 1)));
        assert_eq!((touch(Operation::Write), touch(read)), (before(read, 2), before(Operation::Write, 0)));
        assert_eq!(touch(read), before(read, 0), "a write begins anew");
        let mut recent = Recent::of(100);
        let mut touch = |entry, bytes| recent.touch((0, entry, 0), read, bytes).map(|it| it.apart_bytes);
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
