//! Request traces: one file per format, one row each in [`ALL`].

pub mod mooncake;

use wavetank_model::{Described, Result, find};

use crate::{Input, Loaded, Options};

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// Reads a trace.
    pub open: fn(&Input, &Options) -> Result<Loaded>,
}

impl Described for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
}

/// Every request trace format, alphabetical. `wavetank list formats` prints this table.
pub const ALL: &[Entry] = &[mooncake::ENTRY];

/// Opens `input` as the format called `name`.
pub fn open(name: &str, input: &Input, options: &Options) -> Result<Loaded> {
    (find("trace format", ALL, name)?.open)(input, options)
}
