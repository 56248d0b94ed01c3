//! BurstGPT CSV: one request per row with its time in seconds and its lengths in tokens (BurstGPT, KDD'25;
//! newer files add the session and how long the answer took, which is not used).

use std::io;

use wavetank_model::Result;

use super::{Entry, Outcome, Provides, TableFormat, TableReader, WriteOptions, Writer};
use crate::table::{Column, SECONDS, TOKENS, Table, seconds, tokens};
use crate::{Output, Row};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "burstgpt",
    about: "CSV: Timestamp in seconds, Request tokens, Response tokens; Session ID",
    provides: Provides { starts: true, sessions: true, ..Provides::LENGTHS },
    recognises: |head| head.has_columns(&["Timestamp", "Request tokens", "Response tokens"]),
    read: |inputs, _| Ok(Box::new(TableReader::open(inputs, BurstGpt::default())?)),
    write: Some(begin),
};

/// Where a file has what is used of it.
#[derive(Default)]
struct BurstGpt {
    timestamp: Column,
    request_tokens: Column,
    response_tokens: Column,
    session: Option<Column>,
}

impl TableFormat for BurstGpt {
    fn bind(&mut self, table: &Table) -> Result<()> {
        self.timestamp = table.required("Timestamp")?;
        self.request_tokens = table.required("Request tokens")?;
        self.response_tokens = table.required("Response tokens")?;
        self.session = table.column("Session ID");
        Ok(())
    }

    fn parse(&mut self, table: &Table, row: &mut Row) -> Result<Outcome> {
        let start = table.parsed(self.timestamp, SECONDS, seconds)?;
        let input_tokens = table.parsed(self.request_tokens, TOKENS, tokens)?;
        let output_tokens = table.parsed(self.response_tokens, TOKENS, tokens)?;
        if input_tokens == 0 {
            return Ok(Outcome::Skipped("no request tokens"));
        }
        if output_tokens == 0 {
            return Ok(Outcome::Skipped("no response tokens, a failed request"));
        }
        let session = self.session.map(|column| table.value(column).trim());
        row.session = session.filter(|name| !name.is_empty()).map(str::to_owned);
        row.start = Some(start);
        (row.input_tokens, row.output_tokens) = (Some(input_tokens), Some(output_tokens));
        Ok(Outcome::Request)
    }
}

fn begin<'w>(output: Output<'w>, _: &WriteOptions) -> io::Result<Box<dyn Writer + 'w>> {
    let mut table = csv::Writer::from_writer(output);
    table.write_record(["Timestamp", "Session ID", "Request tokens", "Response tokens", "Total tokens"])?;
    Ok(Box::new(Rows(table)))
}

/// A trace being written.
struct Rows<'w>(csv::Writer<Output<'w>>);

