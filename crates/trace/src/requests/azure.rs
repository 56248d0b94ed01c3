//! Azure LLM inference traces, CSV: when each request came and its lengths in tokens (Azure Public Dataset
//! 2023, from Splitwise, ISCA'24; the week of 2024, from DynamoLLM, HPCA'25, whose times say their offset).

use std::io::Write;

use super::{Entry, Provides, TableReader};
use crate::lengths::{Lengths, Lines, Names};
use crate::stamp::{self, Stamp};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "azure",
    about: "CSV: TIMESTAMP as a date, ContextTokens, GeneratedTokens",
    provides: Provides { starts: true, ..Provides::LENGTHS },
    recognises: |head| head.has_columns(&NAMES.columns),
    read: |inputs, _| Ok(Box::new(TableReader::open(inputs, Lengths::of(&NAMES))?)),
    write: Some(|output, _| Ok(Box::new(Lines::begin(&NAMES, output)?))),
};

static NAMES: Names = Names {
    columns: ["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
    start: "a date and time between 1678 and 2262, as 2023-11-16 18:17:03.9799600",
    parse_start: stamp::moment,
    write_start: |output, start| write!(output, "{}", Stamp(start)),
    no_prompt: "no context tokens",
    newline: "\r\n",
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wavetank_model::Result;

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
