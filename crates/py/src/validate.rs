//! A measured run against its simulation.

use std::path::PathBuf;

use pyo3::prelude::*;
use wavetank_study::validate::Case;

use crate::value::python_of;
use crate::waiting::wait_for;

/// Simulates the measured run in `folder`: its report, the table, and what is off by more than `tolerance`
/// percent.
#[pyfunction]
pub(crate) fn validate(
    py: Python<'_>,
    folder: PathBuf,
    tolerance: Option<f64>,
) -> PyResult<(Bound<'_, PyAny>, String, Option<String>)> {
    let (report, table, failure) = wait_for(py, None, move |_| {
        let case = Case::open(&folder)?;
        tolerance.map_or(Ok(()), |percent| case.check_tolerance(percent))?;
        let validated = case.replay()?;
        let failure = tolerance.and_then(|percent| validated.failure(percent));
        let table = validated.table();
        Ok((validated.report, table, failure))
    })?;
    Ok((python_of(py, &report)?, table, failure))
}
