//! The points of a sweep as a table.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use wavetank_study::sweep::{Cells, Column, Swept};

use crate::columns::stream_of;

/// One row per point, a column for each axis and metric. Anything that takes Arrow streams takes it.
#[pyclass(frozen, module = "wavetank")]
pub(crate) struct Points {
    batch: RecordBatch,
}

impl Points {
    pub(crate) fn of(swept: &Swept) -> PyResult<Self> {
        let columns = swept.columns();
        let named = columns.iter().map(|column| (column.name.as_str(), array(column), true));
        let batch = RecordBatch::try_from_iter_with_nullable(named);
        let failed = |error: ArrowError| PyRuntimeError::new_err(error.to_string());
        Ok(Self { batch: batch.map_err(failed)? })
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
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Whoever asks for other types casts what comes, as the protocol allows.
        drop(requested_schema);
        stream_of(py, self.batch.clone())
    }

    fn __repr__(&self) -> String {
        format!("<wavetank.Points: {} rows>", self.batch.num_rows())
    }
}
