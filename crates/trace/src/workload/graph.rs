//! Requests that wait for others by name as the graph of a workload: names are found wherever they stand.

use std::collections::HashMap;
use std::sync::Arc;

use wavetank_model::{Cycle, Dependencies, Error, Nanos, Result, SessionId, Wait};

use super::Starts;
use crate::requests::Reader;
use crate::{Moment, Row};

/// The graph while its rows are read; every row is a session of its own.
#[derive(Default)]
pub(super) struct Graph {
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Name>,
    waits: Vec<NamedWait>,
    pauses: Vec<Nanos>,
    /// Starts of those that wait for nothing.
    starts: Vec<Option<Moment>>,
    places: Places,
    /// Requests that have a pause and nothing to wait for.
    pub(super) paused_roots: u64,
}

/// A name that a row has or waits for.
struct Name {
    text: Arc<str>,
    row: Option<u32>,
}

/// That a row waits for whoever has a name.
struct NamedWait {
    row: u32,
    name: u32,
}

impl Graph {
    /// Takes the next row; [`Self::note_place`] follows.
    pub(super) fn add(&mut self, row: &Row, starts: Starts) -> Result<()> {
        let number = self.pauses.len() as u32;
        if let Some(request) = &row.request {
            let name = self.number(request) as usize;
            if let Some(before) = self.names[name].row {
                return Err(Error::input(format!("\"{request}\" is the name of two requests"))
                    .hint(format!("the other one is {}", self.places.of(before))));
            }
            self.names[name].row = Some(number);
        }
        for wanted in &row.wait_for {
            let name = self.number(wanted);
            self.waits.push(NamedWait { row: number, name });
        }
        let pause = row.pause.unwrap_or_default() + row.tool_wait.unwrap_or_default();
        let is_root = row.wait_for.is_empty();
        self.paused_roots += u64::from(is_root && pause != Nanos::ZERO);
        self.starts.push(row.start.filter(|_| is_root));
        self.pauses.push(starts.scaled(pause));
        Ok(())
    }

    /// Remembers where the row that `reader` read last stands.
    pub(super) fn note_place(&mut self, reader: &dyn Reader) {
        self.places.push(reader);
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let (text, number): (Arc<str>, _) = (name.into(), self.names.len() as u32);
        self.numbers.insert(Arc::clone(&text), number);
        self.names.push(Name { text, row: None });
        number
    }

    /// The first start of any, and that of each row: those that say none and wait for nothing start first.
    pub(super) fn starts(&self) -> (Moment, impl Iterator<Item = Moment> + '_) {
        let first = self.starts.iter().flatten().copied().min().unwrap_or_default();
        (first, self.starts.iter().map(move |start| start.unwrap_or(first)))
    }

    /// Who waits for whom; nothing where nobody does.
    pub(super) fn dependencies(self) -> Result<Option<Dependencies>> {
        let mut wrong = Vec::new();
        let waits = self.waits(&mut |error| wrong.push(error));
        match wrong.into_iter().next() {
            Some(first) => Err(first),
            None if waits.is_empty() => Ok(None),
            None => self.built(&waits).map(Some),
        }
    }

    /// Tells all that is wrong with who waits for whom.
    pub(super) fn problems(self, tell: &mut dyn FnMut(Error)) {
        let waits = self.waits(tell);
        if let Err(error) = self.built(&waits) {
            tell(error);
        }
    }

    /// The waits for requests that are there; tells of the others.
    fn waits(&self, tell: &mut dyn FnMut(Error)) -> Vec<Wait> {
        let mut waits = Vec::with_capacity(self.waits.len());
        for &NamedWait { row, name } in &self.waits {
            let Name { text, row: wanted } = &self.names[name as usize];
            match *wanted {
                None => tell(
                    Error::input(format!(
                        "it waits for \"{text}\", and no request of the trace has that name"
                    ))
                    .at(self.places.of(row))
                    .hint("what is waited for is the name of another request; name all files of it"),
                ),
                Some(wanted) if wanted == row => tell(
                    Error::input(format!("\"{text}\" waits for itself"))
                        .at(self.places.of(row))
                        .hint("a request waits for others"),
                ),
                Some(wanted) => waits.push(Wait { session: SessionId(row), after: SessionId(wanted) }),
            }
        }
        waits
    }

    fn built(self, waits: &[Wait]) -> Result<Dependencies> {
        let graph = Dependencies::of(self.pauses, waits);
        graph.map_err(|cycle| told(&cycle, &self.names, &self.places))
    }
}

/// As many of a cycle are named.
const MOST_NAMED: usize = 8;

fn told(Cycle(members): &Cycle, names: &[Name], places: &Places) -> Error {
    let name = |session: &SessionId| {
        let named = names.iter().find(|name| name.row == Some(session.0));
        format!("\"{}\"", named.map_or("", |name| &name.text))
    };
    let mut chain: Vec<String> = members.iter().take(MOST_NAMED).map(name).collect();
    if members.len() > MOST_NAMED {
        chain.push(format!("{} more", members.len() - MOST_NAMED));
    }
    chain.push(name(&members[0]));
    Error::input(format!("requests wait for each other: {}", chain.join(" for ")))
        .at(places.of(members[0].0))
        .hint("none of them could ever start")
}

/// Where rows stand.
#[derive(Default)]
struct Places {
    /// The files, by their first row.
    files: Vec<(u32, String)>,
    lines: Vec<u64>,
}

impl Places {
    fn push(&mut self, reader: &dyn Reader) {
        let (place, line) = (reader.place(), reader.line());
        let file = place.strip_suffix(&format!(":{line}")).unwrap_or(&place);
        if self.files.last().is_none_or(|(_, known)| known != file) {
            self.files.push((self.lines.len() as u32, file.to_owned()));
        }
        self.lines.push(line);
    }

    fn of(&self, row: u32) -> String {
        let after = self.files.partition_point(|(first, _)| *first <= row);
        format!("{}:{}", self.files[after - 1].1, self.lines[row as usize])
    }
}
