//! JSON lines: one request, or a few, per line. What the line formats share.

use serde::Deserialize;
use wavetank_model::{Error, Result};

use crate::input::Lines;
use crate::requests::{Findings, Reader};
use crate::{Input, Row};

/// What a line format does with its lines.
pub(crate) trait JsonLine: Send {
    /// The requests of one line; an error has no place yet.
    fn parse(&mut self, line: &[u8], rows: &mut Rows) -> Result<()>;

    /// How many tokens an id stands for, where lines say so; known from the first request on.
    fn tokens_per_id(&self) -> Option<u32> {
        None
    }

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

    fn has_more(&self) -> bool {
        self.taken < self.filled
    }

    /// Hands the next one over.
    fn take(&mut self, row: &mut Row) {
        std::mem::swap(row, &mut self.rows[self.taken]);
        self.taken += 1;
    }

    fn clear(&mut self) {
        (self.filled, self.taken) = (0, 0);
    }
}

/// The lines of several files, one after the other.
pub(crate) struct Shards {
    inputs: Vec<Input>,
    /// How many of them were opened.
    opened: usize,
    /// Nothing once they cannot be read on.
    lines: Option<Lines>,
}

impl Shards {
    /// Opens the first file.
    pub(crate) fn open(inputs: &[Input]) -> Result<Self> {
        Ok(Self { inputs: inputs.to_vec(), opened: 1, lines: Some(inputs[0].lines()?) })
    }

    /// The next line of any file that is not blank.
    pub(crate) fn advance(&mut self) -> Result<Option<&[u8]>> {
        loop {
            let Some(lines) = &mut self.lines else { return Ok(None) };
            match lines.advance() {
                Ok(true) => break,
                Ok(false) if self.opened < self.inputs.len() => {
                    self.lines = Some(self.inputs[self.opened].lines()?);
                    self.opened += 1;
                }
                Ok(false) => return Ok(None),
                // What cannot be read is not read on.
                Err(error) => {
                    self.lines = None;
                    return Err(error);
                }
            }
        }
        Ok(self.lines.as_ref().map(Lines::current))
    }

    /// `file:line` of the line read last.
    pub(crate) fn place(&self) -> String {
        self.lines.as_ref().map(Lines::place).unwrap_or_default()
    }

    /// The number of the line read last.
    pub(crate) fn number(&self) -> u64 {
        self.lines.as_ref().map_or(0, Lines::number)
    }
}

/// Reads the lines of several files.
pub(crate) struct LineReader<F> {
    shards: Shards,
    format: F,
    rows: Rows,
    tokens_per_id: Option<u32>,
    /// What was wrong with the line read ahead.
    pending: Option<Error>,
}

impl<F: JsonLine> LineReader<F> {
    /// Opens the first file.
    pub(crate) fn open(inputs: &[Input], format: F, tokens_per_id: Option<u32>) -> Result<Self> {
        let (shards, rows) = (Shards::open(inputs)?, Rows::default());
        Ok(Self { shards, format, rows, tokens_per_id, pending: None })
    }

    /// Opens the first file and reads ahead to what its first request says of ids.
    pub(crate) fn primed(inputs: &[Input], format: F) -> Result<Self> {
        let mut reader = Self::open(inputs, format, None)?;
        reader.pending = reader.fill().err();
        Ok(reader)
    }

    /// Moves to the next line that has requests. Tells whether there is one.
    fn fill(&mut self) -> Result<bool> {
        while !self.rows.has_more() {
            let Some(line) = self.shards.advance()? else { return Ok(false) };
            self.rows.clear();
            if let Err(error) = self.format.parse(line, &mut self.rows) {
                self.rows.clear();
                return Err(error.at(self.shards.place()));
            }
        }
        Ok(true)
    }
}

impl<F: JsonLine> Reader for LineReader<F> {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        let has_more = self.fill()?;
        if has_more {
            self.rows.take(row);
        }
        Ok(has_more)
    }

    fn place(&self) -> String {
        self.shards.place()
    }

    fn line(&self) -> u64 {
        self.shards.number()
    }

    fn tokens_per_id(&self) -> Option<u32> {
        self.tokens_per_id.or(self.format.tokens_per_id())
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

/// One line as JSON of the given `shape`.
pub(crate) fn from_json<'l, T: Deserialize<'l>>(line: &'l [u8], shape: &str) -> Result<T> {
    serde_json::from_slice(line).map_err(|error| match error.is_data() {
        true => Error::input(without_line(&error)).hint(format!("a line is {shape}")).source(error),
        false => not_json(line, error),
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
