//! Every problem of a trace, told and counted. What is wrong with a row is what a workload would say of it.

use std::collections::{BTreeMap, HashMap};

use wavetank_model::{Error, Result};

use super::check::Rows;
use super::graph::Graph;
use super::turn;
use super::{Options, Starts, no_rows};
use crate::convert::key;
use crate::requests::{Findings, ReadOptions, Reader, Source};
use crate::{Meter, Moment, Row};

/// What a trace was found to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linted {
    /// Rows that are right.
    pub requests: u64,
    /// What is wrong, in all.
    pub problems: u64,
    /// How often, by what; numbers stand as N.
    pub sorts: BTreeMap<String, u64>,
    /// Things that are no requests.
    pub skipped: u64,
    /// What is no problem, and good to know.
    pub notes: Vec<String>,
}

/// More sorts than this are counted as one: a file of noise has a new one on every line.
const MOST_SORTS: usize = 200;
const OTHERS: &str = "other problems";

/// Reads `source` to its end and tells every problem; an error where it cannot be read at all.
pub fn lint(
    source: &Source,
    read: &ReadOptions,
    meter: &Meter,
    tell: &mut dyn FnMut(&Error),
) -> Result<Linted> {
    let provides = source.format.provides;
    let starts = if provides.starts { Starts::Scheduled { speedup: 1.0 } } else { Starts::Ignored };
    let mut options = Options { read: read.clone(), ..Options::of(starts) };
    // A length that a format never tells is no mistake of a file.
    options.fill.output = (!provides.outputs).then_some(1);
    let mut rows = Rows::open(source, &options)?;
    let mut check = Check::of(&rows);
    let mut linted = Linted::default();
    let mut problem = |error: &Error| {
        linted.count(error);
        tell(error);
    };
    let mut requests = 0;
    loop {
        meter.count()?;
        match rows.next() {
            Ok(None) => break,
            Ok(Some(_)) => match check.row(rows.row(), rows.reader()) {
                None => requests += 1,
                Some(error) => problem(&error),
            },
            Err(error) => problem(&error),
        }
    }
    let late = check.late;
    check.finish(&mut |error| problem(&error));
    if requests == 0 && linted.problems == 0 {
        let error = no_rows(&rows);
        linted.count(&error);
        tell(&error);
    }
    let Findings { skipped, mut notes } = rows.reader().findings();
    if late > 0 {
        notes.push(format!("{late} requests come before the one above them: a replay holds all of them"));
    }
    Ok(Linted { requests, skipped, notes, ..linted })
}

impl Linted {
    fn count(&mut self, error: &Error) {
        self.problems += 1;
        let sort = sort(error.message());
        let is_known = self.sorts.contains_key(&sort) || self.sorts.len() < MOST_SORTS;
        *self.sorts.entry(if is_known { sort } else { OTHERS.to_owned() }).or_default() += 1;
    }
}

/// A message with N for every number.
fn sort(message: &str) -> String {
    let mut sort = String::with_capacity(message.len());
    for letter in message.chars() {
        match letter {
            '0'..='9' if sort.ends_with('N') => {}
            '0'..='9' => sort.push('N'),
            other => sort.push(other),
        }
    }
    sort
}

/// What is known of the rows before one.
struct Check {
    starts: Starts,
    /// Whether turns stand in the order of rows.
    has_turns: bool,
    /// The last time of every session that a turn of it has.
    sessions: HashMap<u128, Option<Moment>>,
    /// Who waits for whom, where the format tells.
    graph: Option<Graph>,
    last: Option<Moment>,
    late: u64,
}

impl Check {
    fn of(rows: &Rows) -> Self {
        let provides = rows.provides;
        let is_by_time = provides.sessions && provides.starts && !provides.pauses;
        Self {
            starts: rows.options.starts,
            has_turns: !is_by_time && !provides.dependencies,
            sessions: HashMap::new(),
            graph: provides.dependencies.then(Graph::default),
            last: None,
            late: 0,
        }
    }

    /// What is wrong with a row beside the others.
    fn row(&mut self, row: &Row, reader: &dyn Reader) -> Option<Error> {
        if row.session.is_none() && row.start.is_some() {
            self.late += u64::from(row.start < self.last);
            self.last = row.start;
        }
        if let Some(graph) = &mut self.graph {
            let added = graph.add(row, self.starts).map(|()| graph.note_place(reader));
            return added.err().map(|error| error.at(reader.place()));
        }
        if !self.has_turns {
            return None;
        }
        let session = row.session.as_deref().map(key);
        let before = session.and_then(|session| self.sessions.get(&session));
        let wrong = match before {
            None => turn::check_first(row, self.starts).err(),
            Some(before) => turn::inferred_pause(row, *before).err(),
        };
        if let Some(session) = session {
            let last = self.sessions.entry(session).or_default();
            *last = (*last).max(row.start);
        }
        wrong.map(|error| error.at(reader.place()))
    }

