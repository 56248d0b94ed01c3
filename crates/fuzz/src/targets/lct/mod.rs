//! Recordings of storage calls (`.lct`), compressed or not.

mod check;
mod mutate;
mod seeds;

use super::Entry;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "lct",
    about: "recordings of storage calls",
    samples: &["../shared/data/lct"],
    seeds: seeds::all,
    changed: mutate::changed,
    check: check::check,
    // A few times the limit of a frame, besides the inputs.
    most_memory: 192 << 20,
};
