//! What a check found, what that means, and what to do about it.

use serde::Serialize;
use serde_json::{Map, Value};

/// What a finding means, better ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and there is something to know: less is possible, or slower, or less exact.
    Note,
    /// Something does not work here, or what is measured here would be wrong.
    Problem,
}

impl Verdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it means.
    pub verdict: Verdict,
    /// What is there, in words.
    pub found: String,
    /// A command or a sentence; whatever is not well has one.
    pub remedy: Option<String>,
    /// The same for programs, by name.
    pub facts: Map<String, Value>,
}

impl Finding {
    /// All is well.
    pub(super) fn ok(found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, found: found.into(), remedy: None, facts: Map::new() }
    }

    /// There is something to know.
    pub(super) fn note(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, remedy: Some(remedy.into()), ..Self::ok(found) }
    }

    /// Something is wrong.
    pub(super) fn problem(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Problem, remedy: Some(remedy.into()), ..Self::ok(found) }
    }

    /// One fact more; what is not known is null.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }
}

/// Bytes for people.
pub(super) fn gib(bytes: u64) -> String {
    let bytes = bytes as f64;
    let (number, unit) = if bytes < GIB { (bytes / MIB, "MiB") } else { (bytes / GIB, "GiB") };
    if number < 100.0 { format!("{number:.1} {unit}") } else { format!("{number:.0} {unit}") }
}

const MIB: f64 = (1u64 << 20) as f64;
const GIB: f64 = (1u64 << 30) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let sizes = [8 << 20, 300 << 20, 3 << 29, 139 << 30];
        assert_eq!(sizes.map(gib), ["8.0 MiB", "300 MiB", "1.5 GiB", "139 GiB"]);
    }

    #[test]
    fn a_problem_is_worse_than_a_note() {
        assert!(Verdict::Ok < Verdict::Note && Verdict::Note < Verdict::Problem);
    }
}
