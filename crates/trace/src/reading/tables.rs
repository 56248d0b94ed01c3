//! CSV with one request per row. What the table formats share.

use wavetank_model::Result;

use crate::requests::{Findings, Reader};
use crate::table::Table;
use crate::{Input, Row};

/// What a table format does with its rows.
pub(crate) trait TableFormat: Send {
    /// Finds the columns of a file that was just opened.
    fn bind(&mut self, table: &Table) -> Result<()>;

    /// The request of the row that `table` is at, into a row that is empty; an error has its place.
    fn parse(&mut self, table: &Table, row: &mut Row) -> Result<Outcome>;
}

/// What a row of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A request.
    Request,
    /// Nothing that is replayed, and why.
    Skipped(&'static str),
}

/// Reads the rows of several files.
pub(crate) struct TableReader<F> {
    inputs: Vec<Input>,
    /// How many of them were opened.
    opened: usize,
    table: Table,
    format: F,
    /// How many rows are no requests, by why, in the order they were met.
    skipped: Vec<(&'static str, u64)>,
}

impl<F: TableFormat> TableReader<F> {
    /// Opens the first file.
    pub(crate) fn open(inputs: &[Input], mut format: F) -> Result<Self> {
        let table = Table::open(&inputs[0])?;
        format.bind(&table)?;
        Ok(Self { inputs: inputs.to_vec(), opened: 1, table, format, skipped: Vec::new() })
    }

    /// Moves to the next row of any file. Tells whether there is one.
    fn advance(&mut self) -> Result<bool> {
        while !self.table.advance()? {
            let Some(input) = self.inputs.get(self.opened) else { return Ok(false) };
            self.opened += 1;
            self.table = Table::open(input)?;
            self.format.bind(&self.table)?;
        }
        Ok(true)
    }

    fn skip(&mut self, why: &'static str) {
        match self.skipped.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((why, 1)),
        }
    }
}

impl<F: TableFormat> Reader for TableReader<F> {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        while self.advance()? {
            row.clear();
            match self.format.parse(&self.table, row)? {
                Outcome::Request => return Ok(true),
                Outcome::Skipped(why) => self.skip(why),
            }
        }
        Ok(false)
    }

    fn place(&self) -> String {
        self.table.place()
    }

    fn line(&self) -> u64 {
        self.table.line()
    }

    fn tokens_per_id(&self) -> Option<u32> {
        None
    }

    fn findings(&self) -> Findings {
        let rows = |count: u64| if count == 1 { "row" } else { "rows" };
        let note = |(why, count): &(&str, u64)| format!("{count} {} skipped: {why}", rows(*count));
        let skipped = self.skipped.iter().map(|(_, count)| count).sum();
        Findings { skipped, notes: self.skipped.iter().map(note).collect() }
    }
}
