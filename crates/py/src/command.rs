//! The command line inside Python: `python -m wavetank` and the `wavetank` script of the package.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these words, the first of which is its own name, and gives its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| wavetank_cli::run(words))
}
