//! Request traces: one file per format, one row each in [`ALL`]. A format is read into [`Row`]s and, where it
//! makes sense, written from them.

pub mod agentic_mooncake;
pub mod applied_compute_agentic;
pub mod azure;
pub mod burstgpt;
pub mod dynamo;
pub mod llmservingsim;
pub mod lookup_hashes;
pub mod mooncake;
pub mod mooncake_delta;
pub mod otel;
pub mod qwen_bailian;
pub mod sharegpt;
pub mod vidur;

use std::io;

use serde::{Deserialize, Serialize};
use wavetank_model::{Result, described};

use crate::{Head, Input, Output, Row};

pub use crate::reading::token_count::{Texts, TokenCount};
pub use crate::source::{Source, find};

pub(crate) use crate::reading::lines::{JsonLine, LineReader, Rows};
pub(crate) use crate::reading::tables::{Outcome, TableFormat, TableReader};

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// What its requests tell.
    pub provides: Provides,
    /// Whether a file that begins so is of this format.
    pub recognises: fn(&Head) -> bool,
    /// Reads the files of a trace, at least one, one after the other.
    pub read: Open,
    /// Begins a trace whose ids stand for so many tokens, where it can be written.
    pub write: Option<Begin>,
}

/// Opens the files of a trace.
pub type Open = fn(&[Input], &ReadOptions) -> Result<Box<dyn Reader>>;

/// Begins a trace.
pub type Begin = for<'w> fn(Output<'w>, &WriteOptions) -> io::Result<Box<dyn Writer + 'w>>;

described!(Entry);

/// Every request trace format, alphabetical. `wavetank list formats` prints this table.
pub const ALL: &[Entry] = &[
    agentic_mooncake::ENTRY,
    applied_compute_agentic::ENTRY,
    azure::ENTRY,
    burstgpt::ENTRY,
    dynamo::ENTRY,
    llmservingsim::ENTRY,
    lookup_hashes::ENTRY,
    mooncake::ENTRY,
    mooncake_delta::ENTRY,
    otel::ENTRY,
    qwen_bailian::ENTRY,
    sharegpt::ENTRY,
    vidur::ENTRY,
];

/// What the requests of a format tell. What a consumer needs beyond it is filled by a rule, or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provides {
    /// When requests came.
    pub starts: bool,
    /// How many tokens were generated.
    pub outputs: bool,
    /// Which requests are turns of one session.
    pub sessions: bool,
    /// Pauses between turns, as the trace itself names them; without, they are differences of starts.
    pub pauses: bool,
    /// Which requests wait for which.
    pub dependencies: bool,
    /// Nothing of what sessions share, so that whoever reads it chooses.
    pub chosen_prefixes: bool,
    /// Texts, so that tokens are counted and contents compared here.
    pub texts: bool,
    /// The ids of prompts' blocks.
    pub blocks: Blocks,
    /// What prompts hold.
    pub prompts: Prompts,
}

impl Provides {
    /// Lengths alone.
    pub const LENGTHS: Self = Self {
        starts: false,
        outputs: true,
        sessions: false,
        pauses: false,
        dependencies: false,
        chosen_prefixes: false,
        texts: false,
        blocks: Blocks::Absent,
        prompts: Prompts::Whole,
    };
}

/// How a format names the blocks of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Not at all.
    Absent,
    /// Ids that stand for so many tokens each, unless the user says otherwise.
    Of(u32),
    /// Ids that stand for as many tokens as the file says.
    Told,
}

/// What the prompt of a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// All that is sent.
    Whole,
    /// What a turn adds to the prompt and the answer before it.
    Added,
}

/// How files become rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// How many tokens one id stands for; the format's own number when absent.
    pub tokens_per_id: Option<u32>,
    /// How texts become lengths.
    pub texts: Texts,
    /// What sessions share where a trace of lengths does not say it.
    pub shared_prefix: SharedPrefix,
}

/// How the first prompts of sessions begin alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SharedPrefix {
    /// The part of a first prompt's blocks that is shared, from 0 to 1.
    pub ratio: f64,
    /// How many different beginnings there are; sessions take them in turn. With none nothing is shared.
    pub groups: u32,
}

impl SharedPrefix {
    /// Whether nothing is shared.
    pub fn is_none(&self) -> bool {
        self.ratio == 0.0 || self.groups == 0
    }
}

/// How rows become files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// How many tokens one id stands for; nothing where rows have no ids.
    pub tokens_per_id: Option<u32>,
}

/// A trace being read, in the order of its files.
pub trait Reader: Send {
    /// Reads the next request into `row`, whatever that held; tells whether there was one.
    ///
    /// An error carries its place. The next call goes on behind it where the format can be read on, and says
    /// that there is nothing more where it cannot.
    fn read(&mut self, row: &mut Row) -> Result<bool>;

    /// `file:line` of the request read last.
    fn place(&self) -> String;

    /// The line of the request read last.
    fn line(&self) -> u64;

    /// How many tokens an id stands for; known from the start.
    fn tokens_per_id(&self) -> Option<u32>;

    /// What was met so far beside requests.
    fn findings(&self) -> Findings;
}

/// What a reader passed over, and what whoever reads the results should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Things that are no requests.
    pub skipped: u64,
    /// Which and why, and how lengths came about.
    pub notes: Vec<String>,
}

/// A trace being written.
pub trait Writer {
    /// Adds a request.
    fn write(&mut self, row: &Row) -> io::Result<()>;

    /// Ends the trace; without it the last requests may be missing.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// What a format cannot be written without is not told by a request.
pub(crate) fn untold(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{what} is not told, and this format cannot do without"),
    )
}
