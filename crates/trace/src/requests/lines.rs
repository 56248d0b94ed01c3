//! JSON lines: one request, or a few, per line. What the line formats share.

use serde::Deserialize;
use serde_json::error::Category;
use wavetank_model::{Error, Result};

use super::{Findings, Reader};
use crate::input::Lines;
use crate::{Input, Row};

/// What a line format does with its lines.
pub(crate) trait JsonLine {
    /// The requests of one line; an error has no place yet.
    fn parse(&mut self, line: &[u8], rows: &mut Rows) -> Result<()>;

    /// What was met beside requests.
    fn findings(&self) -> Findings {
        Findings::default()
    }
}

/// The requests of one line, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    filled: usize,
    taken: usize,
}

impl Rows {
    /// Another request, empty.
    pub(crate) fn push(&mut self) -> &mut Row {
        if self.filled == self.rows.len() {
            self.rows.push(Row::default());
        }
        let row = &mut self.rows[self.filled];
        row.clear();
        self.filled += 1;
        row
    }

    /// Hands the next one over.
    fn take(&mut self, row: &mut Row) -> bool {
        let has_more = self.taken < self.filled;
        if has_more {
            std::mem::swap(row, &mut self.rows[self.taken]);
            self.taken += 1;
        }
        has_more
    }

    fn clear(&mut self) {
        (self.filled, self.taken) = (0, 0);
    }
}

/// Reads the lines of several files.
pub(crate) struct LineReader<F> {
    inputs: Vec<Input>,
    /// How many of them were opened.
    opened: usize,
    lines: Option<Lines>,
    format: F,
    rows: Rows,
    tokens_per_id: Option<u32>,
}

impl<F: JsonLine> LineReader<F> {
    /// Opens the first file.
    pub(crate) fn open(inputs: &[Input], format: F, tokens_per_id: Option<u32>) -> Result<Self> {
        let lines = Some(inputs[0].lines()?);
        Ok(Self { inputs: inputs.to_vec(), opened: 1, lines, format, rows: Rows::default(), tokens_per_id })
    }

    /// Moves to the next line of any file. Tells whether there is one.
    fn advance(&mut self) -> Result<bool> {
        loop {
            let Some(lines) = &mut self.lines else { return Ok(false) };
            match lines.advance() {
                Ok(true) => return Ok(true),
                Ok(false) if self.opened < self.inputs.len() => {
                    self.lines = Some(self.inputs[self.opened].lines()?);
                    self.opened += 1;
                }
                Ok(false) => return Ok(false),
                // What cannot be read is not read on.
                Err(error) => {
                    self.lines = None;
                    return Err(error);
                }
            }
        }
    }
}

impl<F: JsonLine> Reader for LineReader<F> {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        while !self.rows.take(row) {
            if !self.advance()? {
                return Ok(false);
            }
            let Some(lines) = &self.lines else { return Ok(false) };
            self.rows.clear();
            if let Err(error) = self.format.parse(lines.current(), &mut self.rows) {
                self.rows.clear();
                return Err(error.at(lines.place()));
            }
        }
        Ok(true)
    }

    fn place(&self) -> String {
        self.lines.as_ref().map(Lines::place).unwrap_or_default()
    }

    fn line(&self) -> u64 {
        self.lines.as_ref().map_or(0, Lines::number)
    }

    fn tokens_per_id(&self) -> Option<u32> {
        self.tokens_per_id
    }

    fn findings(&self) -> Findings {
        self.format.findings()
    }
}

/// The reader works on one line, so the line number in a JSON error is always 1: keep the column.
pub(crate) fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").unwrap_or(text.len());
    match error.column() {
        0 => text[..end].to_owned(),
        column => format!("{} at column {column}", &text[..end]),
    }
}

/// A line as one JSON object; `shape` is the hint where it is another.
pub(crate) fn object<'l, T: Deserialize<'l>>(line: &'l [u8], shape: &str) -> Result<T> {
    serde_json::from_slice(line).map_err(|error| match error.classify() {
        Category::Data => Error::input(without_line(&error)).hint(shape).source(error),
        Category::Syntax | Category::Eof | Category::Io => not_json(line, error),
    })
}

/// A line that is no JSON.
#[cold]
pub(crate) fn not_json(line: &[u8], error: serde_json::Error) -> Error {
    let has = |word: &str| line.windows(word.len()).any(|window| window == word.as_bytes());
    let hint = match has("NaN") || has("Infinity") {
        true => "JSON has no NaN and no Infinity",
        false => "one request is one JSON object per line",
    };
    Error::input(format!("not valid JSON: {}", without_line(&error))).hint(hint).source(error)
}