    fn finish(self, tell: &mut dyn FnMut(Error)) {
        if let Some(graph) = self.graph {
            graph.problems(tell);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Input;

    fn linted(text: &str) -> (Vec<String>, Linted) {
        linted_as("mooncake", text)
    }

    fn linted_as(format: &str, text: &str) -> (Vec<String>, Linted) {
        let source = Source::with(format, vec![Input::Bytes(Arc::from(text.as_bytes()))]).unwrap();
        let mut told = Vec::new();
        let read = ReadOptions::default();
        let linted =
            lint(&source, &read, &Meter::default(), &mut |error| told.push(error.to_string())).unwrap();
        (told, linted)
    }

    /// Broken by: a reader that ends at the first mistake, a check that a replay makes and this does not.
    #[test]
    fn all_problems_are_told() {
        let rows = [
            r#"{"timestamp":0,"input_length":600,"output_length":1,"hash_ids":[1,2]}"#,
            r#"{"timestamp":0,"output_length":1}"#,
            r#"{"timestamp":0,"#,
            r#"{"timestamp":0,"input_length":900,"output_length":1,"hash_ids":[1]}"#,
            r#"{"timestamp":0,"input_length":700,"output_length":1,"hash_ids":[1]}"#,
            r#"{"timestamp":0,"input_length":0,"output_length":1,"hash_ids":[1]}"#,
            r#"{"session_id":"a","timestamp":10,"output_length":1,"hash_ids":[1]}"#,
            r#"{"session_id":"a","timestamp":5,"output_length":1,"hash_ids":[1]}"#,
            r#"{"session_id":"b","delay":5,"output_length":1,"hash_ids":[1]}"#,
            r#"{"session_id":"c","output_length":1,"hash_ids":[1]}"#,
            r#"{"timestamp":-1,"output_length":1,"hash_ids":[1]}"#,
        ];
        let (told, linted) = linted(&rows.join("\n"));
        let places: Vec<&str> = told.iter().map(|text| text.split(": ").next().unwrap()).collect();
        let expected: Vec<String> =
            [2, 3, 4, 5, 6, 8, 9, 10, 11].iter().map(|line| format!("<memory>:{line}")).collect();
        assert_eq!(places, expected);
        assert_eq!((linted.requests, linted.problems), (2, 9));
        let cover = "\"input_length\" is N, but its N hash ids of N tokens cover only N";
        assert_eq!(linted.sorts[cover], 2);
        assert_eq!(linted.sorts.values().sum::<u64>(), 9);
    }

    #[test]
    fn a_clean_trace_has_none() {
        let row = r#"{"timestamp":9,"output_length":1,"hash_ids":[1]}"#;
        let (told, clean) = linted(&format!("{row}\n{}\n", row.replace('9', "5")));
        assert_eq!((told.len(), clean.requests), (0, 2));
        assert_eq!(clean.notes, ["1 requests come before the one above them: a replay holds all of them"]);
        let (told, empty) = linted("\n");
        assert!(told[0].contains("there are no requests in it") && empty.problems == 1, "{told:?}");
    }

    #[test]
    fn names_that_are_waited_for_exist_once_and_end() {
        let row = |name: &str, waits: &[&str]| {
            format!(r#"{{"request_id":"{name}","wait_for":{waits:?},"output_length":1,"hash_ids":[1]}}"#)
        };
        let check = |rows: &[String]| {
            let (told, linted) = linted_as("agentic_mooncake", &rows.join("\n"));
            assert_eq!(linted.problems, told.len() as u64);
            told.iter().map(|text| text.split('\n').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(check(&[row("a", &["b"]), row("b", &[]), row("c", &["a", "b"])]), [""; 0]);
        let twice = "<memory>:2: \"a\" is the name of two requests";
        assert_eq!(check(&[row("a", &[]), row("a", &["a"])]), [twice]);
        let unknown =
            |line| format!("<memory>:{line}: it waits for \"x\", and no request of the trace has that name");
        let itself = "<memory>:2: \"b\" waits for itself".to_owned();
        let rows = [row("a", &["x"]), row("b", &["b"]), row("c", &["x"])];
        assert_eq!(check(&rows), [unknown(1), itself, unknown(3)], "all of them");
        let around = [row("z", &[]), row("a", &["b"]), row("b", &["c"]), row("c", &["a", "z"])];
        let stuck = "<memory>:2: requests wait for each other: \"a\" for \"b\" for \"c\" for \"a\"";
        assert_eq!(check(&around), [stuck]);
    }
}
