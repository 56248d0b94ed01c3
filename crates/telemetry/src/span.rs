//! A finished span, as every exporter takes it.

use std::borrow::Cow;
use std::sync::Arc;

use wavetank_model::Nanos;

/// A span that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Which part of wavetank it is of.
    pub scope: Scope,
    /// Its trace.
    pub trace_id: [u8; 16],
    /// Its own id.
    pub span_id: [u8; 8],
    /// The span it is in.
    pub parent: Option<Parent>,
    /// What it is a span of.
    pub name: Cow<'static, str>,
    /// When it began, since 1970.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// What is known of it.
    pub attributes: Vec<Attribute>,
    /// Why it failed, if it did.
    pub failure: Option<Arc<str>>,
}

/// A name and what it says.
pub type Attribute = (&'static str, Value);

/// The span around one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its id.
    pub span_id: [u8; 8],
    /// Whether another process has it.
    pub is_remote: bool,
}

/// What an attribute says. Numbers are numbers, so that queries can compare them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// Text.
    Text(Arc<str>),
    /// A name that never changes.
    Name(&'static str),
    /// Yes or no.
    Bool(bool),
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Int(i64::from(count))
    }
}

impl From<&Arc<str>> for Value {
    fn from(text: &Arc<str>) -> Self {
        Self::Text(Arc::clone(text))
    }
}

/// Which part of wavetank a span is of: OTLP groups spans by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Requests of serving engines.
    Server,
    /// Those that blend.
    Blend,
    /// Connections of Redis clients.
    Resp,
    /// Simulated requests.
    Replay,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Server, Self::Blend, Self::Resp, Self::Replay];

    /// Its name in OTLP.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "wavetank.server",
            Self::Blend => "wavetank.blend",
            Self::Resp => "wavetank.resp",
            Self::Replay => "wavetank.replay",
        }
    }
}

/// Bits of OTLP's span flags: sampled; whether the parent is of another process is known; it is.
const SAMPLED: u32 = 0x1;
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

impl Span {
    /// Its flags in OTLP: what is exported was sampled.
    pub fn flags(&self) -> u32 {
        let remote = self.parent.is_some_and(|parent| parent.is_remote);
        SAMPLED | HAS_IS_REMOTE | if remote { IS_REMOTE } else { 0 }
    }
}

/// `part` of `whole`; zero when there is no whole.
pub(crate) fn rate(part: u64, whole: u64) -> Value {
    Value::Double(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
}
