//! What goes around a backend: one file per wrapper, one row each in [`ALL`]. They nest in any order.

pub mod fault;
pub mod record;
pub mod throttle;
pub mod verify;

use std::sync::Arc;

use wavetank_model::{Result, described, find};

use crate::backend::Backend;
use crate::options::Options;

/// Puts a wrapper with these options around a backend.
pub type Wrap = fn(Arc<dyn Backend>, &Options) -> Result<Arc<dyn Backend>>;

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// The options it takes, with a line each.
    pub options: &'static [(&'static str, &'static str)],
    /// Puts one around a backend.
    pub wrap: Wrap,
}

described!(Entry);

/// Every wrapper, alphabetical. `wavetank list wrappers` prints this table.
pub const ALL: &[Entry] = &[fault::ENTRY, record::ENTRY, throttle::ENTRY, verify::ENTRY];

/// The wrapper called `name`.
pub fn wrapper(name: &str) -> Result<&'static Entry> {
    find("wrapper", ALL, name)
}
