//! What happens in a storage benchmark, as facts in the past tense: requests, the entries they touch, and
//! what the store did underneath.

use serde::{Deserialize, Serialize};

use crate::{IoTimes, Nanos, StoreEvent};

/// A service class, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Someone waits at a screen.
    Interactive,
    /// Someone waits.
    Responsive,
    /// Nobody waits.
    Batch,
}

impl Class {
    /// Every class, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Responsive, Self::Batch];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Responsive => "responsive",
            Self::Batch => "batch",
        }
    }
}

/// One fact about a storage benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchEvent {
    /// When, since the start of the run, on the run's clock.
    pub at: Nanos,
    /// What happened.
    pub fact: BenchFact,
}

/// What happened in a storage benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BenchFact {
    /// The warm-up is over: from here on everything counts.
    Opened,
    /// The window is over: what ends from here on is only said to have been in flight.
    Closed {
        /// Requests that had begun and had not ended.
        in_flight: u64,
        /// Requests that waited.
        queued: u64,
    },
    /// A request came.
    Arrived(Class),
    /// A request came and found the queue full.
    TurnedAway(Class),
    /// An entry was read or written for a request.
    Touched(Touch),
    /// A request was served.
    Served(Served),
    /// What the store says it did, for requests or to make room.
    Stored(StoreEvent),
}

/// Why an entry is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It is a shared prompt.
    Prompt,
    /// It is an earlier turn.
    History,
    /// It is the request's own, computed for the first time.
    Prefill,
    /// It is a chunk of a document.
    Document,
    /// It is the request's own, needed to generate.
    Decode,
}

/// An entry that was read or written for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touch {
    /// Whether it was to be read or to be written.
    pub operation: Operation,
    /// Why.
    pub why: Why,
    /// How it went.
    pub answer: Answer,
    /// The entry's length; zero where it is not known.
    pub bytes: u64,
    /// Where the time went; `queue` has the wait for a permit in it.
    pub times: IoTimes,
}

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// How touching an entry went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Read, from this tier.
    Hit(u8),
    /// Not there.
    Missed,
    /// Written, to this tier.
    Stored(u8),
    /// There already: nothing was written.
    Existed,
    /// No tier had room.
    Refused,
    /// A device failed, or gave back other bytes than it was given.
    Failed,
}

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// Its class.
    pub class: Class,
    /// From its arrival to its beginning.
    pub waited: Nanos,
    /// The sum over the entries it touched.
    pub storage: Nanos,
    /// The part of `storage` that computing its prompt took; absent where it computed none.
    pub prefill: Option<Nanos>,
    /// The part of `storage` that generating took; absent where it read nothing for that.
    pub decode: Option<Nanos>,
    /// Generating.
    pub generation: Nanos,
    /// From its arrival to its end.
    pub total: Nanos,
    /// Tokens of its own entry.
    pub context_tokens: u32,
    /// Tokens it generated.
    pub generated_tokens: u32,
}
