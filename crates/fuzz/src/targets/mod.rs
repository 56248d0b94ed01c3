//! What is fuzzed: a reader or a door each, one file and one row.

mod bench_config;
mod entries;
mod flags;
mod kv_events;
mod lct;
mod mock;
mod native;
mod operations;
mod plan;
mod points;
mod requests;
mod resp;
mod results;
mod run_folder;
mod serve_config;
mod sweep;
mod tier_profile;
mod timing;

use wavetank_model::Draw;

use crate::said::Met;

/// A row of the table.
pub struct Entry {
    /// The name that is typed.
    pub name: &'static str,
    /// What is read.
    pub about: &'static str,
    /// Folders of files to begin with, from the repository's root, as far as they are there.
    pub samples: &'static [&'static str],
    /// What it begins with besides.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// An input changed a few times, with parts of another.
    pub changed: fn(&[u8], &[u8], &mut Draw) -> Vec<u8>,
    /// Panics where a rule is broken.
    pub check: fn(&[u8]) -> Met,
    /// What a process may take: the inputs it keeps, and what one of them needs.
    pub most_memory: usize,
}

/// Every target, alphabetical.
pub const ALL: &[Entry] = &[
    bench_config::ENTRY,
    entries::ENTRY,
    flags::ENTRY,
    kv_events::ENTRY,
    lct::ENTRY,
    mock::ENTRY,
    native::ENTRY,
    operations::ENTRY,
    plan::ENTRY,
    points::ENTRY,
    requests::ENTRY,
    resp::ENTRY,
    results::ENTRY,
    run_folder::ENTRY,
    serve_config::ENTRY,
    sweep::ENTRY,
    tier_profile::ENTRY,
    timing::ENTRY,
];

/// The row called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|target| target.name == name)
}

/// Texts as inputs.
fn inputs(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
