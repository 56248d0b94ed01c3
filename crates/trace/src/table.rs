//! CSV with a header, one row at a time: columns by name, mistakes with file, line and column.

use std::io::BufRead;

use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};
use wavetank_model::{Error, Result};

use crate::input::broken;
use crate::{Input, Moment};

/// An open table.
pub(crate) struct Table {
    name: String,
    rows: csv::Reader<Box<dyn BufRead + Send>>,
    header: StringRecord,
    row: StringRecord,
    /// 1 where lines end in CR LF: the reader counts the LF to the next row.
    behind: u64,
}

/// A column of a table; the first, without a name, until it is found.
#[derive(Clone, Copy, Default)]
pub(crate) struct Column {
    name: &'static str,
    at: usize,
}

impl Table {
    /// Opens `input` and reads its header.
    pub(crate) fn open(input: &Input) -> Result<Self> {
        let name = input.name();
        let mut rows = ReaderBuilder::new().trim(Trim::Headers).from_reader(input.text()?);
        let header = rows.headers().map_err(|error| invalid(&name, 1, error))?.clone();
        let behind = u64::from(rows.position().line() == 1);
        Ok(Self { name, rows, header, row: StringRecord::new(), behind })
    }

    /// The column called `name`.
    pub(crate) fn column(&self, name: &'static str) -> Option<Column> {
        self.header.iter().position(|field| field == name).map(|at| Column { name, at })
    }

    /// The column called `name`, which must be there.
    pub(crate) fn required(&self, name: &'static str) -> Result<Column> {
        self.column(name).ok_or_else(|| {
            let header = brief(&self.header.iter().collect::<Vec<_>>().join(","));
            Error::input(format!("column \"{name}\" is missing"))
                .at(format!("{}:1", self.name))
                .hint(format!("the first line names the columns; it is \"{header}\""))
        })
    }

    /// Moves to the next row. Tells whether there is one.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.rows.read_record(&mut self.row).map_err(|error| {
            let line = error.position().unwrap_or(self.rows.position()).line();
            invalid(&self.name, line + self.behind, error)
        })
    }

    /// The row's value in `column`.
    pub(crate) fn value(&self, column: Column) -> &str {
        self.row.get(column.at).unwrap_or_default()
    }

    /// The row's value in `column`, as `parse` understands it without surrounding white space.
    pub(crate) fn parsed<T>(
        &self,
        column: Column,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T> {
        parse(self.value(column).trim()).ok_or_else(|| self.wrong(column, expected))
    }

    /// The value in `column` is not what is `expected`.
    pub(crate) fn wrong(&self, column: Column, expected: &str) -> Error {
        let value = brief(self.value(column));
        Error::input(format!("\"{}\" is \"{value}\"", column.name))
            .at(self.place())
            .hint(format!("\"{}\" must be {expected}", column.name))
    }

    /// The line of the row.
    pub(crate) fn line(&self) -> u64 {
        self.row.position().map_or(1, csv::Position::line) + self.behind
    }

    /// `file:line` of the row.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.name, self.line())
    }
}

/// What [`tokens`] takes.
pub(crate) const TOKENS: &str = "a whole number from 0 to 4294967295";

/// Files that went through a table of floating point have `12.0`.
pub(crate) fn tokens(text: &str) -> Option<u32> {
    let number: f64 = text.parse().ok()?;
    let whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    whole.then_some(number as u32)
}

/// What [`seconds`] takes.
pub(crate) const SECONDS: &str = "seconds, not negative";

/// Seconds since the start of a trace.
pub(crate) fn seconds(text: &str) -> Option<Moment> {
    text.parse().ok().and_then(Moment::from_seconds).filter(|moment| moment.nanos >= 0)
}

#[cold]
fn invalid(name: &str, line: u64, error: csv::Error) -> Error {
    let message = match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields, but the header has {expected_len}")
        }
        ErrorKind::Utf8 { err, .. } => format!("field {} is not UTF-8", err.field() + 1),
        _ => error.to_string(),
    };
    match error.into_kind() {
        ErrorKind::Io(cause) => broken(name, line, cause),
        _ => Error::input(message).at(format!("{name}:{line}")).hint("rows are CSV, as the header says"),
    }
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn table(text: &[u8]) -> Table {
        Table::open(&Input::Bytes(Arc::from(text))).unwrap()
    }

    #[test]
    fn columns_are_found_by_name() {
        let mut table = table(b"\xef\xbb\xbfb, a \r\n2,\"1,5\"\r\n");
        let (a, b) = (table.required("a").unwrap(), table.required("b").unwrap());
        assert!(table.advance().unwrap());
        assert_eq!((table.value(a), table.value(b), table.line()), ("1,5", "2", 2));
        assert!(!table.advance().unwrap());
        let error = table.required("c").err().unwrap().to_string();
        assert!(error.starts_with("<memory>:1: column \"c\" is missing\nhint: "), "{error}");
        assert!(error.ends_with("it is \"b,a\""), "{error}");
    }

    #[test]
    fn mistakes_name_the_line() {
        for (text, expected) in [
            (b"a,b\n1,2\n3\n".as_slice(), "<memory>:3: 1 fields, but the header has 2\nhint: "),
            (b"a,b\r\n1,2\r\n3\r\n", "<memory>:3: 1 fields, but the header has 2\nhint: "),
            (b"a,b\n1,2\n3,\xff\n", "<memory>:3: field 2 is not UTF-8\nhint: "),
        ] {
            let mut table = table(text);
            assert!(table.advance().unwrap());
            let error = table.advance().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let mut table = table(b"a,b\n1,x\n");
        let b = table.required("b").unwrap();
        assert!(table.advance().unwrap());
        let error = table.parsed(b, "a number", |text| text.parse::<f64>().ok()).unwrap_err().to_string();
        assert_eq!(error, "<memory>:2: \"b\" is \"x\"\nhint: \"b\" must be a number");
    }
}
