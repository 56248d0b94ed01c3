//! What was met while a storage-call trace was read: counts, and everything that was left out, with its
//! reason.

use std::collections::BTreeMap;

/// Different reasons, or names, that are told apart; they come from the file.
const MOST: usize = 64;
/// What the rest is counted as.
const OTHERS: &str = "others";

/// Counts of a trace as far as it has been read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallSurvey {
    /// Records by the name of their operation, known or not.
    pub operations: BTreeMap<String, u64>,
    /// Records that were no calls, because their operation or what it was given is not known.
    pub unknown: Skipped,
    /// Frames that were no records.
    pub damaged: Skipped,
    /// The file ends within a frame: what is there of it is lost.
    pub cut: Option<Cut>,
    /// The recording goes on in a file that cannot be read, and why.
    pub missing_part: Option<String>,
    /// Reading ended before the file did: what follows cannot be found.
    pub stopped: Option<Stop>,
    /// Calls the recorder could not keep up with, as it says itself.
    pub lost: u64,
    /// The latest time of a record, in seconds from the start of the recording.
    pub last_s: f64,
    /// What the file says of itself.
    pub notes: Vec<String>,
}

/// Things that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Why, and how many.
    pub reasons: Vec<Reason>,
}

/// Things left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// Where the first one stands in the file, before compression.
    pub first_offset: u64,
}

/// A frame that is not all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where it begins in the file, before compression.
    pub offset: u64,
    /// Bytes of it that are there.
    pub bytes: u64,
}

/// Where and why reading ended before the file did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Where what cannot be read begins in the file, before compression.
    pub offset: u64,
    /// Why.
    pub reason: String,
}

impl CallSurvey {
    /// Records that could be read, known or not.
    pub fn records(&self) -> u64 {
        self.operations.values().sum()
    }

    /// Keeps what the file says of itself; a file that says very much is not believed to the end.
    pub(crate) fn note(&mut self, note: String) {
        match self.notes.len() {
            ..MOST => self.notes.push(note),
            MOST => self.notes.push(OTHERS.to_owned()),
            _ => {}
        }
    }

    pub(crate) fn count(&mut self, operation: &str, records: u64) {
        if records == 0 {
            return;
        }
        let known = self.operations.len() < MOST || self.operations.contains_key(operation);
        *self.operations.entry(if known { operation } else { OTHERS }.to_owned()).or_default() += records;
    }
}

impl Skipped {
    /// How many in all.
    pub fn count(&self) -> u64 {
        self.reasons.iter().map(|reason| reason.count).sum()
    }

    pub(crate) fn add(&mut self, reason: &str, offset: u64) {
        let known = self.reasons.len() < MOST || self.reasons.iter().any(|known| known.reason == reason);
        let reason = if known { reason } else { OTHERS };
        match self.reasons.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.count += 1,
            None => self.reasons.push(Reason { reason: reason.to_owned(), count: 1, first_offset: offset }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a list that grows with what the file makes up.
    #[test]
    fn made_up_names_do_not_fill_memory() {
        let mut survey = CallSurvey::default();
        for number in 0..1000 {
            survey.count(&format!("x{number}"), 1);
            survey.unknown.add(&format!("unknown x{number}"), number);
            survey.note(format!("note {number}"));
        }
        assert_eq!((survey.records(), survey.operations.len()), (1000, MOST + 1));
        assert_eq!((survey.unknown.count(), survey.unknown.reasons.len()), (1000, MOST + 1));
        assert_eq!(survey.unknown.reasons[MOST].first_offset, MOST as u64);
        assert_eq!((survey.notes.len(), survey.notes[MOST].as_str()), (MOST + 1, OTHERS));
    }
}
