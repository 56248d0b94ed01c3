//! Which tiers a fact moves bytes in and out of, whoever they are for.

use wavetank_model::{Operation, StoreFact};

/// The tiers whose device a fact keeps busy, and how. What is promoted was read by the hit before it.
pub(super) fn flows(fact: StoreFact) -> [Option<(usize, Operation)>; 2] {
    let read = |tier: u8| Some((usize::from(tier), Operation::Read));
    let write = |tier: u8| Some((usize::from(tier), Operation::Write));
    match fact {
        StoreFact::Hit { tier } => [read(tier), None],
        StoreFact::Stored { tier } => [None, write(tier)],
        StoreFact::Demoted { from, to } => [read(from), write(to)],
        StoreFact::Promoted { to, .. } => [None, write(to)],
        _ => [None, None],
    }
}
