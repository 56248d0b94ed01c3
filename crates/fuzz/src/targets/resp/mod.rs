//! Commands of Redis clients, parsed and answered.

mod check;
mod mutate;

use super::Entry;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "resp",
    about: "commands of Redis clients",
    samples: &[],
    seeds: mutate::seeds,
    changed: mutate::changed,
    check: check::check,
    // What a connection may have, a server with its memory, and the inputs.
    most_memory: 192 << 20,
};
