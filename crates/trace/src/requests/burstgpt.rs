//! BurstGPT CSV: one request per row with its time in seconds and its lengths in tokens (BurstGPT, KDD'25;
//! newer files add the session and how long the answer took, which is not used).

use wavetank_model::{Error, Result, Workload};

use super::Entry;
use crate::table::{Column, Table};
use crate::workload::{Arrival, Timed};
use crate::{Input, Loaded, Options, Survey};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "burstgpt",
    about: "CSV: Timestamp in seconds, Request tokens, Response tokens; Session ID",
    block_ids: false,
    open,
};

/// Where a file has what is used of it.
struct Columns {
    timestamp: Column,
    request_tokens: Column,
    response_tokens: Column,
    session: Option<Column>,
}

/// Rows that are no requests, by why.
#[derive(Default)]
struct Skipped {
    unanswered: u64,
    empty: u64,
}

fn open(inputs: &[Input], options: &Options) -> Result<Loaded> {
    let (mut rows, mut skipped) = (Timed::of(options), Skipped::default());
    for input in inputs {
        read(input, &mut rows, &mut skipped)?;
    }
    rows.finish();
    let Some(first_seconds) = rows.first_seconds() else {
        let all = skipped.unanswered + skipped.empty;
        return Err(Error::input(format!("there are no requests in it ({all} rows have no tokens)"))
            .at(inputs[0].name())
            .hint("a request is a row whose Request tokens and Response tokens are above 0"));
    };
    let survey = Survey {
        requests: rows.requests(),
        first_start_ms: first_seconds * 1000.0,
        skipped: skipped.unanswered + skipped.empty,
        notes: notes(&skipped, rows.follow_ups()),
        ..Survey::default()
    };
    Ok(Loaded { workload: Box::new(rows), survey })
}

fn read(input: &Input, rows: &mut Timed, skipped: &mut Skipped) -> Result<()> {
    let mut table = Table::open(input)?;
    let columns = Columns {
        timestamp: table.required("Timestamp")?,
        request_tokens: table.required("Request tokens")?,
        response_tokens: table.required("Response tokens")?,
        session: table.column("Session ID"),
    };
    while table.advance()? {
        let at_seconds = table.parsed(columns.timestamp, "seconds, not negative", seconds)?;
        let input_tokens = table.parsed(columns.request_tokens, TOKENS, tokens)?;
        let output_tokens = table.parsed(columns.response_tokens, TOKENS, tokens)?;
        if input_tokens == 0 {
            skipped.empty += 1;
        } else if output_tokens == 0 {
            skipped.unanswered += 1;
        } else {
            let session = columns.session.map(|column| table.value(column).trim());
            let session = session.filter(|name| !name.is_empty());
            let line = table.line();
            rows.push(Arrival { at_seconds, input_tokens, output_tokens, session, line })
                .map_err(|error| error.at(table.place()))?;
        }
    }
    Ok(())
}

fn seconds(text: &str) -> Option<f64> {
    text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
}

const TOKENS: &str = "a whole number from 0 to 4294967295";

/// Files that went through a table of floating point have `12.0`.
fn tokens(text: &str) -> Option<u32> {
    let number: f64 = text.parse().ok()?;
    let whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    whole.then_some(number as u32)
}

fn notes(skipped: &Skipped, follow_ups: u64) -> Vec<String> {
    let rows = |count: u64| if count == 1 { "row" } else { "rows" };
    let mut notes = Vec::new();
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            notes.push(format!("{count} {} {what}", rows(count)));
        }
    };
    note(skipped.unanswered, "skipped: no response tokens, a failed request");
    note(skipped.empty, "skipped: no request tokens");
    note(
        follow_ups,
        "follow a turn of their session: they come after its end by the difference of their times",
    );
    notes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wavetank_model::{Nanos, Opening, SessionId};

    use super::*;
    use crate::requests::sharegpt::ShareGpt;
    use crate::{Starts, requests};

    fn options(starts: Starts) -> Options {
        let sharegpt = ShareGpt::default();
        Options { tokens_per_id: 512, clamp_input: false, starts, keep_names: true, sharegpt }
    }

    fn loaded(texts: &[&str], starts: Starts) -> Result<Loaded> {
        let inputs: Vec<_> = texts.iter().map(|text| Input::Bytes(Arc::from(text.as_bytes()))).collect();
        requests::open_many("burstgpt", &inputs, &options(starts))
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
        assert_eq!(loaded.survey.first_start_ms, 8500.0);
        assert_eq!(
            loaded.survey.notes,
            ["1 row skipped: no response tokens, a failed request", "1 row skipped: no request tokens"]
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
        assert!(loaded.survey.notes[0].starts_with("2 rows follow a turn of their session"));
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
            ("1,1,1\n1e11,1,1\n", "<memory>:3: more than a century away"),
            ("1,1,0\n", "<memory>: there are no requests in it (1 rows have no tokens)"),
        ] {
            let error = loaded(&[&format!("{header}{rows}")], SCHEDULED).err().unwrap().to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{rows}: {error}");
        }
        let error = loaded(&["timestamp,Request tokens\n"], SCHEDULED).err().unwrap().to_string();
        assert!(error.starts_with("<memory>:1: column \"Timestamp\" is missing\nhint: "), "{error}");
        assert!(loaded(&[""], SCHEDULED).is_err());
    }
}
