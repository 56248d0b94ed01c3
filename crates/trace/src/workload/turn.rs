//! What holds for the turns of a session, whoever asks: the index of a workload, or a check of a file.

use wavetank_model::{Error, Nanos, Result};

use super::Starts;
use crate::{Moment, Row};

/// The first row of a session comes at its time.
pub(super) fn check_first(row: &Row, starts: Starts) -> Result<()> {
    if row.pause.is_some_and(|pause| pause != Nanos::ZERO) {
        return Err(Error::input("\"delay\" on the first turn of a session")
            .hint("the first turn starts at its timestamp; delays come after a turn's end"));
    }
    if matches!(starts, Starts::Scheduled { .. }) && row.start.is_none() {
        return Err(Error::input("\"timestamp\" is missing")
            .hint("a session starts at its first turn's timestamp; --replay-concurrency does without"));
    }
    Ok(())
}

/// How long after the turn before it a later row comes by their times; `before` is the last time that an
/// earlier turn has.
pub(super) fn inferred_pause(row: &Row, before: Option<Moment>) -> Result<Nanos> {
    match (row.start, before) {
        (None, _) => Ok(Nanos::ZERO),
        (Some(now), Some(before)) => now.since(before).ok_or_else(|| {
            Error::input(format!("\"timestamp\" goes back from {} to {}", before.ms(), now.ms()))
                .hint("the turns of a session stand in the order of their times")
        }),
        (Some(_), None) if row.pause.is_some() => Ok(Nanos::ZERO),
        (Some(_), None) => Err(Error::input("\"timestamp\" on a later turn, but no earlier turn has one")
            .hint("give the first turn a timestamp, or this one a delay")),
    }
}
