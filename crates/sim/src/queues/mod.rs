//! Who leaves a router's queue first: one file per policy, one row each in [`ALL`].

mod fcfs;
mod lcfs;
mod wspt;

use wavetank_model::{Result, described, find};

/// What a policy knows of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// When it entered the queue, in simulated seconds.
    pub since_seconds: f64,
    /// Soft priority of the trace, not negative.
    pub priority: f64,
    /// Prompt tokens.
    pub input_tokens: u32,
    /// Prompt tokens the best worker had cached when it arrived.
    pub cached_tokens: u32,
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// The highest score leaves first; ties in order of entry. Strict priorities come before any score.
    pub score: fn(&Waiting) -> f64,
}

described!(Entry);

/// Every queue policy, alphabetical. `wavetank list queues` prints this table.
pub const ALL: &[Entry] = &[fcfs::ENTRY, lcfs::ENTRY, wspt::ENTRY];

/// The policy called `name`.
pub fn policy(name: &str) -> Result<&'static Entry> {
    find("queue policy", ALL, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_scores_finitely_and_likes_priority() {
        let plain = Waiting { since_seconds: 5.0, priority: 0.0, input_tokens: 100, cached_tokens: 100 };
        for entry in ALL {
            let score = (entry.score)(&plain);
            assert!(score.is_finite(), "{}", entry.name);
            assert!((entry.score)(&Waiting { priority: 1000.0, ..plain }) > score, "{}", entry.name);
        }
    }
}
