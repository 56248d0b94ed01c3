//! The points of a sweep as a table.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use wavetank_study::sweep::{Cells, Column, Swept};

use crate::columns::stream_of;
use crate::value::{pickled, unpickled};

/// One row per point, a column for each axis and metric. Anything that takes Arrow streams takes it.
#[pyclass(frozen, module = "wavetank._wavetank")]
pub(crate) struct Points {
    columns: Vec<Column>,
    rows: usize,
}

impl Points {
    pub(crate) fn of(swept: &Swept) -> Self {
        Self { columns: swept.columns(), rows: swept.rows.len() }
    }

    fn batch(&self) -> PyResult<RecordBatch> {
        let named = self.columns.iter().map(|column| (column.name.as_str(), array(column), true));
        let batch = RecordBatch::try_from_iter_with_nullable(named);
        batch.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

fn array(column: &Column) -> ArrayRef {
    match &column.cells {
        Cells::Whole(cells) => Arc::new(Int64Array::from(cells.clone())),
        Cells::Real(cells) => Arc::new(Float64Array::from(cells.clone())),
        Cells::Truth(cells) => Arc::new(BooleanArray::from(cells.clone())),
        Cells::Text(cells) => Arc::new(StringArray::from(cells.clone())),
    }
}

#[pymethods]
impl Points {
    /// Of what another one was pickled as.
    #[new]
    fn new(columns: &[u8]) -> PyResult<Self> {
        let (columns, rows) = unpickled(columns)?;
        Ok(Self { columns, rows })
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>,)> {
        pickled(py, &(&self.columns, self.rows))
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Whoever asks for other types casts what comes, as the protocol allows.
        drop(requested_schema);
        stream_of(py, self.batch()?)
    }

    fn __repr__(&self) -> String {
        format!("<wavetank.Points: {} rows>", self.rows)
    }
}
