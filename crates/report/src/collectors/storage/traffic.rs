//! Bytes in and out of a tier, whoever they are for.

use wavetank_model::StoreFact;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Out of a tier.
    Read,
    /// Into a tier.
    Write,
}

/// What went in and out of a tier: for callers, and to make room or to move up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Entries read.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Entries written.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
}

impl Traffic {
    pub(super) fn add(&mut self, direction: Direction, bytes: u64) {
        let (entries, sum) = match direction {
            Direction::Read => (&mut self.reads, &mut self.read_bytes),
            Direction::Write => (&mut self.writes, &mut self.written_bytes),
        };
        *entries += 1;
        *sum += bytes;
    }

    /// Bytes both ways.
    pub fn bytes(&self) -> u64 {
        self.read_bytes + self.written_bytes
    }
}

/// The tiers whose device a fact keeps busy, and which way. What is promoted was read by the hit before it.
pub(super) fn flows(fact: StoreFact) -> [Option<(usize, Direction)>; 2] {
    let read = |tier: u8| Some((usize::from(tier), Direction::Read));
    let write = |tier: u8| Some((usize::from(tier), Direction::Write));
    match fact {
        StoreFact::Hit { tier } => [read(tier), None],
        StoreFact::Stored { tier } => [None, write(tier)],
        StoreFact::Demoted { from, to } => [read(from), write(to)],
        StoreFact::Promoted { to, .. } => [None, write(to)],
        _ => [None, None],
    }
}
