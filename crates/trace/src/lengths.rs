//! CSV tables of three columns: when a request came, and its lengths in tokens.

use std::io::{self, Write};

use wavetank_model::Result;

use crate::requests::{Outcome, TableFormat, Writer, untold};
use crate::row::Moment;
use crate::table::{Column, TOKENS, Table, tokens};
use crate::{Output, Row};

/// What one of these formats calls things, and how it writes them.
pub(crate) struct Names {
    /// Start, prompt, answer; other columns are not used.
    pub(crate) columns: [&'static str; 3],
    /// What a start looks like, for those who wrote another.
    pub(crate) start: &'static str,
    /// Understands one.
    pub(crate) parse_start: fn(&str) -> Option<Moment>,
    /// Writes one.
    pub(crate) write_start: fn(&mut Output<'_>, Moment) -> io::Result<()>,
    /// Why a row without a prompt is passed over.
    pub(crate) no_prompt: &'static str,
    /// What a line ends with.
    pub(crate) newline: &'static str,
}

/// A file of such a format.
pub(crate) struct Lengths {
    names: &'static Names,
    columns: [Column; 3],
}

impl Lengths {
    /// One with these names.
    pub(crate) fn of(names: &'static Names) -> Self {
        Self { names, columns: [Column::default(); 3] }
    }
}

impl TableFormat for Lengths {
    fn bind(&mut self, table: &Table) -> Result<()> {
        for (column, name) in self.columns.iter_mut().zip(self.names.columns) {
            *column = table.required(name)?;
        }
        Ok(())
    }

    fn parse(&mut self, table: &Table, row: &mut Row) -> Result<Outcome> {
        let [start, input, output] = self.columns;
        row.start = Some(table.parsed(start, self.names.start, self.names.parse_start)?);
        row.input_tokens = Some(table.parsed(input, TOKENS, tokens)?);
        row.output_tokens = Some(table.parsed(output, TOKENS, tokens)?);
        Ok(match row.input_tokens {
            Some(0) => Outcome::Skipped(self.names.no_prompt),
            _ => Outcome::Request,
        })
    }
}

/// A trace being written.
pub(crate) struct Lines<'w> {
    names: &'static Names,
    output: Output<'w>,
}

impl<'w> Lines<'w> {
    /// Begins with the header.
    pub(crate) fn begin(names: &'static Names, mut output: Output<'w>) -> io::Result<Self> {
        write!(output, "{}{}", names.columns.join(","), names.newline)?;
        Ok(Self { names, output })
    }
}

impl Writer for Lines<'_> {
    fn write(&mut self, row: &Row) -> io::Result<()> {
        let start = row.start.ok_or_else(|| untold("when a request came"))?;
        let input = row.input_tokens.ok_or_else(|| untold("the length of a prompt"))?;
        let output = row.output_tokens.ok_or_else(|| untold("how many tokens were generated"))?;
        (self.names.write_start)(&mut self.output, start)?;
        write!(self.output, ",{input},{output}{}", self.names.newline)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}
