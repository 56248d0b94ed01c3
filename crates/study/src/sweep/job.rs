//! One run of a sweep, complete in itself: it can be written as text and run by another process, on a machine
//! where its inputs lie elsewhere. What it says names them as they were named here.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wavetank::Plan;
use wavetank_model::{Error, Result};

use super::point::Part;

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub(crate) plan: Plan,
    pub(crate) part: Part,
    /// Where inputs lie that are called otherwise, and how they are called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moved: Vec<(String, String)>,
}

impl Job {
    pub(crate) fn of(plan: Plan, part: Part) -> Self {
        Self { plan, part, moved: Vec::new() }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("names are texts, and a plan's numbers are finite")
    }

    /// The job that [`Self::json`] wrote; one of another version would give other numbers.
    pub fn of_json(text: &str) -> Result<Self> {
        let wrong = |error: serde_json::Error| Error::input(format!("not a job of a sweep: {error}"));
        let job: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
        let (theirs, ours) = (job["plan"]["wavetank_version"].as_str(), env!("CARGO_PKG_VERSION"));
        if let Some(theirs) = theirs.filter(|theirs| *theirs != ours) {
            return Err(Error::unsupported(format!("a job of wavetank {theirs}, and this is {ours}"))
                .hint("install the same version wherever points run"));
        }
        Self::deserialize(job).map_err(wrong)
    }

    /// The files and folders it reads, each once.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let inputs: BTreeSet<PathBuf> = self.plan.inputs().map(PathBuf::from).collect();
        inputs.into_iter().collect()
    }

    /// Reads inputs from other places, each from one of its own. A file has the bytes that it has here, a
    /// folder files of the same names.
    pub fn relocate(&mut self, places: &HashMap<PathBuf, PathBuf>) -> Result<()> {
        let mut moved: Vec<(String, String)> = Vec::new();
        for path in self.plan.inputs_mut() {
            let name = renamed(path, &self.moved);
            if let Some(place) = places.get(Path::new(path.as_str())) {
                *path = place.display().to_string();
            }
            match moved.iter().find(|(place, _)| place == path) {
                Some((_, known)) if *known != name => {
                    return Err(Error::usage(format!("{known} and {name} are in one place"))
                        .at(path.clone())
                        .hint("give every input a place of its own"));
                }
                Some(_) => {}
                None => moved.push((path.clone(), name)),
            }
        }
        moved.retain(|(place, name)| place != name);
        self.moved = moved;
        Ok(())
    }

    /// What a run says, with inputs called by their names.
    pub(crate) fn named(&self, text: &str) -> String {
        renamed(text, &self.moved)
    }

    /// The same of an error.
    pub(crate) fn named_error(&self, error: Error) -> Error {
        let mut named = Error::new(error.kind(), self.named(error.message()));
        if let Some(place) = error.place() {
            named = named.at(self.named(place));
        }
        if let Some(hint) = error.advice() {
            named = named.hint(self.named(hint));
        }
        named.source(error)
    }
}

/// `text` with names for places.
fn renamed(text: &str, moved: &[(String, String)]) -> String {
    let (mut all, mut rest) = (String::with_capacity(text.len()), text);
    loop {
        let found = moved.iter().filter_map(|pair| Some((rest.find(&pair.0)?, pair)));
        // A place may be the beginning of another.
        let first = found.min_by_key(|(at, (place, _))| (*at, Reverse(place.len())));
        let Some((at, (place, name))) = first else { return all + rest };
        all.push_str(&rest[..at]);
        all.push_str(name);
        rest = &rest[at + place.len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a name that is replaced again, or the shorter of two places that begin alike.
    #[test]
    fn places_become_names_once() {
        let moved = [("/t/1", "a /t/11"), ("/t/11", "b")].map(|(at, name)| (at.to_owned(), name.to_owned()));
        assert_eq!(renamed("/t/1:3, /t/11/x /t/2 /t/1", &moved), "a /t/11:3, b/x /t/2 a /t/11");
        assert_eq!(renamed("nothing", &[]), "nothing");
    }

    #[test]
    fn what_is_no_job_of_ours_is_refused() {
        let refused = |text: &str| Job::of_json(text).unwrap_err().to_string();
        assert!(refused("{").starts_with("not a job of a sweep: EOF"));
        assert!(refused("{}").starts_with("not a job of a sweep: missing field"));
        let other = refused(r#"{"plan": {"wavetank_version": "0.0.1", "shape": "unknown"}}"#);
        assert!(other.starts_with("a job of wavetank 0.0.1, and this is ") && other.contains("\nhint: "));
    }
}
