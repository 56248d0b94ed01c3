//! First come, first served; one point of priority is worth a second.

use super::Entry;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "fcfs",
    about: "first come, first served; a point of priority is worth a second",
    score: |waiting| waiting.priority - waiting.since_seconds,
};
