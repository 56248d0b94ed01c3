//! Rows of a trace as a workload: streamed where the order allows it, otherwise held in a compact index.
//!
//! A file is read twice. The first reading checks every row and finds out whether the second may stream, so
//! mistakes show before anything is simulated and the number of requests is known. Standard input is read
//! once, into the index.

mod conversations;
mod index;
mod rows;
mod stream;
mod survey;
mod tape;
mod timed;

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Result, Workload};

use crate::Input;
use crate::requests::mooncake::Row;
use crate::requests::sharegpt::ShareGpt;
use index::Index;
use rows::Rows;
use stream::Stream;

pub use conversations::{Conversations, Exchange};
pub use survey::Survey;
pub use tape::{Tape, TapeReader};
pub(crate) use timed::{Arrival, Timed};

/// How rows become requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How many tokens one id stands for.
    pub tokens_per_id: u32,
    /// Whether an input longer than its ids cover is cut (and counted) instead of refused.
    pub clamp_input: bool,
    /// What the times of the trace mean.
    pub starts: Starts,
    /// Whether requests carry their names, for output per request.
    pub keep_names: bool,
    /// How the texts of a ShareGPT file become lengths.
    pub sharegpt: ShareGpt,
}

/// What the times of a trace mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Starts {
    /// Sessions start at their times divided by `speedup`, and so do the pauses between turns.
    Scheduled {
        /// How many times faster than recorded.
        speedup: f64,
    },
    /// Start times are ignored and may be missing; pauses are kept as they are.
    Ignored,
}

impl Starts {
    fn speedup(self) -> f64 {
        match self {
            Self::Scheduled { speedup } => speedup,
            Self::Ignored => 1.0,
        }
    }
}

/// A workload and what its first reading found.
pub struct Loaded {
    /// The requests.
    pub workload: Box<dyn Workload>,
    /// What they are.
    pub survey: Survey,
}

/// Parses one line of a format.
pub(crate) type Parse = for<'a> fn(&'a [u8]) -> Result<Row<'a>>;

/// Opens a trace whose lines `parse` understands.
pub(crate) fn open(input: &Input, options: &Options, parse: Parse) -> Result<Loaded> {
    let survey = match input {
        Input::Stdin => return load(Rows::open(input, options, parse)?),
        Input::File(_) | Input::Bytes(_) => survey::survey(&mut Rows::open(input, options, parse)?)?,
    };
    let rows = Rows::open(input, options, parse)?;
    if survey.streams {
        let workload = Box::new(Stream::of(rows, &survey));
        return Ok(Loaded { workload, survey });
    }
    load(rows)
}

fn load(rows: Rows) -> Result<Loaded> {
    let (index, survey) = Index::load(rows)?;
    Ok(Loaded { workload: Box::new(index), survey })
}

fn no_rows(name: &str) -> Error {
    Error::input("there are no requests in it").at(name).hint("one request is one JSON object per line")
}
