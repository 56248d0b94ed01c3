//! What a tier keeps its bytes on, as far as time goes: one file per medium, one row each in [`ALL`].

mod constant;
mod measured;
mod queued;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wavetank_model::{Described, Error, Nanos, Operation, Result, TierRoom, find};

use crate::TransferId;

/// Bytes that are read from a tier or written to it: a transfer, or a run of transfers that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its number; no two that are under way have the same.
    pub id: TransferId,
    /// How many it is: several that are alike only where the medium takes runs.
    pub count: u32,
    /// Which way.
    pub operation: Operation,
    /// How many, in each of them.
    pub bytes: u64,
    /// What they go over, where they are written.
    pub room: TierRoom,
    /// What was done to it before; `None` where nobody keeps count, or it is longer ago than matters.
    pub before: Option<Before>,
}

/// What was done to bytes before they are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// Which way they went.
    pub after: Operation,
    /// How often in a row they had been read again before that, since they were written or came from afar.
    pub repeats: u32,
    /// How many bytes were moved since, themselves included.
    pub apart_bytes: u64,
}

/// A medium and the transfers under way on it. Time does not go back: whoever calls takes what has ended by a
/// time before anything begins after it.
pub trait Medium: Send {
    /// A transfer or a run of them begins; nothing is moved in no time.
    fn begin(&mut self, transfer: Transfer, now: Nanos);

    /// When to look again: no transfer ends before, unless one begins before.
    fn next(&self) -> Option<Nanos>;

    /// Takes the next transfer that has ended by `now`, and with it all that nothing but their numbers tells
    /// from it: appends them to `ended`, lowest number first, and says when they did.
    fn end(&mut self, now: Nanos, ended: &mut Vec<TransferId>) -> Option<Nanos>;

    /// Whether transfers of one length that begin at once end at once, so that they can be one run.
    fn takes_runs(&self) -> bool {
        false
    }

    /// What a thread that asks for `transfer` now spends on it of its own time, in which it does nothing
    /// else. Nothing, unless it was measured.
    fn holds_up(&self, _transfer: Transfer) -> Nanos {
        Nanos::ZERO
    }

    /// How many bytes may have been moved since something was moved for that to matter still.
    fn remembers(&self) -> u64 {
        0
    }

    /// How long an operation takes that has the medium to itself, on average.
    fn alone(&self, operation: Operation, bytes: u64) -> Nanos;

    /// The bytes of `operation` a second that the medium never exceeds with operations of so many bytes, but
    /// for what was moved a moment ago.
    fn peak_bytes_per_second(&self, operation: Operation, bytes: u64) -> f64;
}

/// What a row's own configuration is read from.
pub type Parameters = Map<String, Value>;

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// Builds a medium with nothing under way, from its parameters and the seed of its draws.
    pub build: fn(&Parameters, u64) -> Result<Box<dyn Medium>>,
    /// The parameters of the same medium with so many times the speed.
    pub sped: fn(&Parameters, f64) -> Result<Parameters>,
    /// Whether its times are drawn, so that another seed gives others.
    pub is_random: bool,
}

impl Described for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
}

/// Every medium, alphabetical. `wavetank list media` prints this table.
pub const ALL: &[Entry] = &[constant::ENTRY, measured::ENTRY, queued::ENTRY];

/// A row of [`ALL`] and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediumConfig {
    /// The row.
    pub name: String,
    /// What the row's own configuration takes.
    #[serde(flatten)]
    pub parameters: Parameters,
}

impl MediumConfig {
    /// Builds the medium; `seed` is of its draws.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Medium>> {
        (find("medium", ALL, &self.name)?.build)(&self.parameters, seed)
    }

    /// The same medium with `factor` times the speed.
    pub fn sped(&self, factor: f64) -> Result<Self> {
        let parameters = (find("medium", ALL, &self.name)?.sped)(&self.parameters, factor)?;
        Ok(Self { name: self.name.clone(), parameters })
    }

    /// Whether another seed gives other times.
    pub fn is_random(&self) -> bool {
        find("medium", ALL, &self.name).is_ok_and(|row| row.is_random)
    }
}

/// Reads the parameters of the row `name` into its own configuration type.
pub(crate) fn configure<'de, T: Deserialize<'de>>(name: &str, parameters: &Parameters) -> Result<T> {
    T::deserialize(Value::Object(parameters.clone()))
        .map_err(|error| Error::usage(format!("medium \"{name}\": {error}")))
}

/// Every bandwidth of the parameters, `factor` times as high; latencies stay.
fn with_bandwidth(parameters: &Parameters, factor: f64) -> Result<Parameters> {
    let mut sped = parameters.clone();
    for key in ["gbps", "read_gbps", "write_gbps"] {
        if let Some(gbps) = parameters.get(key).and_then(Value::as_f64) {
            sped.insert(key.to_owned(), Value::from(gbps * factor));
        }
    }
    Ok(sped)
}

#[cfg(test)]
mod tests;
