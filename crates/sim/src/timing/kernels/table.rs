//! Reading a profile's CSV tables: plain or gzip, one header line, every cell checked, errors by line.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use wavetank_model::{Error, ErrorKind, Result};

/// No kernel takes longer: larger numbers are another unit.
const MOST_US: f64 = 60e6;
/// Tokens or sequences of a pass: what is between two of them is filled in, one by one.
const MOST_AT: u32 = 1 << 22;
/// Tables have a few: an archive of a hundred is none.
const MOST_BYTES: u64 = 256 << 20;

/// One table of a profile.
pub(super) struct Table {
    /// As shown in errors.
    pub(super) place: String,
    columns: Vec<String>,
    text: String,
}

/// The text in an archive, which may claim to unpack to anything.
fn unpacked(bytes: &[u8]) -> Result<String, String> {
    let mut text = String::new();
    GzDecoder::new(bytes)
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    match text.len() as u64 {
        0..=MOST_BYTES => Ok(text),
        _ => Err(format!("it unpacks to more than {} MiB", MOST_BYTES >> 20)),
    }
}

/// A row of a table.
pub(super) struct Row<'t> {
    table: &'t Table,
    line: usize,
    text: &'t str,
}

impl Table {
    /// Reads `name`.csv or `name`.csv.gz in `folder`; `None` if neither is there.
    pub(super) fn find(folder: &Path, name: &str) -> Result<Option<Self>> {
        for (path, zipped) in
            [(folder.join(format!("{name}.csv")), false), (folder.join(format!("{name}.csv.gz")), true)]
        {
            let Ok(bytes) = fs::read(&path) else { continue };
            let place = path.display().to_string();
            let text = match zipped {
                true => unpacked(&bytes),
                false => String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8".to_owned()),
            };
            let text = text.map_err(|error| {
                Error::new(ErrorKind::Input, format!("cannot be read: {error}"))
                    .at(&place)
                    .hint("the file is truncated or damaged")
            })?;
            return Self::parse(place, text).map(Some);
        }
        Ok(None)
    }

    /// The same, for a table that must be there.
    pub(super) fn read(folder: &Path, name: &str) -> Result<Self> {
        Self::find(folder, name)?.ok_or_else(|| {
            Error::new(ErrorKind::Input, format!("{name}.csv or {name}.csv.gz is missing"))
                .at(folder.display().to_string())
                .hint("a kernel profile has attention, dense, per_sequence and skew; moe for experts")
        })
    }

    pub(super) fn parse(place: String, text: String) -> Result<Self> {
        let header = text.lines().next().unwrap_or_default();
        let columns: Vec<String> = header.split(',').map(|name| name.trim().to_owned()).collect();
        let table = Self { place, columns, text };
        let mut rows = 0;
        for row in table.rows() {
            let cells = row.text.split(',').count();
            if cells != table.columns.len() {
                return Err(row.error(format!("{cells} cells, the header has {}", table.columns.len())));
            }
            rows += 1;
        }
        if rows == 0 { Err(table.error("has no rows")) } else { Ok(table) }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let lines = (1..).zip(self.text.lines()).skip(1);
        lines.filter(|(_, text)| !text.trim().is_empty()).map(|(line, text)| Row { table: self, line, text })
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Input, message).at(&self.place)
    }

    /// Times by layer: `layer`, the axis `by`, `time_us`. Each axis rises.
    pub(super) fn by_layer(&self, by: &str) -> Result<BTreeMap<String, Vec<(u32, f64)>>> {
        let mut layers: BTreeMap<String, Vec<(u32, f64)>> = BTreeMap::new();
        for row in self.rows() {
            let points = layers.entry(row.text("layer")?.to_owned()).or_default();
            let at = row.count(by)?;
            if at > MOST_AT {
                return Err(row.error(format!("\"{by}\" is {at}: no pass has more than {MOST_AT}")));
            }
            if points.last().is_some_and(|&(before, _)| before >= at) {
                return Err(row.error(format!("\"{by}\" does not rise")));
            }
            points.push((at, row.time_us("time_us")?));
        }
        Ok(layers)
    }
}

impl Row<'_> {
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Input, message).at(format!("{}:{}", self.table.place, self.line))
    }

    pub(super) fn text(&self, column: &str) -> Result<&str> {
        let position = self.table.columns.iter().position(|name| name == column);
        position.and_then(|position| self.text.split(',').nth(position)).map(str::trim).ok_or_else(|| {
            self.table
                .error(format!("the column \"{column}\" is missing"))
                .hint(format!("there are: {}", self.table.columns.join(", ")))
        })
    }

    pub(super) fn number(&self, column: &str) -> Result<f64> {
        let text = self.text(column)?;
        text.parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| self.error(format!("\"{column}\" must be a number, not \"{text}\"")))
    }

    pub(super) fn count(&self, column: &str) -> Result<u32> {
        let number = self.number(column)?;
        if number.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&number) {
            return Err(self.error(format!("\"{column}\" must be a whole number, not {number}")));
        }
        Ok(number as u32)
    }

    pub(super) fn time_us(&self, column: &str) -> Result<f64> {
        let time = self.number(column)?;
        if !(0.0..=MOST_US).contains(&time) {
            return Err(self
                .error(format!("\"{column}\" is {time}"))
                .hint("times are microseconds, not negative, at most a minute"));
        }
        Ok(time)
    }
}
