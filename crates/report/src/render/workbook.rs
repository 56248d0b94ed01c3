//! Sheets of values as a workbook.

use std::io::{self, Write};

use rust_xlsxwriter::{Workbook, Worksheet, XlsxError};
use serde_json::Value;

/// A column or a line: what it is called, and its value.
pub type Field = (String, Value);

/// What a sheet holds, row by row.
pub(super) type Rows = Vec<Vec<Value>>;

/// Excel's limit on the name of a sheet.
const NAME_MAX: usize = 31;

/// Writes `sheets`, each with its name, in this order.
pub(super) fn write(sheets: Vec<(&str, Rows)>, out: &mut dyn Write) -> io::Result<()> {
    let bytes = workbook(sheets).map_err(io::Error::other)?;
    out.write_all(&bytes)?;
    out.flush()
}

fn workbook(sheets: Vec<(&str, Rows)>) -> Result<Vec<u8>, XlsxError> {
    let mut workbook = Workbook::new();
    for (name, rows) in sheets {
        let sheet = workbook.add_worksheet();
        sheet.set_name(name.chars().take(NAME_MAX).collect::<String>())?;
        for (row, cells) in (0..).zip(rows) {
            write_row(sheet, row, &cells)?;
        }
    }
    workbook.save_to_buffer()
}

fn write_row(sheet: &mut Worksheet, row: u32, cells: &[Value]) -> Result<(), XlsxError> {
    for (column, cell) in (0..).zip(cells) {
        match cell {
            Value::Number(number) => sheet.write_number(row, column, number.as_f64().unwrap_or_default())?,
            Value::Bool(known) => sheet.write_boolean(row, column, *known)?,
            other => sheet.write_string(row, column, plain(other))?,
        };
    }
    Ok(())
}

/// Two columns: a name and its value in each row.
pub(super) fn lines(heading: [&str; 2], fields: Vec<Field>) -> Rows {
    let heading = heading.map(Value::from).to_vec();
    let rows = fields.into_iter().map(|(name, value)| vec![Value::from(name), value]);
    [heading].into_iter().chain(rows).collect()
}

/// A value as the text of a cell.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
