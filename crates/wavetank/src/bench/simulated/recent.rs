//! What was moved last on a device, as far back as that matters.

use std::collections::VecDeque;

/// Who was moved: an entry, and where in it.
pub(super) type What = (u64, u64);

/// What was moved last, newest first, each once.
#[derive(Debug, Default)]
pub(super) struct Recent {
    moved: VecDeque<(What, u64)>,
    bytes: u64,
    /// As many bytes are kept at most.
    limit: u64,
}

impl Recent {
    /// Nothing yet, and `limit` bytes of what comes.
    pub(super) fn of(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Something is moved: how many bytes were since it was moved before, each counted once and its own with
    /// them; `None` if it was not, or longer ago than is kept.
    pub(super) fn touch(&mut self, what: What, bytes: u64) -> Option<u64> {
        if bytes == 0 || self.limit == 0 {
            return None;
        }
        let before = self.moved.iter().position(|(other, _)| *other == what);
        let apart = before.map(|at| self.moved.range(..=at).map(|(_, bytes)| bytes).sum());
        if let Some((_, bytes)) = before.and_then(|at| self.moved.remove(at)) {
            self.bytes -= bytes;
        }
        self.moved.push_front((what, bytes));
        self.bytes += bytes;
        while self.bytes > self.limit
            && let Some((_, bytes)) = self.moved.pop_back()
        {
            self.bytes -= bytes;
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
        let mut recent = Recent::of(100);
        let mut touch = |entry, bytes| recent.touch((entry, 0), bytes);
        assert_eq!(touch(1, 40), None);
        assert_eq!(touch(2, 30), None);
        assert_eq!((touch(2, 30), touch(2, 30)), (Some(30), Some(30)));
        assert_eq!(touch(1, 40), Some(70));
        assert_eq!((touch(3, 50), touch(2, 30)), (None, None), "40, 30 and 50 are too many");
        assert_eq!(touch(4, 101), None);
        assert_eq!(touch(4, 101), None, "longer than all that is kept");
        let mut nothing = Recent::default();
        assert_eq!((nothing.touch((1, 0), 1), nothing.touch((1, 0), 1)), (None, None));
    }
}
