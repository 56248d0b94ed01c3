//! What holds bytes: one file per backend, one row each in [`ALL`].

mod buffered;
mod direct;
mod memory;
mod null;
mod object;
mod redis;

use std::collections::BTreeMap;
use std::sync::Arc;

use wavetank_model::{Described, Error, Result, find};

use crate::backend::{Backend, Caps};

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// What it can do.
    pub caps: Caps,
    /// The options it takes besides `capacity`, with a line each.
    pub options: &'static [(&'static str, &'static str)],
    /// Opens one.
    pub open: fn(&Site) -> Result<Arc<dyn Backend>>,
}

impl Described for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
}

/// Where a backend is and how it works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// A directory, device number or address; empty where there is none.
    pub location: String,
    /// How many bytes of entries it may hold; no limit when absent.
    pub capacity_bytes: Option<u64>,
    /// Its options by name; only those of its row.
    pub options: BTreeMap<String, String>,
}

impl Site {
    /// The option `name` as a `T`, or `default`.
    pub fn option<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T> {
        let Some(text) = self.options.get(name) else { return Ok(default) };
        text.parse().map_err(|_| Error::usage(format!("option {name}: cannot read \"{text}\"")))
    }
}

/// Every backend, alphabetical. `wavetank list backends` prints this table.
pub const ALL: &[Entry] =
    &[buffered::ENTRY, direct::ENTRY, memory::ENTRY, null::ENTRY, object::ENTRY, redis::ENTRY];

/// The backend called `name`.
pub fn backend(name: &str) -> Result<&'static Entry> {
    find("backend", ALL, name)
}
