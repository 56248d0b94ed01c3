//! Rows of a trace as a workload: streamed where the order allows it, otherwise held in a compact index.
//!
//! A file is read twice. The first reading checks every row and finds out whether the second may stream, so
//! mistakes show before anything is simulated and the number of requests is known. What can be read once only
//! goes into the index.

mod check;
mod graph;
mod growth;
mod index;
mod lint;
mod prompts;
mod stream;
mod survey;
mod tape;
mod turn;

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Nanos, Result, Workload};

use crate::requests::{Blocks, Provides, ReadOptions, Source};
use crate::{Fill, Moment};
use check::Rows;
use index::Index;
use stream::Stream;

pub use lint::{Linted, lint};
pub use prompts::{Asked, PromptBlock, Prompts};
pub use survey::Survey;
pub use tape::{Tape, TapeReader};

/// How rows become requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How files become rows.
    pub read: ReadOptions,
    /// Whether an input longer than its ids cover is cut (and counted) instead of refused.
    pub clamp_input: bool,
    /// What the times of the trace mean.
    pub starts: Starts,
    /// Whether requests carry their names, for output per request.
    pub keep_names: bool,
    /// What stands in for what the trace does not say.
    pub fill: Fill,
}

impl Options {
    /// Times as `starts` says, and nothing unusual.
    pub fn of(starts: Starts) -> Self {
        let (read, fill) = (ReadOptions::default(), Fill::default());
        Self { read, clamp_input: false, starts, keep_names: false, fill }
    }
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

    /// A span of the trace, as the run has it.
    fn scaled(self, span: Nanos) -> Nanos {
        match self {
            Self::Scheduled { speedup } if speedup != 1.0 => Nanos::from_ms(span.as_ms() / speedup),
            Self::Scheduled { .. } | Self::Ignored => span,
        }
    }

    /// The time of the run at `moment` of a trace that begins at `first`.
    fn at(self, moment: Moment, first: Moment) -> Nanos {
        match self {
            Self::Scheduled { .. } => self.scaled(moment.since(first).unwrap_or(Nanos::ZERO)),
            Self::Ignored => Nanos::ZERO,
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

/// Opens a trace.
pub fn open(source: &Source, options: &Options) -> Result<Loaded> {
    let provides = source.format.provides;
    if matches!(options.starts, Starts::Scheduled { .. }) && !provides.starts {
        return Err(Error::input("there are no times in this format")
            .at(source.name())
            .hint("--replay-concurrency starts a session when another one ends"));
    }
    check_block_size(options)?;
    let mut loaded = load(source, options)?;
    let notes = fills(&provides, options, &loaded.survey);
    loaded.survey.notes.extend(notes);
    Ok(loaded)
}

fn check_block_size(options: &Options) -> Result<()> {
    if options.read.tokens_per_id == Some(0) {
        return Err(Error::usage("an id stands for at least one token").at("--trace-block-size"));
    }
    Ok(())
}

fn load(source: &Source, options: &Options) -> Result<Loaded> {
    let rows = || Rows::open(source, options);
    if !source.is_once() {
        let survey = survey::survey(&mut rows()?)?;
        if survey.streams {
            let workload = Box::new(Stream::of(rows()?, &survey));
            return Ok(Loaded { workload, survey });
        }
    }
    let (index, survey) = Index::load(rows()?)?;
    Ok(Loaded { workload: Box::new(index), survey })
}

/// What stood in for what the trace does not say, in words.
fn fills(provides: &Provides, options: &Options, survey: &Survey) -> Vec<String> {
    let mut notes = Vec::new();
    let requests = |count: u64| if count == 1 { "request" } else { "requests" };
    let mut note = |count: u64, what: String| {
        notes.extend((count > 0).then(|| format!("{count} {} {what}", requests(count))));
    };
    let Fill { hash, output } = options.fill;
    let words = format!("without block ids: {} (--fill hash={})", hash.words(), hash.name());
    note(survey.filled_ids, words);
    let tokens = output.unwrap_or_default();
    note(
        survey.filled_outputs,
        format!("without an output length: {tokens} tokens (--fill output={tokens})"),
    );
    let what = "with a pause or a tool's time and nothing to wait for: started as if there were none";
    note(survey.paused_roots, what.to_owned());
    if !provides.pauses {
        let what = "follow a turn of their session: they come after its end by the difference of their times";
        note(survey.inferred_pauses, what.to_owned());
    }
    if provides.blocks == Blocks::Absent && options.read.tokens_per_id.is_some() {
        notes.push("--trace-block-size has no effect: there are no block ids in this format".to_owned());
    }
    if survey.ids > 2 * survey.needed_ids {
        let (ids, needed) = (survey.ids, survey.needed_ids);
        notes.push(format!(
            "{ids} block ids where prompts need {needed}: is --trace-block-size, tokens per id, right?"
        ));
    }
    notes
}

fn no_rows(rows: &Rows) -> Error {
    let skipped = rows.reader().findings().notes.join("; ");
    let hint =
        if skipped.is_empty() { "`wavetank list formats` says what is read".to_owned() } else { skipped };
    Error::input("there are no requests in it").at(rows.name()).hint(hint)
}
