//! Vidur's trace CSV: arrival in seconds and lengths in tokens (Vidur, MLSys'24; columns beyond these are not
//! used).

use std::io::{self, Write};

use wavetank_model::Result;

use super::{Entry, Outcome, Provides, TableFormat, TableReader, Writer, untold};
use crate::table::{Column, SECONDS, TOKENS, Table, seconds, tokens};
use crate::{Output, Row};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "vidur",
    about: "CSV: arrived_at in seconds, num_prefill_tokens, num_decode_tokens",
    provides: Provides { starts: true, ..Provides::LENGTHS },
    recognises: |head| head.has_columns(&["arrived_at", "num_prefill_tokens", "num_decode_tokens"]),
    read: |inputs, _| Ok(Box::new(TableReader::open(inputs, Vidur::default())?)),
    write: Some(|mut output, _| {
        output.write_all(b"arrived_at,num_prefill_tokens,num_decode_tokens\n")?;
        Ok(Box::new(Lines(output)))
    }),
};

/// Where a file has what is used of it.
#[derive(Default)]
struct Vidur {
    arrived_at: Column,
    prefill: Column,
    decode: Column,
}

impl TableFormat for Vidur {
    fn bind(&mut self, table: &Table) -> Result<()> {
        self.arrived_at = table.required("arrived_at")?;
        self.prefill = table.required("num_prefill_tokens")?;
        self.decode = table.required("num_decode_tokens")?;
        Ok(())
    }

    fn parse(&mut self, table: &Table, row: &mut Row) -> Result<Outcome> {
        row.start = Some(table.parsed(self.arrived_at, SECONDS, seconds)?);
        row.input_tokens = Some(table.parsed(self.prefill, TOKENS, tokens)?);
        row.output_tokens = Some(table.parsed(self.decode, TOKENS, tokens)?);
        Ok(match row.input_tokens {
            Some(0) => Outcome::Skipped("no prefill tokens"),
            _ => Outcome::Request,
        })
    }
}

/// A trace being written.
struct Lines<'w>(Output<'w>);

impl Writer for Lines<'_> {
    fn write(&mut self, row: &Row) -> io::Result<()> {
        let start = row.start.ok_or_else(|| untold("when a request came"))?;
        let input = row.input_tokens.ok_or_else(|| untold("the length of a prompt"))?;
        let output = row.output_tokens.ok_or_else(|| untold("how many tokens were generated"))?;
        writeln!(self.0, "{},{input},{output}", start.seconds())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::requests::Source;
    use crate::{Input, Options, Starts};

    #[test]
    fn columns_may_stand_in_any_order() {
        let text =
            ",num_decode_tokens,arrived_at,num_prefill_tokens\n0,7,0.25,100\n1,8,1.5e0,200.0\n2,8,2,0\n";
        let input = Input::Bytes(Arc::from(text.as_bytes()));
        let options = Options::of(Starts::Scheduled { speedup: 1.0 });
        let mut loaded = crate::open(&Source::with("vidur", vec![input]).unwrap(), &options).unwrap();
        assert_eq!(loaded.survey.notes[0], "1 row skipped: no prefill tokens");
        let openings: Vec<_> = std::iter::from_fn(|| loaded.workload.open().unwrap()).collect();
        let told: Vec<_> =
            openings.iter().map(|o| (o.at.0, o.request.prompt.tokens(), o.request.output_tokens)).collect();
        assert_eq!(told, [(0, 100, 7), (1_250_000_000, 200, 8)]);
    }
}
