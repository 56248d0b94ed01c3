//! What happens besides calls, counted.

use serde::Serialize;

/// What happened besides calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Background {
    /// In memory.
    pub l1: Passes,
    /// In each tier behind it.
    pub adapters: Vec<Behind>,
}

/// What a tier's eviction loop did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Passes {
    /// Objects that left.
    pub evicted: u64,
    /// Looks that found the tier full enough.
    pub passes: u64,
}

/// What happened in a tier behind memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Behind {
    /// What its loop did.
    #[serde(flatten)]
    pub evictions: Passes,
    /// Objects that were copied to it.
    pub copied: u64,
    /// Objects that found no room there.
    pub dropped: u64,
    /// Objects whose copies to it were put off, because too much was on its way there already.
    pub postponed: u64,
    /// Those of them that left memory before they could be copied.
    pub skipped: u64,
    /// Objects that a device failed to write or read.
    pub failed: u64,
    /// Objects that were loaded from it.
    pub loaded: u64,
}

impl Background {
    /// The sum over all tiers behind memory.
    pub fn behind(&self) -> Behind {
        self.adapters.iter().fold(Behind::default(), |sum, tier| Behind {
            evictions: Passes {
                evicted: sum.evictions.evicted + tier.evictions.evicted,
                passes: sum.evictions.passes + tier.evictions.passes,
            },
            copied: sum.copied + tier.copied,
            dropped: sum.dropped + tier.dropped,
            postponed: sum.postponed + tier.postponed,
            skipped: sum.skipped + tier.skipped,
            failed: sum.failed + tier.failed,
            loaded: sum.loaded + tier.loaded,
        })
    }

    /// What happened since it was `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let adapters = self.adapters.iter().zip(&earlier.adapters);
        Self {
            l1: self.l1.since(earlier.l1),
            adapters: adapters
                .map(|(now, then)| Behind {
                    evictions: now.evictions.since(then.evictions),
                    copied: now.copied - then.copied,
                    dropped: now.dropped - then.dropped,
                    postponed: now.postponed - then.postponed,
                    skipped: now.skipped - then.skipped,
                    failed: now.failed - then.failed,
                    loaded: now.loaded - then.loaded,
                })
                .collect(),
        }
    }
}

impl Passes {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { evicted: self.evicted - earlier.evicted, passes: self.passes - earlier.passes }
    }

    pub(crate) fn add(&mut self, left: Option<u64>) {
        self.passes += u64::from(left.is_some());
        self.evicted += left.unwrap_or(0);
    }
}
