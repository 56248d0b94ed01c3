//! Apache Parquet, for data frames: numbers as numbers, one group of rows, not compressed.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use super::super::{Row, Swept, metric};
use super::{Entry, cell};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { extension: "parquet", write };

/// A column, one value or none for each row.
struct Column {
    name: String,
    cells: Cells,
}

enum Cells {
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Truth(Vec<Option<bool>>),
    Text(Vec<Option<ByteArray>>),
}

fn write(swept: &Swept, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let columns = columns(swept);
    save(&columns, out).map_err(|error| io::Error::other(error.to_string()))
}

fn save(columns: &[Column], out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let fields = columns.iter().map(Column::field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().set_created_by(CREATED_BY.to_owned()).build());
    let mut file = SerializedFileWriter::new(out, schema, properties)?;
    let mut group = file.next_row_group()?;
    for column in columns {
        column.write(&mut group)?;
    }
    group.close()?;
    file.close().map(drop)
}

const CREATED_BY: &str = concat!("wavetank ", env!("CARGO_PKG_VERSION"));

fn columns(swept: &Swept) -> Vec<Column> {
    let rows = &swept.rows;
    let text = |of: &dyn Fn(&Row) -> String| {
        Cells::Text(rows.iter().map(|row| Some(ByteArray::from(of(row).into_bytes()))).collect())
    };
    let named = |name: &str, cells: Cells| Column { name: name.to_owned(), cells };
    let mut columns = vec![
        named("point", Cells::Whole(rows.iter().map(|row| Some(row.point as i64)).collect())),
        named("plan_hash", text(&|row| row.plan_hash.clone())),
    ];
    for (at, name) in swept.head.axes.iter().enumerate() {
        columns.push(named(name, axis(rows.iter().map(|row| &row.values[at]).collect())));
    }
    for (at, metric) in metric::all().iter().enumerate() {
        let values = rows.iter().map(|row| Some(row.metrics[at]).filter(|value| value.is_finite()));
        let cells = match metric.is_whole {
            true => Cells::Whole(values.map(|value| value.map(|value| value as i64)).collect()),
            false => Cells::Real(values.collect()),
        };
        columns.push(named(&metric.name, cells));
    }
    columns.push(named("meets_sla", Cells::Truth(rows.iter().map(|row| row.meets_sla).collect())));
    columns.push(named("pareto", Cells::Truth(rows.iter().map(|row| Some(row.is_on_front)).collect())));
    columns.push(named("warnings", text(&|row| row.warnings.join("; "))));
    columns
}

/// Numbers where all are, else text.
fn axis(values: Vec<&Value>) -> Cells {
    let all = |is: &dyn Fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
    if all(&Value::is_i64) {
        return Cells::Whole(values.iter().map(|value| value.as_i64()).collect());
    }
    if all(&Value::is_number) {
        return Cells::Real(values.iter().map(|value| value.as_f64()).collect());
    }
    if all(&Value::is_boolean) {
        return Cells::Truth(values.iter().map(|value| value.as_bool()).collect());
    }
    let text = |value: &&Value| (!value.is_null()).then(|| ByteArray::from(cell(value).into_bytes()));
    Cells::Text(values.iter().map(text).collect())
}

impl Column {
    fn field(&self) -> Result<Arc<Type>, ParquetError> {
        let (physical, converted) = match &self.cells {
            Cells::Whole(_) => (Physical::INT64, ConvertedType::NONE),
            Cells::Real(_) => (Physical::DOUBLE, ConvertedType::NONE),
            Cells::Truth(_) => (Physical::BOOLEAN, ConvertedType::NONE),
            Cells::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let field = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_converted_type(converted);
        field.build().map(Arc::new)
    }

    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        match &self.cells {
            Cells::Whole(cells) => put::<Int64Type, W>(cells, group),
            Cells::Real(cells) => put::<DoubleType, W>(cells, group),
            Cells::Truth(cells) => put::<BoolType, W>(cells, group),
            Cells::Text(cells) => put::<ByteArrayType, W>(cells, group),
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
