//! Names that requests have and wait for, all of them checked.

use std::collections::HashMap;

use wavetank_model::Error;

use crate::Row;

/// The names while rows are read.
#[derive(Default)]
pub(super) struct Waits {
    numbers: HashMap<String, u32>,
    names: Vec<Name>,
    /// Who waits, by number of its name, for whom, and where that is said.
    waits: Vec<Wait>,
}

struct Name {
    text: String,
    /// Where the request stands that has it.
    place: Option<String>,
}

struct Wait {
    own: Option<u32>,
    wanted: u32,
    place: String,
}

impl Waits {
    /// Takes the next row; tells what is wrong with its own name.
    pub(super) fn add(&mut self, row: &Row, place: &str) -> Option<Error> {
        let own = row.request.as_ref().map(|name| self.number(name));
        for name in &row.wait_for {
            let wanted = self.number(name);
            self.waits.push(Wait { own, wanted, place: place.to_owned() });
        }
        let name = &mut self.names[own? as usize];
        match &name.place {
            None => {
                name.place = Some(place.to_owned());
                None
            }
            Some(other) => Some(
                Error::input(format!("\"{}\" is the name of two requests", name.text))
                    .at(place)
                    .hint(format!("the other one is {other}")),
            ),
        }
    }

    fn number(&mut self, name: &str) -> u32 {
        let next = self.names.len() as u32;
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.numbers.insert(name.to_owned(), next);
        self.names.push(Name { text: name.to_owned(), place: None });
        next
    }

    /// What is wrong with what is waited for.
    pub(super) fn finish(self, tell: &mut dyn FnMut(Error)) {
        for Wait { own, wanted, place } in &self.waits {
            let Name { text, place: found } = &self.names[*wanted as usize];
            if found.is_none() {
                tell(
                    Error::input(format!(
                        "it waits for \"{text}\", and no request of the trace has that name"
                    ))
                    .at(place)
                    .hint("what is waited for is the name of another request; name all files of it"),
                );
            } else if *own == Some(*wanted) {
                let error = Error::input(format!("\"{text}\" waits for itself"));
                tell(error.at(place).hint("a request waits for others"));
            }
        }
        if let Some(error) = self.stuck() {
            tell(error);
        }
    }

    /// Requests that wait for each other, however long the way round: what is left when all that can end has.
    fn stuck(&self) -> Option<Error> {
        let mut open = vec![0_u32; self.names.len()];
        let mut followers = vec![Vec::new(); self.names.len()];
        let edges = self.waits.iter().filter_map(|wait| Some((wait.own?, wait.wanted)));
        for (own, wanted) in edges.filter(|(own, wanted)| own != wanted) {
            open[own as usize] += 1;
            followers[wanted as usize].push(own);
        }
        let mut ended: Vec<u32> = (0..open.len() as u32).filter(|name| open[*name as usize] == 0).collect();
        while let Some(name) = ended.pop() {
            for &follower in &followers[name as usize] {
                open[follower as usize] -= 1;
                if open[follower as usize] == 0 {
                    ended.push(follower);
                }
            }
        }
        let left = open.iter().filter(|open| **open > 0).count();
        let first = open.iter().position(|open| *open > 0)?;
        let Name { text, place } = &self.names[first];
        Some(
            Error::input(format!(
                "requests wait for each other: \"{text}\" and {} more can never start",
                left - 1
            ))
            .at(place.as_deref().unwrap_or_default())
            .hint("what a request waits for must not wait for it"),
        )
    }
}
