//! Two results side by side.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use wavetank::Result;
use wavetank_report::compare::{Comparison, Limits, Side};
use wavetank_report::render::comparison::{self, Scope};

use crate::value::{object_of, python_of};
use crate::waiting::wait_for;

/// A side: a file or a directory of repeats, or a report in memory with a name.
#[derive(FromPyObject)]
pub(crate) enum Given<'py> {
    Path(PathBuf),
    Report(String, Bound<'py, PyDict>),
}

/// A side that nobody of Python can change.
enum Owned {
    Path(PathBuf),
    Report(String, Value),
}

impl Given<'_> {
    fn owned(self) -> PyResult<Owned> {
        Ok(match self {
            Self::Path(path) => Owned::Path(path),
            Self::Report(name, report) => Owned::Report(name, Value::Object(object_of(&report)?)),
        })
    }
}

impl Owned {
    fn side(&self) -> Result<Side> {
        match self {
            Self::Path(path) => Side::read(path),
            Self::Report(name, report) => {
                Side::of_report(name, report).map_err(|error| error.within(name.clone()))
            }
        }
    }
}

/// Compares two sides: all of it, its table, and what of `fail_if` and `within` is not kept.
#[pyfunction]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    sides: (Given<'py>, Given<'py>),
    fail_if: Vec<String>,
    within: Vec<String>,
) -> PyResult<(Bound<'py, PyAny>, String, Vec<String>)> {
    let (before, after) = (sides.0.owned()?, sides.1.owned()?);
    let compared = wait_for(py, None, move |_| {
        let limits = Limits::parse(&fail_if, &within)?;
        judged(&before.side()?, &after.side()?, &limits)
    });
    let (comparison, failed) = compared?;
    let table = comparison::table(&comparison, Scope::Headline);
    Ok((python_of(py, &comparison.json())?, table, failed))
}

fn judged(before: &Side, after: &Side, limits: &Limits) -> Result<(Comparison, Vec<String>)> {
    let compared = Comparison::of(before, after)?;
    let failed = comparison::failures(&limits.judge(&compared)?);
    Ok((compared, failed))
}
