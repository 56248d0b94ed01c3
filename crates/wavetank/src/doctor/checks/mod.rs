//! What is looked at: one file per check, one row each in [`ALL`].

mod clock;
mod direct_io;
mod disk_space;
mod file_system;
mod gpu;
mod huge_pages;
mod io_uring;
mod load;
mod locked_memory;
mod memory;
mod open_files;
mod processors;
mod swap;
mod timers;
mod tracing;

use wavetank_model::described;

use super::finding::Finding;
use super::subject::Subject;

/// A row of the table.
pub struct Check {
    /// What it is called.
    pub name: &'static str,
    /// What it is about, in one line.
    pub about: &'static str,
    look: fn(&Subject) -> Finding,
}

impl Check {
    /// What it finds.
    pub(super) fn look(&self, subject: &Subject) -> Finding {
        (self.look)(subject)
    }
}

described!(Check);

/// Every check, alphabetical. `wavetank list checks` prints this table.
pub const ALL: &[Check] = &[
    clock::ENTRY,
    direct_io::ENTRY,
    disk_space::ENTRY,
    file_system::ENTRY,
    gpu::ENTRY,
    huge_pages::ENTRY,
    io_uring::ENTRY,
    load::ENTRY,
    locked_memory::ENTRY,
    memory::ENTRY,
    open_files::ENTRY,
    processors::ENTRY,
    swap::ENTRY,
    timers::ENTRY,
    tracing::ENTRY,
];
