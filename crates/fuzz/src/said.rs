//! What a reader said, and that it says where.

use wavetank_model::Error;

/// What became of an input. Inputs of which that differs went different ways.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Met {
    /// It was read, and everything held.
    Read(String),
    /// It was refused as it should be.
    Refused(String),
}

/// A refusal, whose place begins with `place`.
pub(crate) fn refused(error: &Error, place: &str) -> Met {
    let said = error.to_string();
    assert!(said.starts_with(place), "{said:?} does not begin with {place}");
    Met::Refused(sketch(&said[place.len()..]))
}

/// A refusal of something that has no one place, such as flags.
pub(crate) fn refused_anywhere(error: &Error) -> Met {
    let said = error.to_string();
    assert!(!said.trim().is_empty(), "a refusal says why");
    Met::Refused(sketch(&said))
}

/// The first line of a message without its numbers and names.
pub(crate) fn sketch(said: &str) -> String {
    let mut is_quoted = false;
    let kept = |letter: &char| {
        is_quoted ^= matches!(letter, '"' | '`');
        !is_quoted && !letter.is_ascii_digit()
    };
    said.lines().next().unwrap_or_default().chars().filter(kept).take(60).collect()
}
