//! Azure LLM inference traces, CSV: when each request came and its lengths in tokens (Azure Public Dataset
//! 2023, from Splitwise, ISCA'24; the week of 2024, from DynamoLLM, HPCA'25, whose times say their offset).

use std::io::{self, Write};

use wavetank_model::Result;

use super::{Entry, Outcome, Provides, TableFormat, TableReader, Writer, untold};
use crate::stamp::{self, Stamp};
use crate::table::{Column, TOKENS, Table, tokens};
use crate::{Output, Row};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "azure",
    about: "CSV: TIMESTAMP as a date, ContextTokens, GeneratedTokens",
    provides: Provides { starts: true, ..Provides::LENGTHS },
    recognises: |head| head.has_columns(&["TIMESTAMP", "ContextTokens", "GeneratedTokens"]),
    read: |inputs, _| Ok(Box::new(TableReader::open(inputs, Azure::default())?)),
    write: Some(|mut output, _| {
        output.write_all(b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n")?;
        Ok(Box::new(Lines(output)))
    }),
};

/// Where a file has what is used of it.
#[derive(Default)]
struct Azure {
    timestamp: Column,
    context: Column,
    generated: Column,
}

impl TableFormat for Azure {
    fn bind(&mut self, table: &Table) -> Result<()> {
        self.timestamp = table.required("TIMESTAMP")?;
        self.context = table.required("ContextTokens")?;
        self.generated = table.required("GeneratedTokens")?;
        Ok(())
    }

    fn parse(&mut self, table: &Table, row: &mut Row) -> Result<Outcome> {
        row.start = Some(table.parsed(self.timestamp, DATE, stamp::moment)?);
        row.input_tokens = Some(table.parsed(self.context, TOKENS, tokens)?);
        row.output_tokens = Some(table.parsed(self.generated, TOKENS, tokens)?);
        Ok(match row.input_tokens {
            Some(0) => Outcome::Skipped("no context tokens"),
            _ => Outcome::Request,
        })
    }
}

const DATE: &str = "a date and time between 1678 and 2262, as 2023-11-16 18:17:03.9799600";

/// A trace being written.
struct Lines<'w>(Output<'w>);

impl Writer for Lines<'_> {
    fn write(&mut self, row: &Row) -> io::Result<()> {
        let start = row.start.ok_or_else(|| untold("when a request came"))?;
        let input = row.input_tokens.ok_or_else(|| untold("the length of a prompt"))?;
        let output = row.output_tokens.ok_or_else(|| untold("how many tokens were generated"))?;
        write!(self.0, "{},{input},{output}\r\n", Stamp(start))
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::requests::Source;
    use crate::{Input, Loaded, Options, Starts};

    fn loaded(text: &str) -> Result<Loaded> {
        let input = Input::Bytes(Arc::from(text.as_bytes()));
        crate::open(
            &Source::with("azure", vec![input]).unwrap(),
            &Options::of(Starts::Scheduled { speedup: 1.0 }),
        )
    }

    #[test]
    fn both_years_are_read() {
        let mut loaded = loaded(
            "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n\
             2023-11-16 18:17:04.031960+00:00,3180,8\r\n2023-11-16 18:17:05,0,8",
        )
        .unwrap();
        assert_eq!((loaded.survey.requests, loaded.survey.skipped), (2, 1));
        assert_eq!(loaded.survey.notes[0], "1 row skipped: no context tokens");
        let openings: Vec<_> = std::iter::from_fn(|| loaded.workload.open().unwrap()).collect();
        let told: Vec<_> = openings.iter().map(|o| (o.at.0, o.request.prompt.tokens())).collect();
        assert_eq!(told, [(0, 4808), (52_000_000, 3180)]);
    }

    #[test]
    fn mistakes_name_line_and_column() {
        let header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
        for (rows, expected) in [
            ("2023-11-16,1,1\n", r#"<memory>:2: "TIMESTAMP" is "2023-11-16""#),
            ("2023-11-16 18:17:03,-1,1\n", r#"<memory>:2: "ContextTokens" is "-1""#),
            ("2023-11-16 18:17:03,1,\n", r#"<memory>:2: "GeneratedTokens" is """#),
        ] {
            let error = loaded(&format!("{header}{rows}")).err().unwrap().to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{rows}: {error}");
        }
    }
}
