//! Weighted shortest processing time (Smith 1956): weight over the prompt tokens that must be computed.

use super::Entry;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "wspt",
    about: "least uncached prompt first, weighted by priority",
    score: |waiting| {
        let work = waiting.input_tokens.saturating_sub(waiting.cached_tokens).max(1);
        (1.0 + waiting.priority) / f64::from(work)
    },
};
