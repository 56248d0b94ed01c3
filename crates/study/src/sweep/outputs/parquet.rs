//! Apache Parquet, for data frames: numbers as numbers, one group of rows, not compressed.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::super::Swept;
use super::Entry;
use super::columns::{Cells, Column};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { extension: "parquet", write };

fn write(swept: &Swept, out: &mut (dyn Write + Send)) -> io::Result<()> {
    save(&swept.columns(), out).map_err(|error| io::Error::other(error.to_string()))
}

fn save(columns: &[Column], out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().set_created_by(CREATED_BY.to_owned()).build());
    let mut file = SerializedFileWriter::new(out, schema, properties)?;
    let mut group = file.next_row_group()?;
    for column in columns {
        write_column(column, &mut group)?;
    }
    group.close()?;
    file.close().map(drop)
}

const CREATED_BY: &str = concat!("wavetank ", env!("CARGO_PKG_VERSION"));

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, converted) = match &column.cells {
        Cells::Whole(_) => (Physical::INT64, ConvertedType::NONE),
        Cells::Real(_) => (Physical::DOUBLE, ConvertedType::NONE),
        Cells::Truth(_) => (Physical::BOOLEAN, ConvertedType::NONE),
        Cells::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_converted_type(converted);
    field.build().map(Arc::new)
}

fn write_column<W: Write + Send>(
    column: &Column,
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    match &column.cells {
        Cells::Whole(cells) => put::<Int64Type, W>(cells, group),
        Cells::Real(cells) => put::<DoubleType, W>(cells, group),
        Cells::Truth(cells) => put::<BoolType, W>(cells, group),
        Cells::Text(cells) => {
            let bytes = |text: &String| ByteArray::from(text.as_str());
            let cells: Vec<_> = cells.iter().map(|text| text.as_ref().map(bytes)).collect();
            put::<ByteArrayType, W>(&cells, group)
        }
    }
}

/// The values that are there, and for each row whether one is.
fn put<T: DataType, W: Write + Send>(
    cells: &[Option<T::T>],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = cells.iter().flatten().cloned().collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let mut column = group.next_column()?.expect("as many columns as the schema has");
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}