impl Writer for Rows<'_> {
    fn write(&mut self, row: &Row) -> io::Result<()> {
        let tokens = |tokens: Option<u32>| tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
        let total = row.input_tokens.zip(row.output_tokens).map(|(a, b)| u64::from(a) + u64::from(b));
        let fields = [
            row.start.map(|start| start.seconds().to_string()).unwrap_or_default(),
            row.session.clone().unwrap_or_default(),
            tokens(row.input_tokens),
            tokens(row.output_tokens),
            total.map(|total| total.to_string()).unwrap_or_default(),
        ];
        Ok(self.0.write_record(fields)?)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.into_inner().map_err(csv::IntoInnerError::into_error)?.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wavetank_model::{Nanos, Opening, SessionId};

    use super::*;
    use crate::requests::Source;
    use crate::{Input, Loaded, Options, Starts};

    fn loaded(texts: &[&str], starts: Starts) -> Result<Loaded> {
        let inputs: Vec<_> = texts.iter().map(|text| Input::Bytes(Arc::from(text.as_bytes()))).collect();
        let options = Options { keep_names: true, ..Options::of(starts) };
        crate::open(&Source::with("burstgpt", inputs).unwrap(), &options)
    }

    fn openings(loaded: &mut Loaded) -> Vec<Opening> {
        std::iter::from_fn(|| loaded.workload.open().unwrap()).collect()
    }

    const SCHEDULED: Starts = Starts::Scheduled { speedup: 2.0 };

    #[test]
    fn rows_come_by_time() {
        let text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                    9.5,ChatGPT,7,3,10,API log\n5,GPT-4,100,0,100,API log\n8.5,GPT-4,20.0,2,22,API log\n\
                    9.5,GPT-4,0,2,2,API log\n9.5,GPT-4,1,1,2,API log\n";
        let mut loaded = loaded(&[text], SCHEDULED).unwrap();
        assert_eq!((loaded.survey.requests, loaded.survey.skipped), (3, 2));
        assert_eq!(loaded.survey.first_start.nanos, 8_500_000_000);
        assert_eq!(
            loaded.survey.notes,
            [
                "1 row skipped: no response tokens, a failed request",
                "1 row skipped: no request tokens",
                "3 requests without block ids: every prompt is like no other (--fill hash=unique)",
            ]
        );
        assert!(!loaded.workload.has_follow_ups());
        let openings = openings(&mut loaded);
        let rows: Vec<_> = openings
            .iter()
            .map(|Opening { at, request }| {
                let name = request.labels.as_ref().unwrap().session.as_str();
                (at.as_ms(), request.prompt.tokens(), request.output_tokens, name)
            })
            .collect();
        let expected = [(0.0, 20, 2, "request_4"), (500.0, 7, 3, "request_2"), (500.0, 1, 1, "request_6")];
        assert_eq!(rows, expected);
        assert!(openings.iter().zip(0..).all(|(opening, number)| opening.request.session.0 == number));
        assert_ne!(openings[0].request.prompt.whole(), openings[1].request.prompt.whole());
    }

    #[test]
    fn rows_of_a_session_are_its_turns() {
        let text = "Timestamp,Session ID,Elapsed time,Request tokens,Response tokens\n\
                    10,a,1,5,1\n30,b,1,6,2\n40,a,1,7,3\n41,,1,8,4\n12,b,1,9,5\n";
        let mut loaded = loaded(&[text], SCHEDULED).unwrap();
        let openings = openings(&mut loaded);
        let starts: Vec<_> = openings.iter().map(|o| (o.at.as_ms(), o.request.prompt.tokens())).collect();
        assert_eq!(starts, [(0.0, 5), (1000.0, 9), (15500.0, 8)]);
        let names: Vec<_> = openings.iter().map(|o| &*o.request.labels.as_ref().unwrap().session).collect();
        assert_eq!(names, ["a", "b", "request_5"]);
        let pauses: Vec<_> = openings.iter().map(|o| o.request.think).collect();
        assert_eq!(pauses, [Some(Nanos::from_ms(15000.0)), Some(Nanos::from_ms(9000.0)), None]);
        let turn = loaded.workload.follow_up(SessionId(1), 1).unwrap();
        assert_eq!((turn.prompt.tokens(), turn.output_tokens, turn.turn, turn.think), (6, 2, 1, None));
        let turn = loaded.workload.follow_up(SessionId(0), 1).unwrap();
        assert_eq!((turn.prompt.tokens(), turn.session), (7, SessionId(0)));
        assert!(loaded.survey.notes[1].starts_with("2 requests follow a turn of their session"));
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = "Timestamp,Session ID,Request tokens,Response tokens,Total tokens\n\
                    10.5,\"a,b\",5,1,6\n1794705271.796539,,6,2,8\n";
        let source = Source::with("burstgpt", vec![Input::Bytes(Arc::from(text.as_bytes()))]).unwrap();
        let mut reader = source.open(&crate::requests::ReadOptions::default()).unwrap();
        let (mut bytes, mut row) = (Vec::new(), Row::default());
        let mut writer = begin(Output::to(&mut bytes), &WriteOptions { tokens_per_id: None }).unwrap();
        while reader.read(&mut row).unwrap() {
            writer.write(&row).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
    }

    #[test]
    fn files_are_merged_by_time() {
        let header = "Timestamp,Request tokens,Response tokens\n";
        let (a, b) = (format!("{header}1,1,1\n3,3,1\n"), format!("{header}2,2,1\n4,4,1\n"));
        let mut merged = loaded(&[&a, &b], SCHEDULED).unwrap();
        let tokens: Vec<_> = openings(&mut merged).iter().map(|o| o.request.prompt.tokens()).collect();
        assert_eq!(tokens, [1, 2, 3, 4]);
        let mut ignored = loaded(&[&b, &a], Starts::Ignored).unwrap();
        assert!(openings(&mut ignored).iter().all(|opening| opening.at == Nanos::ZERO));
    }

    #[test]
    fn mistakes_name_line_and_column() {
        let header = "Timestamp,Request tokens,Response tokens\n";
        for (rows, expected) in [
            ("x,1,1\n", r#"<memory>:2: "Timestamp" is "x""#),
            ("1,1,1\n-1,1,1\n", r#"<memory>:3: "Timestamp" is "-1""#),
            ("inf,1,1\n", r#"<memory>:2: "Timestamp" is "inf""#),
            ("1,1.5,1\n", r#"<memory>:2: "Request tokens" is "1.5""#),
            ("1,1,\n", r#"<memory>:2: "Response tokens" is """#),
            ("1,1,5e9\n", r#"<memory>:2: "Response tokens" is "5e9""#),
            ("1,1\n", "<memory>:2: 2 fields, but the header has 3"),
            ("1,1,1\n1e11,1,1\n", "<memory>:3: \"Timestamp\" is \"1e11\""),
            ("1,1,0\n", "<memory>: there are no requests in it"),
        ] {
            let error = loaded(&[&format!("{header}{rows}")], SCHEDULED).err().unwrap().to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{rows}: {error}");
        }
        let error = loaded(&["timestamp,Request tokens\n"], SCHEDULED).err().unwrap().to_string();
        assert!(error.starts_with("<memory>:1: column \"Timestamp\" is missing\nhint: "), "{error}");
        assert!(loaded(&[""], SCHEDULED).is_err());
    }
}
