//! Every scenario, a file each.

mod clock;
mod crash;
mod faults;
mod hostile;
mod plans;
mod recorder;
mod room;
mod signals;

use super::round::Round;

/// A row of the table.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// A problem, if something did not hold.
    pub(super) run: fn(&mut Round) -> Result<(), String>,
}

/// Every scenario, alphabetical.
pub(super) const ALL: &[Entry] = &[
    clock::ENTRY,
    crash::ENTRY,
    faults::ENTRY,
    hostile::ENTRY,
    plans::ENTRY,
    recorder::ENTRY,
    room::ENTRY,
    signals::ENTRY,
];
