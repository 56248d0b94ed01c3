//! Last come, first served: a bad policy to compare others with.

use super::Entry;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "lcfs",
    about: "last come, first served: for comparison, not for production",
    score: |waiting| waiting.priority + waiting.since_seconds,
};
