//! Whether the tiers behind memory do what they should: watched from their counts, second by second.

use std::sync::{Mutex, PoisonError};

use wavetank_calls::Status;

/// Looks without a failure after which a tier is trusted again.
const FORGIVEN: u32 = 30;
/// Looks without an end of anything that is under way, after which nothing is expected any more.
const HANGING: u32 = 30;

/// What is known of the tiers behind memory.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    tiers: Vec<Tier>,
    /// Looks at which something was under way and nothing had ended since the one before.
    idle_looks: u32,
    ended: u64,
}

#[derive(Clone, Debug, Default)]
struct Tier {
    failed: u64,
    worked: u64,
    /// Looks since the last failure, if nothing has worked since.
    broken: Option<u32>,
}

impl Health {
    /// Looks once more.
    pub(super) fn look(&self, status: &Status) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let adapters = &status.background.adapters;
        seen.tiers.resize(adapters.len(), Tier::default());
        for (tier, now) in seen.tiers.iter_mut().zip(adapters) {
            let (failed, worked) = (now.failed, now.copied + now.loaded);
            tier.broken = match tier.broken {
                // What failed in the same second as something worked may have come after it.
                _ if failed > tier.failed => Some(0),
                _ if worked > tier.worked => None,
                Some(looks) if looks < FORGIVEN => Some(looks + 1),
                _ => None,
            };
            (tier.failed, tier.worked) = (failed, worked);
        }
        let ended = adapters.iter().map(|now| now.failed + now.copied + now.loaded + now.dropped).sum();
        let is_waiting = status.stores_in_flight + status.loads_in_flight > 0;
        seen.idle_looks = if is_waiting && ended == seen.ended { seen.idle_looks + 1 } else { 0 };
        seen.ended = ended;
    }

    /// What does not work; nothing if all does.
    pub(super) fn problem(&self) -> Option<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.idle_looks >= HANGING {
            return Some("a tier behind memory does not answer".to_owned());
        }
        let broken = seen.tiers.iter().position(|tier| tier.broken.is_some())?;
        Some(format!("l2.{broken} fails to read or write"))
    }
}

#[cfg(test)]
mod tests {
    use wavetank_calls::{Background, Behind};

    use super::*;

    fn status(failed: u64, copied: u64, stores_in_flight: u64) -> Status {
        let adapters = vec![Behind { failed, copied, ..Behind::default() }];
        let background = Background { adapters, ..Background::default() };
        Status { background, stores_in_flight, ..Status::default() }
    }

    /// Broken by: a failure that is held against a tier that works again, or never forgiven, or that a
    /// success of the same second hides.
    #[test]
    fn a_tier_is_broken_from_a_failure_to_a_success() {
        let health = Health::default();
        health.look(&status(0, 5, 0));
        assert_eq!(health.problem(), None);
        health.look(&status(1, 5, 0));
        assert_eq!(health.problem().unwrap(), "l2.0 fails to read or write");
        health.look(&status(1, 6, 0));
        assert_eq!(health.problem(), None);
        health.look(&status(2, 7, 0));
        assert!(health.problem().is_some());
        health.look(&status(2, 8, 0));
        assert_eq!(health.problem(), None);
        health.look(&status(3, 8, 0));
        (0..FORGIVEN).for_each(|_| health.look(&status(3, 8, 0)));
        assert!(health.problem().is_some());
        health.look(&status(3, 8, 0));
        assert_eq!(health.problem(), None);
    }

    /// Broken by: work under way that is taken for a hang while some of it ends.
    #[test]
    fn a_tier_that_ends_nothing_does_not_answer() {
        let health = Health::default();
        (0..100).for_each(|ended| health.look(&status(0, ended, 3)));
        assert_eq!(health.problem(), None);
        (0..HANGING).for_each(|_| health.look(&status(0, 99, 3)));
        assert!(health.problem().unwrap().contains("does not answer"));
        health.look(&status(0, 99, 0));
        assert_eq!(health.problem(), None);
    }
}
