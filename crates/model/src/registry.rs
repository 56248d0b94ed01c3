//! Tables of choices: every plug-in folder has a `const ALL` of entries, found by name here.

use crate::{Error, Result};

/// What every row of a table of choices can say about itself.
pub trait Described {
    /// The name users type.
    fn name(&self) -> &'static str;
    /// One line for `wavetank list`.
    fn about(&self) -> &'static str;
}

/// The row called `name`; otherwise an error that lists the names there are.
pub fn find<'t, T: Described>(kind: &str, table: &'t [T], name: &str) -> Result<&'t T> {
    table.iter().find(|row| row.name() == name).ok_or_else(|| {
        let known: Vec<_> = table.iter().map(Described::name).collect();
        Error::usage(format!("unknown {kind} \"{name}\"")).hint(format!("known: {}", known.join(", ")))
    })
}
