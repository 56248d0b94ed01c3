//! When an eviction loop looks.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use wavetank_model::Nanos;

/// The times of a loop's passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ticks {
    /// As they were recorded or inferred, ascending.
    At(Vec<Nanos>),
    /// It sleeps, then works.
    Sleeping {
        /// The first pass.
        first: Nanos,
        /// From the end of a pass to the next one.
        sleep: Nanos,
        /// What a pass takes that lets objects leave.
        work: Nanos,
    },
    /// Never.
    Never,
}

impl Default for Ticks {
    /// A second from the start, then a second after each.
    fn default() -> Self {
        Self::Sleeping { first: SECOND, sleep: SECOND, work: Nanos::ZERO }
    }
}

const SECOND: Nanos = Nanos(1_000_000_000);

/// A loop that goes on.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    next: Option<Nanos>,
    rest: Rest,
}

#[derive(Clone, Debug)]
enum Rest {
    Listed(VecDeque<Nanos>),
    Sleeping { sleep: Nanos, work: Nanos },
}

impl Loop {
    pub(crate) fn new(ticks: &Ticks) -> Self {
        let (next, rest) = match ticks {
            Ticks::At(times) => {
                let mut times: VecDeque<Nanos> = times.iter().copied().collect();
                (times.pop_front(), Rest::Listed(times))
            }
            Ticks::Sleeping { first, sleep, work } => {
                (Some(*first), Rest::Sleeping { sleep: *sleep, work: *work })
            }
            Ticks::Never => (None, Rest::Listed(VecDeque::new())),
        };
        Self { next, rest }
    }

    /// The next pass.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.next
    }

    /// It was made, and did something or not.
    pub(crate) fn passed(&mut self, at: Nanos, triggered: bool) {
        self.next = match &mut self.rest {
            Rest::Listed(times) => times.pop_front(),
            Rest::Sleeping { sleep, work } => Some(at + *sleep + if triggered { *work } else { Nanos::ZERO }),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_works_delays_the_next() {
        let mut looping = Loop::new(&Ticks::Sleeping { first: Nanos(5), sleep: Nanos(10), work: Nanos(3) });
        assert_eq!(looping.next(), Some(Nanos(5)));
        looping.passed(Nanos(5), true);
        assert_eq!(looping.next(), Some(Nanos(18)));
        looping.passed(Nanos(18), false);
        assert_eq!(looping.next(), Some(Nanos(28)));
        let mut listed = Loop::new(&Ticks::At(vec![Nanos(1), Nanos(4)]));
        listed.passed(Nanos(1), true);
        assert_eq!(listed.next(), Some(Nanos(4)));
        listed.passed(Nanos(4), true);
        assert_eq!(listed.next(), None);
        assert_eq!(Loop::new(&Ticks::Never).next(), None);
    }
}
