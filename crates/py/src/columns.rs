//! Rows as columns: Arrow arrays, handed over through the C data interface.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, ListArray, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray, StructArray, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// One column of rows of `T`.
pub(crate) struct Column<T> {
    pub(crate) name: &'static str,
    pub(crate) values: Values<T>,
}

/// Where the values of a column are found.
pub(crate) enum Values<T> {
    Text(fn(&T) -> Option<&str>),
    Number(fn(&T) -> Option<f64>),
    Whole(fn(&T) -> Option<u32>),
    Truth(fn(&T) -> bool),
    Ids(fn(&T) -> &[u64]),
    Texts(fn(&T) -> &[String]),
    /// Rows inside a row: their fields, and a list of them for each row.
    Rows(fn() -> Fields, fn(&[T]) -> Result<ArrayRef, ArrowError>),
}

/// What rows of a kind are made of.
pub(crate) trait Tabular: Sized + 'static {
    const COLUMNS: &'static [Column<Self>];

    fn fields() -> Fields {
        let field = |column: &Column<Self>| Field::new(column.name, column.values.kind(), true);
        Self::COLUMNS.iter().map(field).collect()
    }

    fn arrays(rows: &[Self]) -> Result<Vec<ArrayRef>, ArrowError> {
        Self::COLUMNS.iter().map(|column| column.values.array(rows)).collect()
    }
}

impl<T> Values<T> {
    fn kind(&self) -> DataType {
        match self {
            Self::Text(_) => DataType::Utf8,
            Self::Number(_) => DataType::Float64,
            Self::Whole(_) => DataType::UInt32,
            Self::Truth(_) => DataType::Boolean,
            Self::Ids(_) => DataType::List(item(DataType::UInt64)),
            Self::Texts(_) => DataType::List(item(DataType::Utf8)),
            Self::Rows(fields, _) => DataType::List(item(DataType::Struct(fields()))),
        }
    }

    fn array(&self, rows: &[T]) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Text(of) => Arc::new(StringArray::from_iter(rows.iter().map(of))),
            Self::Number(of) => Arc::new(Float64Array::from_iter(rows.iter().map(of))),
            Self::Whole(of) => Arc::new(UInt32Array::from_iter(rows.iter().map(of))),
            Self::Truth(of) => Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(of(row))))),
            Self::Ids(of) => {
                let mut lists = ListBuilder::new(UInt64Builder::new());
                rows.iter().for_each(|row| lists.append_value(of(row).iter().copied().map(Some)));
                Arc::new(lists.finish())
            }
            Self::Texts(of) => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                rows.iter().for_each(|row| lists.append_value(of(row).iter().map(Some)));
                Arc::new(lists.finish())
            }
            Self::Rows(_, lists) => lists(rows)?,
        })
    }
}

fn item(kind: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", kind, true))
}

/// A list of rows for each row.
pub(crate) fn lists<T, I: Tabular + Clone>(
    rows: &[T],
    inside: fn(&T) -> &[I],
) -> Result<ArrayRef, ArrowError> {
    let all: Vec<I> = rows.iter().flat_map(inside).cloned().collect();
    let structs = StructArray::try_new_with_length(I::fields(), I::arrays(&all)?, None, all.len())?;
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|row| inside(row).len()));
    let kind = item(DataType::Struct(I::fields()));
    Ok(Arc::new(ListArray::try_new(kind, offsets, Arc::new(structs), None)?))
}

/// How many rows are made columns at a time.
const BATCH: usize = 8192;

/// Rows that come one by one, as batches.
struct Batches<T, R> {
    schema: SchemaRef,
    rows: R,
    batch: Vec<T>,
}

impl<T: Tabular, R: Iterator<Item = wavetank::Result<T>>> Iterator for Batches<T, R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch.clear();
        for row in self.rows.by_ref().take(BATCH) {
            match row {
                Ok(row) => self.batch.push(row),
                Err(error) => return Some(Err(ArrowError::ExternalError(Box::new(error)))),
            }
        }
        let rows = self.batch.as_slice();
        let made = || RecordBatch::try_new(Arc::clone(&self.schema), T::arrays(rows)?);
        (!rows.is_empty()).then(made)
    }
}

impl<T: Tabular, R: Iterator<Item = wavetank::Result<T>>> RecordBatchReader for Batches<T, R> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A stream of `rows` for whoever reads Arrow.
pub(crate) fn stream<'py, T: Tabular + Send>(
    py: Python<'py>,
    rows: impl Iterator<Item = wavetank::Result<T>> + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = Arc::new(Schema::new(T::fields()));
    let batches = Box::new(Batches { schema, rows, batch: Vec::new() });
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
}

/// A stream of rows that are columns already.
pub(crate) fn stream_of(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = batch.schema();
    let batches = Box::new(RecordBatchIterator::new([Ok(batch)], schema));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
}
